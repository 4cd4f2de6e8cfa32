#include "exposure/draft_layout.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "naming/naming.h"

namespace persia::agent {
namespace {

constexpr uint64_t kNanosecondsPerMillisecond = 1'000'000;
constexpr std::string_view kReplacement = "\uFFFD";  // of SanitizeText

// Label values are valid UTF-8, in which the separators do not occur.
std::string SeriesKey(uint32_t identity, const Labels& labels) {
  std::string key(reinterpret_cast<const char*>(&identity), sizeof identity);
  for (const auto& [name, value] : labels) {
    key += name;
    key += '\xfe';
    key += value;
    key += '\xff';
  }
  return key;
}

}  // namespace

void DraftLayout::AddFamily(FamilyLayout layout, Fill fill, GaugePolicy policy, std::vector<uint32_t> cuts,
                            std::optional<std::chrono::milliseconds> ttl) {
  Family& family = families_.emplace_back();
  family.layout = std::move(layout);
  family.fill = fill;
  family.policy = policy;
  family.cuts = std::move(cuts);
  family.ttl = ttl;
}

void DraftLayout::AddOwnSeries(size_t family, uint32_t identity, Labels labels, size_t first_value) {
  for (auto& label : labels) label.second = SanitizeText(label.second);
  FitLabels(labels, families_[family].layout.type, identities_[identity]);
  std::vector<SeriesLayout>& all = families_[family].own_series;
  // Two texts that are not valid may have become the same one.
  const auto replaced =
      std::ranges::find_if(labels, [](const auto& label) { return label.second.find(kReplacement) != std::string::npos; });
  if (replaced != labels.end()) {
    const std::string text = replaced->second;
    const auto is_same = [&](const SeriesLayout& other) {
      return other.identity == identity && other.labels == SeriesLabels(labels);
    };
    for (size_t number = 2; std::ranges::any_of(all, is_same); ++number) replaced->second = text + "_" + std::to_string(number);
  }
  all.push_back({identity, first_value, std::move(labels)});
}

// False: these labels belong to a series of another source. For a series beyond a limit, counts it and returns true, and for
// one that no process has, only returns true.
bool DraftLayout::TryAddPart(Family& family, uint32_t identity, const Labels& labels, const std::string& source, Part part,
                             uint64_t birth_unix_ns, const Scale& scale, Presence presence) {
  const bool removed = presence == Presence::kRemoved || presence == Presence::kEndedAfterRemoval;
  std::string key = SeriesKey(identity, labels);
  auto found = family.by_key.find(key);
  if (found == family.by_key.end()) {
    if (removed || family.refused.contains(key)) return true;
    // No limit applies to the dropped counts, which show lost measurements.
    if (family.fill != Fill::kDropped && !limiter_.Admit(family.layout.name, identity, labels)) {
      family.refused.insert(std::move(key));
      return true;
    }
    found = family.by_key.emplace(std::move(key), static_cast<uint32_t>(family.series.size())).first;
    family.series.push_back({identity, labels, source, birth_unix_ns, scale});
  } else if (family.series[found->second].source != source) {
    return false;
  }
  Series& series = family.series[found->second];
  series.present |= presence == Presence::kPresent;
  series.removed |= presence == Presence::kRemoved;
  if (removed && family.fill == Fill::kGauge) return true;
  series.birth_unix_ns = std::min(series.birth_unix_ns, birth_unix_ns);
  family.parts.emplace_back(found->second, part);
  return true;
}

void DraftLayout::AddChanged(Diagnostics& diagnostics) {
  // Sorted, so that the order of addition does not decide which of two series gets the label `source`.
  std::sort(changed_.begin(), changed_.end(), [](const ChangedPart& a, const ChangedPart& b) {
    const auto removed = [](const ChangedPart& part) {
      return part.presence == Presence::kRemoved || part.presence == Presence::kEndedAfterRemoval;
    };
    return std::tuple(removed(a), a.family, std::string_view(a.source), a.identity, a.part.segment) <
           std::tuple(removed(b), b.family, std::string_view(b.source), b.identity, b.part.segment);
  });
  for (ChangedPart& changed : changed_) {
    Family& family = families_[changed.family];
    Labels labels = changed.labels.ToList();
    const auto try_add = [&] {
      return TryAddPart(family, changed.identity, labels, changed.source, changed.part, changed.birth_unix_ns, changed.scale,
                        changed.presence);
    };
    if (try_add()) continue;
    const std::string source = SanitizeText(changed.source);
    diagnostics.Report("collision", "the series " + source + " gets a label source: another series of " + family.layout.name +
                                        " is exposed with the same labels; rename a label");
    SetLabel(labels, kSourceLabel, source);
    FitLabels(labels, family.layout.type, identities_[changed.identity]);
    if (!try_add()) {
      // The sources differ only in bytes that are not UTF-8.
      ++limiter_.left_out.collision;
      diagnostics.Report(
          "collision", "the series " + source + " is left out: another series is exposed with the same labels; rename a label");
    }
  }
  changed_.clear();
}

ExposurePlan DraftLayout::Finish(Diagnostics& diagnostics) {
  AddChanged(diagnostics);
  limiter_.Report(identities_, diagnostics);
  ExposurePlan plan;
  plan.left_out = limiter_.left_out;
  Layout layout;
  layout.identities = identities_;
  layout.left_out = std::move(left_out_);
  layout.value_count = own_values_;
  for (Family& family : families_) {
    DropHidden(family);
    if (family.series.empty() && family.own_series.empty()) continue;
    std::vector<uint32_t> order(family.series.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::tie(family.series[a].identity, family.series[a].labels) <
             std::tie(family.series[b].identity, family.series[b].labels);
    });
    PlannedFamily planned;
    planned.fill = family.fill;
    planned.policy = family.policy;
    planned.cuts = std::move(family.cuts);
    planned.native = family.layout.native.has_value();
    planned.ttl = family.ttl;
    planned.values_per_series = family.layout.ValuesPerSeries();
    planned.first_series = plan.first_part.size();
    planned.series = order.size();
    PlaceParts(family, plan);
    plan.first_value.resize(planned.first_series + order.size());
    const bool counts = family.layout.type != MetricType::kGauge && family.layout.type != MetricType::kUntyped;
    family.layout.series.reserve(order.size() + family.own_series.size());
    for (const uint32_t i : order) {
      plan.first_value[planned.first_series + i] = layout.value_count;
      const int64_t created_ms = counts ? static_cast<int64_t>(family.series[i].birth_unix_ns / kNanosecondsPerMillisecond) : 0;
      family.layout.series.push_back(
          {family.series[i].identity, layout.value_count, std::move(family.series[i].labels), created_ms});
      PlaceScale(family.layout, layout.value_count, family.series[i].scale, plan);
      layout.value_count += planned.values_per_series;
    }
    std::move(family.own_series.begin(), family.own_series.end(), std::back_inserter(family.layout.series));
    plan.families.push_back(std::move(planned));
    layout.families.push_back(std::move(family.layout));
    family = {};  // frees memory before the next family is laid out
  }
  families_.clear();
  plan.first_part.push_back(plan.parts.size());
  plan.layout = std::make_shared<const Layout>(std::move(layout));
  return plan;
}

void DraftLayout::DropHidden(Family& family) {
  if (std::ranges::none_of(family.series, &Series::hidden)) return;
  std::vector<uint32_t> numbers;  // by former number
  std::vector<Series> kept;
  for (Series& series : family.series) {
    numbers.push_back(series.hidden() ? kNoIndex : static_cast<uint32_t>(kept.size()));
    if (!series.hidden()) kept.push_back(std::move(series));
  }
  std::erase_if(family.parts, [&](const auto& part) { return numbers[part.first] == kNoIndex; });
  for (auto& [series, part] : family.parts) series = numbers[series];
  family.series = std::move(kept);
}

// Scales all values of a series but counts.
void DraftLayout::PlaceScale(const FamilyLayout& family, size_t first_value, const Scale& scale, ExposurePlan& plan) {
  if (scale.is_one()) return;
  plan.scaled.push_back({first_value, scale});
  if (family.type == MetricType::kSummary)
    for (size_t quantile = 0; quantile < family.bounds.size(); ++quantile)
      plan.scaled.push_back({first_value + 2 + quantile, scale});
}

// Appends the family's parts, grouped by series.
void DraftLayout::PlaceParts(const Family& family, ExposurePlan& plan) {
  // A counting sort.
  std::vector<size_t> next(family.series.size() + 1);
  for (const auto& [series, part] : family.parts) ++next[series + 1];
  next[0] = plan.parts.size();
  std::partial_sum(next.begin(), next.end(), next.begin());
  plan.first_part.insert(plan.first_part.end(), next.begin(), next.end() - 1);
  plan.parts.resize(next.back());
  for (const auto& [series, part] : family.parts) plan.parts[next[series]++] = part;
}

}  // namespace persia::agent

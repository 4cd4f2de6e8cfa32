#include "remote/series_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "format/number.h"
#include "format/protobuf_wire.h"
#include "remote/write_request.h"

namespace persia::agent {
namespace {

constexpr char kName[] = "__name__";

void InsertLabel(Labels& labels, std::string name, std::string value) {
  const auto place = std::lower_bound(labels.begin(), labels.end(), name,
                                      [](const auto& label, const auto& wanted) { return label.first < wanted; });
  labels.emplace(place, std::move(name), std::move(value));
}

}  // namespace

// The slot of these labels, or the free slot for them.
size_t SeriesTable::SlotOf(std::string_view labels, uint64_t hash) const {
  size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] != kFree && (hashes_[slots_[slot]] != hash || this->labels(slots_[slot]) != labels))
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

bool SeriesTable::Add(std::string_view labels) {
  const uint64_t hash = std::hash<std::string_view>()(labels);
  const size_t slot = SlotOf(labels, hash);
  if (slots_[slot] != kFree) return false;
  slots_[slot] = static_cast<uint32_t>(size());
  text_ += labels;
  ends_.push_back(text_.size());
  hashes_.push_back(hash);
  if (2 * (size() + 1) > slots_.size()) {
    slots_.assign(2 * slots_.size(), kFree);
    for (size_t i = 0; i < size(); ++i) slots_[SlotOf(this->labels(i), hashes_[i])] = static_cast<uint32_t>(i);
  }
  return true;
}

std::optional<uint32_t> SeriesTable::Find(std::string_view labels) const {
  const uint32_t series = slots_[SlotOf(labels, std::hash<std::string_view>()(labels))];
  return series == kFree ? std::nullopt : std::optional(series);
}

SeriesPlan::SeriesPlan(const Layout& layout, const RelabelRules& rules, bool sends_native)
    : layout_(layout), sends_native_(sends_native) {
  for (const FamilyLayout& family : layout.families)
    for (const SeriesLayout& series : family.series) AddSeries(family, series, layout.identities[series.identity], rules);
}

void SeriesPlan::AddSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity& identity,
                           const RelabelRules& rules) {
  Labels labels = series.labels.ToList();
  labels.insert(labels.end(), identity.labels.begin(), identity.labels.end());
  labels.emplace_back("job", identity.job);
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  std::sort(labels.begin(), labels.end());
  const auto add = [&](const char* suffix, const char* extra = nullptr, const std::string& value = {}) {
    Labels line = labels;
    InsertLabel(line, kName, family.name + suffix);
    if (extra != nullptr) InsertLabel(line, extra, value);
    const bool is_quantile = extra != nullptr && family.type == MetricType::kSummary;
    Add(std::move(line), rules, is_quantile ? 0 : series.created_ms);
  };
  if (HasNative(family)) {
    Labels named = labels;
    InsertLabel(named, kName, family.name);
    if (Add(std::move(named), rules, series.created_ms, /*is_native=*/true))
      natives_.push_back({series_.size() - 1, &*family.native, series.first_value});
  }
  if (!HasLines(family)) return;
  switch (family.type) {
    case MetricType::kHistogram:
      for (const double bound : family.bounds) add("_bucket", "le", LabelText(bound));
      add("_bucket", "le", "+Inf");
      break;
    case MetricType::kSummary:
      for (const double quantile : family.bounds) add("", "quantile", LabelText(quantile));
      break;
    default:
      return add("");
  }
  add("_sum");
  add("_count");
}

// False: the series is not sent.
bool SeriesPlan::Add(Labels labels, const RelabelRules& rules, int64_t created_ms, bool is_native) {
  targets_.push_back(kNone);
  if (!Relabel(rules, labels)) return false;
  encoded_.assign(is_native ? 1 : 0, kNativeMark);
  for (const auto& [name, value] : labels) AppendLabel(encoded_, name, value);
  const bool named = std::any_of(labels.begin(), labels.end(), [](const auto& label) { return label.first == kName; });
  if (!named || !series_.Add(encoded_)) {
    if (++conflicting_ == 1)
      for (const auto& [name, value] : labels) example_ += (example_.empty() ? "" : ", ") + name + "=\"" + value + '"';
    return false;
  }
  targets_.back() = static_cast<uint32_t>(series_.size() - 1);
  created_ms_.push_back(created_ms);
  return true;
}

void SeriesPlan::Values(const std::vector<double>& values, std::vector<uint64_t>& bits) const {
  bits.resize(series_.size());
  const uint32_t* target = targets_.data();
  for (const FamilyLayout& family : layout_.families) {
    const size_t bounds = family.bounds.size();
    for (const SeriesLayout& series : family.series) {
      const double* value = values.data() + series.first_value;
      const bool is_absent = IsAbsent(*value);
      const auto put = [&](double number) {
        if (const uint32_t at = *target++; at != kNone) bits[at] = is_absent || IsAbsent(number) ? kAbsent : BitsOf(number);
      };
      if (HasNative(family)) put(static_cast<double>(NativeCount(*family.native, value + 1)));
      if (!HasLines(family)) continue;
      if (family.type == MetricType::kHistogram) {
        ClassicBuffer buffer;
        const double* const counts = family.BucketCounts(value, buffer);
        double count = 0;
        for (size_t i = 0; i <= bounds; ++i) put(count += counts[i]);
        put(value[0]);
        put(count);
      } else if (family.type == MetricType::kSummary) {
        for (size_t i = 0; i < bounds; ++i) put(value[2 + i]);
        put(value[0]);
        put(value[1]);
      } else {
        put(*value);
      }
    }
  }
}

}  // namespace persia::agent

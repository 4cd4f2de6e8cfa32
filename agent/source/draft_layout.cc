#include "source/draft_layout.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>

#include "model/naming.h"

namespace persia::agent {
namespace {

constexpr char kExportedPrefix[] = "exported_";

// Sanitised text is UTF-8, which the separators are not part of.
std::string Key(uint32_t identity, const Labels& labels) {
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

void SetLabel(Labels& labels, const std::string& name, std::string value) {
  const auto has = [&](const std::string& wanted) {
    return std::any_of(labels.begin(), labels.end(), [&](const auto& label) { return label.first == wanted; });
  };
  std::string aside = name;
  while (has(aside)) {
    aside.insert(0, kExportedPrefix);
  }
  for (auto& label : labels) {
    if (label.first == name) {
      label.first = aside;
    }
  }
  labels.emplace_back(name, std::move(value));
  std::sort(labels.begin(), labels.end());
}

size_t DraftLayout::AddFamily(FamilyLayout layout, Fill fill, GaugePolicy policy, std::vector<uint32_t> cuts,
                              std::optional<std::chrono::milliseconds> ttl) {
  Family& family = families_.emplace_back();
  family.layout = std::move(layout);
  family.fill = fill;
  family.policy = policy;
  family.cuts = std::move(cuts);
  family.ttl = ttl;
  return families_.size() - 1;
}

// False: the series of these labels means another one.
bool DraftLayout::TryAddPart(Family& family, uint32_t identity, Labels labels, const std::string& said, Part part,
                             const Scale& scale) {
  std::string key = Key(identity, labels);
  auto found = family.by_key.find(key);
  if (found == family.by_key.end()) {
    if (family.refused.contains(key)) {
      return true;
    }
    if (!Admit(family, identity, labels)) {
      family.refused.insert(std::move(key));
      return true;  // left out and counted
    }
    found = family.by_key.emplace(std::move(key), static_cast<uint32_t>(family.series.size())).first;
    family.series.push_back({identity, std::move(labels), said, scale});
  } else if (family.series[found->second].said != said) {
    return false;
  }
  family.parts.emplace_back(found->second, part);
  return true;
}

// Whether there is room for one more series. The agent's own families always find some: they say what is left out.
bool DraftLayout::Admit(const Family& family, uint32_t identity, const Labels& labels) {
  if (family.fill == Fill::kDropped) {
    return true;
  }
  for (const auto& [name, value] : labels) {
    if (value.size() > limits_.label_value_bytes) {
      ++left_out_.label_value_limit;
      long_.try_emplace(family.layout.name, name);
      return false;
    }
  }
  if (identity >= series_of_.size()) {
    series_of_.resize(identity + 1);
  }
  if (series_of_[identity] >= limits_.series_of_instance) {
    ++left_out_.instance_limit;
  } else if (series_ >= limits_.series) {
    ++left_out_.agent_limit;
  } else {
    ++series_of_[identity];
    ++series_;
    return true;
  }
  over_.try_emplace(identity, family.layout.name);
  return false;
}

void DraftLayout::ReportLimits(const std::vector<Identity>& identities, Diagnostics& diagnostics) const {
  for (const auto& [name, label] : long_) {
    diagnostics.Report("limit", "series of " + name + " are left out whose label " + label + " has more than " +
                                    std::to_string(limits_.label_value_bytes) +
                                    " bytes; shorten the values, or raise max_label_value_bytes");
  }
  for (const auto& [index, name] : over_) {
    const bool of_instance = series_of_[index] >= limits_.series_of_instance;
    std::string who;
    for (const auto& [label, value] : identities[index].labels) {
      who += (who.empty() ? "" : ", ") + label + " " + value;
    }
    diagnostics.Report("limit", "series of " + who + " are left out, the first of them of " + name + ": there are more than " +
                                    (of_instance ? std::to_string(limits_.series_of_instance) + " of one instance"
                                                 : std::to_string(limits_.series) + " in all") +
                                    "; take away labels whose values never come again, or raise " +
                                    (of_instance ? "max_series_per_instance" : "max_series"));
  }
}

void DraftLayout::AddChanged(Diagnostics& diagnostics) {
  // In an order of their own, so that who shows plainly does not depend on who came first.
  std::sort(changed_.begin(), changed_.end(), [](const ChangedPart& a, const ChangedPart& b) {
    return std::tie(a.family, a.said, a.identity, a.part.segment) < std::tie(b.family, b.said, b.identity, b.part.segment);
  });
  for (ChangedPart& changed : changed_) {
    Family& family = families_[changed.family];
    if (TryAddPart(family, changed.identity, changed.labels, changed.said, changed.part, changed.scale)) {
      continue;
    }
    const std::string said = SanitizeText(changed.said);
    diagnostics.Report("collision", "the series " + said + " is told apart by a label source: another one of " +
                                        family.layout.name + " is exposed with the same labels; rename a label");
    SetLabel(changed.labels, kSourceLabel, said);
    if (!TryAddPart(family, changed.identity, changed.labels, changed.said, changed.part, changed.scale)) {
      // Texts that differ only in bytes that are not UTF-8.
      ++left_out_.collision;
      diagnostics.Report("collision", "the series " + said + " is left out: nothing tells it from another one; rename a label");
    }
  }
  changed_.clear();
}

MergePlan DraftLayout::Finish(std::vector<Identity> identities, Diagnostics& diagnostics) {
  AddChanged(diagnostics);
  ReportLimits(identities, diagnostics);
  MergePlan plan;
  plan.left_out = left_out_;
  Layout layout;
  layout.identities = std::move(identities);
  for (Family& family : families_) {
    if (family.series.empty()) {
      continue;
    }
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
    planned.ttl = family.ttl;
    planned.values_per_series = family.layout.ValuesPerSeries();
    planned.first_series = plan.first_part.size();
    planned.series = order.size();
    PlaceParts(family, plan);
    plan.first_value.resize(planned.first_series + order.size());
    family.layout.series.reserve(order.size());
    for (const uint32_t i : order) {
      plan.first_value[planned.first_series + i] = layout.value_count;
      family.layout.series.push_back({family.series[i].identity, layout.value_count, std::move(family.series[i].labels)});
      PlaceScale(family.layout, layout.value_count, family.series[i].scale, plan);
      layout.value_count += planned.values_per_series;
    }
    plan.families.push_back(std::move(planned));
    layout.families.push_back(std::move(family.layout));
    family = {};  // a draft is larger than its layout
  }
  families_.clear();
  plan.first_part.push_back(plan.parts.size());
  plan.layout = std::make_shared<const Layout>(std::move(layout));
  return plan;
}

// Which of a series' values have a unit: all but counts.
void DraftLayout::PlaceScale(const FamilyLayout& family, size_t first_value, const Scale& scale, MergePlan& plan) {
  if (scale.is_one()) {
    return;
  }
  plan.scaled.push_back({first_value, scale});
  if (family.type == MetricType::kSummary) {
    for (size_t quantile = 0; quantile < family.bounds.size(); ++quantile) {
      plan.scaled.push_back({first_value + 2 + quantile, scale});
    }
  }
}

// Appends the family's parts, those of a series together.
void DraftLayout::PlaceParts(const Family& family, MergePlan& plan) {
  // A counting sort: how many parts each series has, where they begin, then each to its place.
  std::vector<size_t> next(family.series.size() + 1);
  for (const auto& [series, part] : family.parts) {
    ++next[series + 1];
  }
  next[0] = plan.parts.size();
  std::partial_sum(next.begin(), next.end(), next.begin());
  plan.first_part.insert(plan.first_part.end(), next.begin(), next.end() - 1);
  plan.parts.resize(next.back());
  for (const auto& [series, part] : family.parts) {
    plan.parts[next[series]++] = part;
  }
}

}  // namespace persia::agent

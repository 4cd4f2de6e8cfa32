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

size_t DraftLayout::AddFamily(FamilyLayout layout, Fill fill, GaugePolicy policy) {
  Family& family = families_.emplace_back();
  family.layout = std::move(layout);
  family.fill = fill;
  family.policy = policy;
  return families_.size() - 1;
}

// False: the series of these labels means another one.
bool DraftLayout::TryAddPart(Family& family, uint32_t identity, Labels labels, const std::string& said, Part part) {
  const auto [found, added] = family.by_key.try_emplace(Key(identity, labels), static_cast<uint32_t>(family.series.size()));
  if (added) {
    family.series.push_back({identity, std::move(labels), said});
  } else if (family.series[found->second].said != said) {
    return false;
  }
  family.parts.emplace_back(found->second, part);
  return true;
}

void DraftLayout::AddChanged(Diagnostics& diagnostics) {
  // In an order of their own, so that who shows plainly does not depend on who came first.
  std::sort(changed_.begin(), changed_.end(), [](const ChangedPart& a, const ChangedPart& b) {
    return std::tie(a.family, a.said, a.identity, a.part.segment) < std::tie(b.family, b.said, b.identity, b.part.segment);
  });
  for (ChangedPart& changed : changed_) {
    Family& family = families_[changed.family];
    if (TryAddPart(family, changed.identity, changed.labels, changed.said, changed.part)) {
      continue;
    }
    const std::string said = SanitizeText(changed.said);
    diagnostics.Report("collision", "the series " + said + " is told apart by a label source: another one of " +
                                        family.layout.name + " is exposed with the same labels; rename a label");
    SetLabel(changed.labels, kSourceLabel, said);
    if (!TryAddPart(family, changed.identity, changed.labels, changed.said, changed.part)) {
      // Texts that differ only in bytes that are not UTF-8.
      diagnostics.Report("collision", "the series " + said + " is left out: nothing tells it from another one; rename a label");
    }
  }
  changed_.clear();
}

MergePlan DraftLayout::Finish(std::vector<Identity> identities, Diagnostics& diagnostics) {
  AddChanged(diagnostics);
  MergePlan plan;
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
    planned.values_per_series = family.layout.ValuesPerSeries();
    planned.first_series = plan.first_part.size();
    planned.series = order.size();
    PlaceParts(family, plan);
    plan.first_value.resize(planned.first_series + order.size());
    family.layout.series.reserve(order.size());
    for (const uint32_t i : order) {
      plan.first_value[planned.first_series + i] = layout.value_count;
      family.layout.series.push_back({family.series[i].identity, layout.value_count, std::move(family.series[i].labels)});
      layout.value_count += planned.values_per_series;
    }
    plan.families.push_back(planned);
    layout.families.push_back(std::move(family.layout));
    family = {};  // a draft is larger than its layout
  }
  families_.clear();
  plan.first_part.push_back(plan.parts.size());
  plan.layout = std::make_shared<const Layout>(std::move(layout));
  return plan;
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

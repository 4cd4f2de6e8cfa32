#include "sink/quarantine.h"

#include <algorithm>
#include <cstdint>

namespace persia::agent {

FamilyNames Quarantine::HeldBack(const std::string& group, TimePoint now, FamilyNames& due) const {
  FamilyNames held;
  due.clear();
  const auto known = groups_.find(group);
  if (known == groups_.end()) return held;
  for (const auto& [family, retry_at] : known->second) (retry_at <= now ? due : held).insert(family);
  return held;
}

FamilyNames Quarantine::Of(const std::string& group) const {
  FamilyNames names;
  const auto known = groups_.find(group);
  if (known == groups_.end()) return names;
  for (const auto& [family, retry_at] : known->second) names.insert(family);
  return names;
}

bool Quarantine::Hold(const std::string& group, const std::string& family, TimePoint now) {
  return groups_[group].insert_or_assign(family, now + retry_).second;
}

void Quarantine::Lift(const std::string& group, const std::string& family) {
  const auto known = groups_.find(group);
  if (known == groups_.end()) return;
  known->second.erase(family);
  if (known->second.empty()) groups_.erase(known);
}

size_t CountShown(const Snapshot& snapshot, size_t identity, std::string_view family) {
  const auto& families = snapshot.layout->families;
  const auto found = std::lower_bound(families.begin(), families.end(), family,
                                      [](const FamilyLayout& one, std::string_view name) { return one.name < name; });
  if (found == families.end() || found->name != family) return 0;
  return static_cast<size_t>(std::count_if(found->series.begin(), found->series.end(), [&](const SeriesLayout& series) {
    return series.identity == identity && !IsAbsent(snapshot.values[series.first_value]);
  }));
}

}  // namespace persia::agent

// Families that a gateway refuses, held back so that the rest of their group arrives.
//
// A family is held back for one group only, and tried again after a while: the gateway accepts it once the group of another job
// that clashes with it is gone.
//
// Thread safety: none, it belongs to the thread that pushes.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "format/exposition_plan.h"

namespace persia::agent {

class Quarantine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Quarantine(std::chrono::milliseconds retry) : retry_(retry) {}

  // The families to leave out of the group now. Families whose retry time has come are in `due` instead.
  FamilyNames HeldBack(const std::string& group, TimePoint now, FamilyNames& due) const {
    FamilyNames held;
    due.clear();
    const auto known = groups_.find(group);
    if (known == groups_.end()) return held;
    for (const auto& [family, retry_at] : known->second) (retry_at <= now ? due : held).insert(family);
    return held;
  }
  // All families that are held back of a group, due or not.
  [[nodiscard]] FamilyNames All(const std::string& group) const {
    FamilyNames none_due;
    return HeldBack(group, TimePoint::min(), none_due);
  }
  // True if the family was not held back before.
  bool Hold(const std::string& group, const std::string& family, TimePoint now) {
    return groups_[group].insert_or_assign(family, now + retry_).second;
  }
  void Lift(const std::string& group, const std::string& family) {
    if (const auto known = groups_.find(group); known != groups_.end()) known->second.erase(family);
  }
  void LiftAll() { groups_.clear(); }
  // Forgets groups that are not among these.
  template <class Groups>
  void KeepOnly(const Groups& groups) {
    std::erase_if(groups_, [&](const auto& group) { return !groups.contains(group.first); });
  }

 private:
  const std::chrono::milliseconds retry_;
  std::map<std::string, std::map<std::string, TimePoint>> groups_;  // when each family is tried again
};

}  // namespace persia::agent

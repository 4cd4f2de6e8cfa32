// Families that a gateway refuses, held back so that all else of their group arrives.
//
// A family is held back for one group: another role's of the same name may be welcome. From time to time it is tried again; a
// gateway that has changed its mind, since the other job's group is gone, ends its quarantine.
//
// Thread safety: none, it belongs to the thread that pushes.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "format/exposition_plan.h"
#include "model/snapshot.h"

namespace persia::agent {

class Quarantine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Quarantine(std::chrono::milliseconds retry) : retry_(retry) {}

  // What to leave out of the group now. Families whose time has come are not among them but in `due`.
  FamilyNames HeldBack(const std::string& group, TimePoint now, FamilyNames& due) const;
  // All that is held back of a group, due or not.
  [[nodiscard]] FamilyNames Of(const std::string& group) const;
  // True if the family was not held back before: then it is worth a word.
  bool Hold(const std::string& group, const std::string& family, TimePoint now);
  void Lift(const std::string& group, const std::string& family);
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

// Series of the family that the identity shows in this snapshot; 0 if there is no such family.
size_t CountShown(const Snapshot& snapshot, size_t identity, std::string_view family);

}  // namespace persia::agent

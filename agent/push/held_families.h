// Families that are left out of a group, so that the rest of it arrives: those that the gateway refuses, and the largest ones
// of a group that is too large.
//
// Thread safety: none, it belongs to the thread that pushes.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/exposition_plan.h"

namespace persia::agent {

// A refused family is held back for one group only, and tried again after a while: the gateway accepts it once the group of
// another job that clashes with it is gone.
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
    std::erase_if(
        groups_, [&](const auto& group) { return !groups.contains(group.first); });
  }

 private:
  const std::chrono::milliseconds retry_;
  std::map<std::string, std::map<std::string, TimePoint>> groups_;  // when each family is tried again
};

// Keeps a pushed group below a limit by leaving out whole families, the largest first.
//
// A family stays left out until it fits with an eighth of the limit to spare, so that no family appears and disappears from
// push to push.
//
// A server in front of the gateway may have a lower limit than the setting. After a refusal of a body for its size, the limit
// is three quarters of that size, for a while: so at most a quarter more than necessary is left out.
//
// Thread safety: none, it belongs to the thread that pushes.
class SizeLimit {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `retry`: when the setting is tried again after a refusal.
  explicit SizeLimit(size_t most_bytes, std::chrono::milliseconds retry = std::chrono::hours(1))
      : setting_(most_bytes), retry_(retry) {}

  // After a refusal of a body of this size. False: it is small, so there must be another reason.
  bool Lower(size_t refused, TimePoint now);
  // The setting is the limit again.
  void Lift() { lowered_.reset(); }
  void LiftIfDue(TimePoint now) {
    if (now >= retry_at_) Lift();
  }
  [[nodiscard]] bool is_lowered() const { return lowered_.has_value(); }
  [[nodiscard]] size_t most_bytes() const { return lowered_.value_or(setting_); }

  // Whether Choose must be called for a group of this size.
  [[nodiscard]] bool Applies(const std::string& group, size_t bytes) const {
    return bytes > most_bytes() || left_out_.contains(group);
  }
  // The families to leave out of a group. `added`: of these families, those that were not left out last time.
  FamilyNames Choose(const std::string& group, const std::vector<FamilySize>& families, std::vector<FamilySize>& added);
  // The families that were left out of a group last time.
  [[nodiscard]] FamilyNames LeftOut(const std::string& group) const {
    const auto known = left_out_.find(group);
    return known == left_out_.end() ? FamilyNames() : known->second;
  }
  template <class Groups>
  void KeepOnly(const Groups& groups) {
    std::erase_if(
        left_out_, [&](const auto& group) { return !groups.contains(group.first); });
  }

 private:
  const size_t setting_;
  const std::chrono::milliseconds retry_;
  std::optional<size_t> lowered_;
  TimePoint retry_at_{};
  std::map<std::string, FamilyNames> left_out_;  // by group
};

}  // namespace persia::agent

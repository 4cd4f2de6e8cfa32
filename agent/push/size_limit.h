// Keeps a pushed group below a limit by leaving out whole families, the largest first.
//
// A family stays left out until it fits with an eighth of the limit to spare, so that no family appears and disappears from
// push to push.
//
// A server in front of the gateway may have a lower limit than the setting. After a refusal of a body for its size, the limit
// is three quarters of that size, for a while: so at most a quarter more than necessary is left out.
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
    std::erase_if(left_out_, [&](const auto& group) { return !groups.contains(group.first); });
  }

 private:
  const size_t setting_;
  const std::chrono::milliseconds retry_;
  std::optional<size_t> lowered_;
  TimePoint retry_at_{};
  std::map<std::string, FamilyNames> left_out_;  // by group
};

}  // namespace persia::agent

// Keeps a pushed group below a limit by leaving out whole families, the largest first.
//
// A family stays left out until it fits with an eighth of the limit to spare, so that no family appears and disappears from
// push to push.
//
// Thread safety: none, it belongs to the thread that pushes.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "format/exposition_plan.h"

namespace persia::agent {

class SizeLimit {
 public:
  explicit SizeLimit(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Whether Choose must be called for a group of this size.
  [[nodiscard]] bool Applies(const std::string& group, size_t bytes) const {
    return bytes > most_bytes_ || left_out_.contains(group);
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
  const size_t most_bytes_;
  std::map<std::string, FamilyNames> left_out_;  // by group
};

}  // namespace persia::agent

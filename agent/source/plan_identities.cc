#include "source/plan_identities.h"

#include <algorithm>

#include "model/naming.h"

namespace persia::agent {

Identity ExposedIdentity(const SegmentIdentity& process, const MergeIdentity& identity) {
  Identity exposed{identity.job, {}};
  exposed.labels.emplace_back("instance", "rep_" + std::to_string(process.replica));
  if (!identity.ip_addr.empty()) {
    exposed.labels.emplace_back("ip_addr", SanitizeText(identity.ip_addr));
  }
  if (!process.role.empty()) {
    exposed.labels.emplace_back(kRoleLabel, SanitizeText(process.role));
  }
  return exposed;
}

void PlanIdentities::Number(const MergeIdentity& common) {
  const auto identity_of = [&](const Segment& segment, const std::string& role) {
    if (role.empty()) {
      return ExposedIdentity(segment.process, common);
    }
    SegmentIdentity moved = segment.process;
    moved.role = role;
    return ExposedIdentity(moved, common);
  };
  for (const Segment& segment : segments_) {
    for (const auto& [role, index] : segment.indexes) {
      all_.push_back(identity_of(segment, role));
    }
  }
  std::sort(all_.begin(), all_.end());
  all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
  for (Segment& segment : segments_) {
    for (auto& [role, index] : segment.indexes) {
      const auto at = std::lower_bound(all_.begin(), all_.end(), identity_of(segment, role));
      index = static_cast<uint32_t>(at - all_.begin());
    }
  }
}

}  // namespace persia::agent

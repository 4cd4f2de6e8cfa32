#include "exposure/identities.h"

#include <algorithm>

#include "naming/naming.h"

namespace persia::agent {

Identity ProcessIdentity(std::string_view role, int32_t replica, const IdentityRules& rules) {
  Identity identity{rules.job, {{"instance", "rep_" + std::to_string(replica)}}};
  if (!rules.ip_addr.empty()) identity.labels.emplace_back("ip_addr", rules.ip_addr);
  if (!role.empty()) identity.labels.emplace_back(kRoleLabel, SanitizeText(role));
  return identity;
}

Identity ExposedIdentity(const Identity& process, const IdentityRules& rules) {
  std::map<std::string, std::string> labels(process.labels.begin(), process.labels.end());
  labels.insert(rules.labels.begin(), rules.labels.end());
  Identity exposed{process.job, {labels.begin(), labels.end()}};
  return rules.agent_id.empty() ? exposed : WithAgentLabel(std::move(exposed), rules.agent_id);
}

Identity PlanIdentities::IdentityOf(const Segment& segment, const std::string& role) const {
  return ExposedIdentity(ProcessIdentity(role.empty() ? segment.role : role, segment.replica, rules_), rules_);
}

void PlanIdentities::Number() {
  for (const Segment& segment : segments_) {
    for (const auto& [role, index] : segment.indexes) {
      all_.push_back(IdentityOf(segment, role));
    }
  }
  std::sort(all_.begin(), all_.end());
  all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
  for (Segment& segment : segments_) {
    for (auto& [role, index] : segment.indexes) {
      index = Find(IdentityOf(segment, role));
    }
  }
}

uint32_t PlanIdentities::Find(const Identity& exposed) const {
  return static_cast<uint32_t>(std::lower_bound(all_.begin(), all_.end(), exposed) - all_.begin());
}

}  // namespace persia::agent

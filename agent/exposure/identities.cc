#include "exposure/identities.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "naming/naming.h"

namespace persia::agent {
namespace {

constexpr char kExportedPrefix[] = "exported_";

// The label that the exposition of this type adds.
std::string_view TypeLabel(MetricType type) {
  if (type == MetricType::kHistogram) return "le";
  if (type == MetricType::kSummary) return "quantile";
  return "";
}

}  // namespace

bool HasLabel(const Labels& labels, std::string_view name) {
  return std::any_of(
      labels.begin(), labels.end(), [&](const auto& label) { return label.first == name; });
}

void SetLabel(Labels& labels, const std::string& name, std::string value) {
  std::string renamed = name;
  while (HasLabel(labels, renamed)) renamed.insert(0, kExportedPrefix);
  for (auto& label : labels)
    if (label.first == name) label.first = renamed;
  labels.emplace_back(name, std::move(value));
  std::sort(labels.begin(), labels.end());
}

bool FitLabels(Labels& labels, MetricType type, const Identity& identity) {
  const std::string_view type_label = TypeLabel(type);
  const auto reserved = [&](std::string_view name) {
    return name == "job" || name == type_label || HasLabel(identity.labels, name);
  };
  const auto fits = [&](const auto& label) { return !label.second.empty() && !reserved(label.first); };
  if (std::all_of(labels.begin(), labels.end(), fits)) return false;
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  for (auto& [name, value] : labels) {
    if (!reserved(name)) continue;
    std::string renamed = kExportedPrefix + name;
    while (reserved(renamed) || HasLabel(labels, renamed)) renamed.insert(0, kExportedPrefix);
    name = std::move(renamed);
  }
  std::sort(labels.begin(), labels.end());
  return true;
}

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
  for (const Segment& segment : segments_)
    for (const auto& [role, index] : segment.indexes) all_.push_back(IdentityOf(segment, role));
  std::sort(all_.begin(), all_.end());
  all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
  for (Segment& segment : segments_)
    for (auto& [role, index] : segment.indexes) index = Find(IdentityOf(segment, role));
}

uint32_t PlanIdentities::Find(const Identity& exposed) const {
  return static_cast<uint32_t>(std::lower_bound(all_.begin(), all_.end(), exposed) - all_.begin());
}

}  // namespace persia::agent

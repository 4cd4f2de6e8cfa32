#include "push/owner_watch.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

// All agents of the job together use at most 1/kShare of the gateway's time; shorter waits are left out.
constexpr int64_t kShare = 20;
constexpr milliseconds kLeastWait = std::chrono::seconds(1);
constexpr milliseconds kLongestWait = std::chrono::hours(24);
// The first check of replica n is delayed by at most n * n times this: n agents may read pages of n groups each.
constexpr milliseconds kSpread{250};
constexpr int64_t kMostAgents = 100'000;

// 7 for instance="rep_7"; 0 for any other.
int64_t ReplicaOf(const Identity& identity) {
  int64_t replica = 0;
  for (const auto& [name, value] : identity.labels) {
    if (name == "instance" && value.starts_with("rep_")) {
      std::from_chars(value.data() + 4, value.data() + value.size(), replica);
    }
  }
  return std::clamp<int64_t>(replica, 0, kMostAgents);
}

std::string ToText(const Identity& identity) {
  std::string text = "job=\"" + identity.job + '"';
  for (const auto& [name, value] : identity.labels) text += ", " + name + "=\"" + value + '"';
  return '{' + text + '}';
}

}  // namespace

bool OwnerWatch::IsDue(const std::set<Identity>& arrived, TimePoint now) {
  if (arrived.empty()) return false;
  if (!std::exchange(first_look_set_, true)) not_before_ = now + FirstWait(arrived);
  return now >= not_before_ && (looks_ < 2 || now >= next_look_);
}

void OwnerWatch::Update(const std::set<Identity>& arrived, const std::optional<Owners>& owners, TimePoint began,
                        TimePoint ended) {
  ++looks_;
  next_look_ = began + pause_.Next();
  if (owners) {
    std::set<std::string> agents{ledger_.agent_id()};
    for (const auto& [group, owner] : *owners) agents.insert(owner.agent_id);
    agents_ = static_cast<int64_t>(agents.size());
  } else {
    agents_ = std::min(8 * agents_, kMostAgents);  // too many agents may be the reason
  }
  const auto took = std::chrono::duration_cast<milliseconds>(ended - began);
  const milliseconds wait = std::min(kShare * agents_ * took, kLongestWait);
  if (wait >= kLeastWait) not_before_ = began + wait;
  if (owners) CompareOwners(arrived, *owners);
}

milliseconds OwnerWatch::FirstWait(const std::set<Identity>& arrived) const {
  int64_t replica = kMostAgents;
  for (const Identity& identity : arrived) replica = std::min(replica, ReplicaOf(identity));
  uint32_t random = 0;  // 16 bits, from the agent's id
  const std::string& id = ledger_.agent_id();
  std::from_chars(id.data(), id.data() + 4, random, 16);
  return std::min(kSpread * replica * replica * random / 0xffff, kLongestWait);
}

void OwnerWatch::CompareOwners(const std::set<Identity>& arrived, const Owners& owners) {
  const auto other = [&](const Identity& identity) -> std::string {
    const auto owner = owners.find(OwnerKey(identity));
    return owner == owners.end() || owner->second.agent_id == ledger_.agent_id() ? "" : owner->second.agent_id;
  };
  std::vector<Identity> shared;
  std::string first_other;  // the smallest id of the others
  for (const Identity& identity : arrived) {
    const std::string id = other(identity);
    if (id.empty()) continue;
    shared.push_back(identity);
    if (first_other.empty() || id < first_other) first_other = id;
  }
  conflicts_ = shared.size();
  if (shared.empty()) {
    if (!logged_.empty()) LogInfo("groups.conflict", "no other agent pushes the groups of this one any more");
    logged_.clear();
    return;
  }
  const bool adds_label = !ledger_.adds_agent_label() && first_other < ledger_.agent_id();
  const std::string what = ToText(shared.front()) +
                           (shared.size() > 1 ? " and " + std::to_string(shared.size() - 1) + " more" : "") +
                           ": this one, whose id is " + ledger_.agent_id() + ", and " + first_other;
  if (logged_ != what) {
    LogWarning("groups.conflict",
               "two agents push " + what + ", and each overwrites the other's values; give them different REPLICA_INDEX, " +
                   "ip_addr or labels. Until then " +
                   (adds_label ? "this one adds the label agent=\"" + ledger_.agent_id() + "\" to all its series"
                               : "the one with the larger id adds a label `agent` to all its series"));
    logged_ = what;
  }
  if (!adds_label) return;
  // This agent must not delete a group that has another owner.
  std::vector<GroupLedger::Group> lost;
  for (const GroupLedger::Group& group : ledger_.groups()) {
    if (group.gateway == gateway_ && !other(group.identity).empty()) lost.push_back(group);
  }
  ledger_.Remove(lost);
  ledger_.AddAgentLabel();
}

}  // namespace persia::agent

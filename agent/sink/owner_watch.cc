#include "sink/owner_watch.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

// What costs less than this of the gateway's time is not worth a pause.
constexpr milliseconds kWorthAWait = std::chrono::seconds(1);
constexpr int64_t kMostAgents = 100'000;

// Of instance="rep_7" 7, of any other 0.
int64_t ReplicaOf(const Identity& identity) {
  int64_t replica = 0;
  for (const auto& [name, value] : identity.labels) {
    if (name == "instance" && value.starts_with("rep_")) {
      std::from_chars(value.data() + 4, value.data() + value.size(), replica);
    }
  }
  return std::clamp<int64_t>(replica, 0, kMostAgents);
}

std::string InWords(const Identity& identity) {
  std::string text = "job=\"" + identity.job + '"';
  for (const auto& [name, value] : identity.labels) text += ", " + name + "=\"" + value + '"';
  return '{' + text + '}';
}

}  // namespace

void OwnerWatch::Look(const std::set<Identity>& former) {
  const auto now = options_.now();
  if (former.empty()) return;
  if (!std::exchange(spread_, true)) not_before_ = now + FirstWait(former);
  if (now < not_before_ || (looks_ >= 2 && now < next_look_)) return;
  ++looks_;
  pause_ = std::clamp(2 * pause_, options_.first_pause, options_.longest_pause);
  next_look_ = now + pause_;
  Owners owners;
  // A gateway that does not say keeps nobody from pushing to it.
  const bool told = options_.read_owners(former.begin()->job, owners).result == PushResult::kSuccess;
  if (told) {
    std::set<std::string> agents{options_.ledger->agent_id()};
    for (const auto& [group, owner] : owners) agents.insert(owner.agent_id);
    agents_ = static_cast<int64_t>(agents.size());
  } else {
    agents_ = std::min(8 * agents_, kMostAgents);  // that may be why it does not
  }
  const auto took = std::chrono::duration_cast<milliseconds>(options_.now() - now);
  const milliseconds wait = std::min(options_.share * agents_ * took, options_.longest_wait);
  if (wait >= kWorthAWait) not_before_ = now + wait;
  if (told) Conclude(former, owners);
}

milliseconds OwnerWatch::FirstWait(const std::set<Identity>& former) const {
  int64_t replica = kMostAgents;
  for (const Identity& identity : former) replica = std::min(replica, ReplicaOf(identity));
  // The agent's id is as good as a die.
  uint32_t die = 0;
  const std::string& id = options_.ledger->agent_id();
  std::from_chars(id.data(), id.data() + 4, die, 16);
  return std::min(options_.spread * replica * replica * die / 0xffff, options_.longest_wait);
}

void OwnerWatch::Conclude(const std::set<Identity>& former, const Owners& owners) {
  GroupLedger& ledger = *options_.ledger;
  const auto other = [&](const Identity& identity) -> std::string {
    const auto owner = owners.find(OwnerKey(identity));
    return owner == owners.end() || owner->second.agent_id == ledger.agent_id() ? "" : owner->second.agent_id;
  };
  std::vector<Identity> shared;
  std::string first_other;  // the smallest id: who has it stays
  for (const Identity& identity : former) {
    const std::string id = other(identity);
    if (id.empty()) continue;
    shared.push_back(identity);
    if (first_other.empty() || id < first_other) first_other = id;
  }
  conflicts_ = shared.size();
  if (shared.empty()) {
    if (!told_.empty()) options_.log.note("groups.conflict", "no other agent pushes the groups of this one any more");
    told_.clear();
    return;
  }
  const bool aside = !ledger.stands_aside() && first_other < ledger.agent_id();
  const std::string what = InWords(shared.front()) +
                           (shared.size() > 1 ? " and " + std::to_string(shared.size() - 1) + " more" : "") +
                           ": this one, whose id is " + ledger.agent_id() + ", and " + first_other;
  if (told_ != what) {
    options_.log.warn("groups.conflict",
                      "two agents push " + what + ", and each replaces what the other counted; give them a REPLICA_INDEX, " +
                          "an ip_addr or labels of their own. Until then " +
                          (aside ? "this one adds the label agent=\"" + ledger.agent_id() + "\" to all that it exports"
                                 : "the one with the larger id adds a label `agent` to all that it exports"));
    told_ = what;
  }
  if (!aside) return;
  // What has another owner is no longer ours to end.
  std::vector<GroupLedger::Group> lost;
  for (const GroupLedger::Group& group : ledger.groups()) {
    if (group.gateway == options_.gateway && !other(group.identity).empty()) lost.push_back(group);
  }
  ledger.Remove(lost);
  ledger.StandAside();
}

}  // namespace persia::agent

#include "sink/group_endings.h"

#include <algorithm>
#include <utility>

#include "format/grouping_key.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

// Who it is, wherever it runs: its address, and the label of an agent that stands aside, tell the same process apart.
Identity Whoever(Identity identity) {
  std::erase_if(identity.labels, [](const auto& label) { return label.first == "ip_addr" || label.first == "agent"; });
  return identity;
}

}  // namespace

size_t GroupEndings::EndLeft(const std::set<Identity>& pushed, milliseconds limit) {
  std::set<std::string> jobs;
  std::set<Identity> present;
  for (const Identity& identity : pushed) {
    jobs.insert(identity.job);
    present.insert(Whoever(identity));
  }
  std::vector<Group> left;
  for (const Group& group : options_.ledger->groups()) {
    const bool elsewhere = group.gateway != options_.gateway;
    if (!jobs.contains(group.identity.job) || (!elsewhere && pushed.contains(group.identity))) continue;
    if (elsewhere || options_.end_absent || present.contains(Whoever(group.identity))) left.push_back(group);
  }
  std::string error;
  return left.empty() ? 0 : End(std::move(left), limit, error);
}

Status GroupEndings::EndAll(const std::string& job, milliseconds limit, size_t& ended) {
  troubles_.clear();  // there is no later time
  std::vector<Group> groups;
  for (const Group& group : options_.ledger->groups()) {
    if (group.identity.job == job) groups.push_back(group);
  }
  std::string error;
  ended = End(std::move(groups), limit, error);
  const auto still = std::count_if(options_.ledger->groups().begin(), options_.ledger->groups().end(),
                                   [&](const Group& group) { return group.identity.job == job; });
  if (still == 0) return Done{};
  return Error{std::to_string(still) + " groups of the job are still on the gateway: " + error};
}

// Groups stand in the order of their gateways. The ledger is written once, at the end: whoever is killed before deletes a
// group a second time, which changes nothing.
size_t GroupEndings::End(std::vector<Group> groups, milliseconds limit, std::string& error) {
  const auto deadline = options_.now() + limit;
  const auto time_left = [&] { return std::chrono::duration_cast<milliseconds>(deadline - options_.now()); };
  std::vector<Group> ended;
  std::vector<Group> not_here;  // not ours to end under that address
  for (auto begin = groups.begin(); begin != groups.end();) {
    const auto end = std::find_if(begin, groups.end(), [&](const Group& group) {
      return group.gateway != begin->gateway || group.identity.job != begin->identity.job;
    });
    const std::vector<Group> here(begin, end);
    begin = end;
    const std::string& gateway = here.front().gateway;
    const auto trouble = troubles_.find(gateway);
    if (trouble != troubles_.end() && options_.now() < trouble->second.retry_at) continue;
    Owners owners;
    Attempt attempt = options_.read_owners(gateway, here.front().identity.job, time_left(), owners);
    // A gateway that does not show its page to us is taken at our word.
    if (attempt.result == PushResult::kRejected) attempt = {};
    for (const Group& group : here) {
      if (attempt.result != PushResult::kSuccess) break;
      const auto owner = owners.find(OwnerKey(group.identity));
      const bool known = owner != owners.end();
      const bool by_another = known && owner->second.agent_id != options_.ledger->agent_id();
      // What was pushed to the present address and shows under a former one: both are one gateway, and the group is not over.
      const bool by_us_elsewhere = known && gateway != options_.gateway && owner->second.gateway_hash == present_hash_;
      if (by_another || by_us_elsewhere) {
        not_here.push_back(group);
        continue;
      }
      attempt = options_.send_delete(gateway + GroupingKeyPath(group.identity), time_left());
      if (attempt.result == PushResult::kSuccess) ended.push_back(group);
    }
    if (attempt.result == PushResult::kSuccess) {
      troubles_.erase(gateway);
    } else {
      error = gateway + ": " + attempt.error;
      Fail(gateway, here, error);
    }
  }
  not_here.insert(not_here.end(), ended.begin(), ended.end());
  options_.ledger->Remove(not_here);
  return ended.size();
}

void GroupEndings::Fail(const std::string& gateway, const std::vector<Group>& groups, const std::string& error) {
  const auto now = options_.now();
  const bool first = !troubles_.contains(gateway);
  Trouble& trouble = troubles_[gateway];
  if (first) trouble.since = now;
  trouble.pause = std::clamp(2 * trouble.pause, options_.first_pause, options_.longest_pause);
  trouble.retry_at = now + trouble.pause;
  const std::string what = std::to_string(groups.size()) + " groups that nothing pushes any more, the first is " +
                           GroupingKeyPath(groups.front().identity);
  if (now - trouble.since >= options_.give_up_after) {
    options_.log.warn("groups.end", "given up ending " + what + ": " + error + "; delete them on the gateway's page");
    options_.ledger->Remove(groups);
    troubles_.erase(gateway);
  } else if (first) {
    options_.log.warn("groups.end", "cannot end " + what + ": " + error + "; it is tried again");
  }
}

}  // namespace persia::agent

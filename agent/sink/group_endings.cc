#include "sink/group_endings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/grouping_key.h"
#include "sink/group_pins.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

}  // namespace

size_t GroupEndings::EndLeft(const std::set<std::string>& jobs, const std::set<Identity>& present,
                             const std::set<Identity>& arrived, milliseconds limit) {
  std::set<Identity> here;
  for (const Identity& identity : arrived) here.insert(Whoever(identity));
  std::vector<Group> left;
  for (const Group& group : options_.ledger->groups()) {
    if (!jobs.contains(group.identity.job) || !options_.takes(group.identity)) continue;
    const bool elsewhere = group.gateway != options_.gateway;
    // What has not arrived at the present gateway has its last values at the former one.
    if (present.contains(group.identity) && !(elsewhere && arrived.contains(group.identity))) continue;
    if (elsewhere || options_.end_absent || here.contains(Whoever(group.identity))) left.push_back(group);
  }
  if (left.empty()) {
    troubles_.clear();
    return 0;
  }
  std::string error;
  return End(left, limit, error);
}

Status GroupEndings::EndAll(const std::string& job, milliseconds limit, size_t& ended) {
  troubles_.clear();  // there is no later time
  silent_.clear();
  const auto left = [&] {
    std::vector<Group> groups;
    for (const Group& group : options_.ledger->groups()) {
      if (group.identity.job == job && options_.takes(group.identity)) groups.push_back(group);
    }
    return groups;
  };
  std::string error;
  ended = End(left(), limit, error);
  const size_t still = left().size();
  if (still == 0) return Done{};
  return Error{std::to_string(still) + " groups of the job are still on the gateway: " + error};
}

// Groups stand in the order of their gateways. The ledger is written once, at the end: whoever is killed before deletes a
// group a second time, which changes nothing.
size_t GroupEndings::End(const std::vector<Group>& groups, milliseconds limit, std::string& error) {
  const auto deadline = options_.now() + limit;
  const auto time_left = [&] { return std::chrono::duration_cast<milliseconds>(deadline - options_.now()); };
  std::erase_if(troubles_, [&](const auto& one) { return !std::binary_search(groups.begin(), groups.end(), one.first); });
  std::vector<Group> ended;
  std::vector<Group> not_here;  // not ours to end under that address
  for (auto begin = groups.begin(); begin != groups.end();) {
    const auto end = std::find_if(begin, groups.end(), [&](const Group& group) {
      return group.gateway != begin->gateway || group.identity.job != begin->identity.job;
    });
    std::vector<Group> here;
    std::copy_if(begin, end, std::back_inserter(here), [&](const Group& group) { return IsDue(group); });
    begin = end;
    if (here.empty()) continue;
    const std::string& gateway = here.front().gateway;
    Owners owners;
    Attempt attempt = options_.read_owners(gateway, here.front().identity.job, time_left(), owners);
    // A gateway that does not show its page to us is taken at our word.
    if (attempt.result == PushResult::kRejected) attempt = {};
    if (attempt.result != PushResult::kSuccess) error = gateway + ": " + attempt.error;
    std::vector<Group> failed;
    for (const Group& group : here) {
      // One group that is refused keeps no other; without an answer there will be none to the next.
      if (attempt.result > PushResult::kRejected) {
        failed.push_back(group);
        continue;
      }
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
      if (attempt.result == PushResult::kSuccess) {
        ended.push_back(group);
      } else {
        failed.push_back(group);
        error = gateway + ": " + attempt.error;
      }
    }
    const bool answers = attempt.result <= PushResult::kRejected;
    if (answers) silent_.erase(gateway);
    if (!failed.empty()) Fail(failed, answers, error);
  }
  not_here.insert(not_here.end(), ended.begin(), ended.end());
  options_.ledger->Remove(not_here);
  for (const Group& group : not_here) troubles_.erase(group);
  return ended.size();
}

bool GroupEndings::IsDue(const Group& group) const {
  const auto now = options_.now();
  const auto silent = silent_.find(group.gateway);
  const auto trouble = troubles_.find(group);
  return (silent == silent_.end() || now >= silent->second.at) &&
         (trouble == troubles_.end() || now >= trouble->second.retry.at);
}

// `groups`: of one gateway, which `answers`, but refuses these, or does not.
void GroupEndings::Fail(const std::vector<Group>& groups, bool answers, const std::string& error) {
  const auto now = options_.now();
  const auto put_off = [&](Retry& retry) {
    retry.pause = std::clamp(2 * retry.pause, options_.first_pause, options_.longest_pause);
    retry.at = now + retry.pause;
  };
  const std::string& gateway = groups.front().gateway;
  const bool told = !answers && silent_.contains(gateway);
  if (!answers) put_off(silent_[gateway]);
  std::vector<Group> fresh;
  std::vector<Group> given_up;
  for (const Group& group : groups) {
    const auto [trouble, is_new] = troubles_.try_emplace(group, Trouble{.since = now});
    if (answers) put_off(trouble->second.retry);
    if (is_new) fresh.push_back(group);
    if (now - trouble->second.since >= options_.give_up_after) given_up.push_back(group);
  }
  const auto what = [](const std::vector<Group>& those) {
    return std::to_string(those.size()) + " groups that nothing pushes any more, the first is " +
           GroupingKeyPath(those.front().identity);
  };
  if (!fresh.empty() && !told) {
    options_.log.warn("groups.end", "cannot end " + what(fresh) + ": " + error + "; it is tried again");
  }
  if (given_up.empty()) return;
  options_.log.warn("groups.end", "given up ending " + what(given_up) + ": " + error + "; delete them on the gateway's page");
  options_.ledger->Remove(given_up);
  for (const Group& group : given_up) troubles_.erase(group);
  silent_.erase(gateway);
}

}  // namespace persia::agent

#include "push/group_reaper.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "format/group_renderer.h"

namespace persia::agent {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGiveUpAfter = std::chrono::hours(24);

// Without the labels that may change while it is the same process: its address, and `agent`.
Identity StableIdentity(Identity identity) {
  std::erase_if(identity.labels, [](const auto& label) { return label.first == "ip_addr" || label.first == "agent"; });
  return identity;
}

}  // namespace

GroupReaper::Deleted GroupReaper::DeleteAbsent(const std::set<std::string>& jobs, const std::set<Identity>& present,
                                               const std::set<Identity>& arrived, milliseconds limit) {
  std::set<Identity> here;
  for (const Identity& identity : arrived) here.insert(StableIdentity(identity));
  std::vector<Group> absent;
  for (const Group& group : ledger_.groups()) {
    if (!jobs.contains(group.identity.job)) continue;
    const bool elsewhere = group.gateway != connection_.url();
    // A group that has not arrived at the present gateway has its last values at the former one.
    if (present.contains(group.identity) && !(elsewhere && arrived.contains(group.identity))) continue;
    if (elsewhere || delete_absent_ || here.contains(StableIdentity(group.identity))) absent.push_back(group);
  }
  if (absent.empty()) {
    failures_.clear();
    return {};
  }
  std::string error;
  return Delete(absent, limit, error);
}

Status GroupReaper::DeleteAll(const std::string& job, milliseconds limit, size_t& deleted) {
  failures_.clear();  // there is no later retry
  unreachable_.clear();
  const auto left = [&] {
    std::vector<Group> groups;
    for (const Group& group : ledger_.groups())
      if (group.identity.job == job) groups.push_back(group);
    return groups;
  };
  std::string error;
  deleted = Delete(left(), limit, error).groups;
  const size_t still = left().size();
  if (still == 0) return Done{};
  // It is not known of all that they have arrived.
  return Error{std::to_string(still) + " groups of the job were not deleted, and may still be on the gateway: " + error};
}

// `groups` are sorted by gateway. The ledger is written once, at the end: an agent that is killed before deletes a group a
// second time, which changes nothing.
GroupReaper::Deleted GroupReaper::Delete(const std::vector<Group>& groups, milliseconds limit, std::string& error) {
  const auto deadline = connection_.Now() + limit;
  std::erase_if(failures_, [&](const auto& one) { return !std::binary_search(groups.begin(), groups.end(), one.first); });
  Deleted deleted;
  std::vector<Group> done;
  for (auto begin = groups.begin(); begin != groups.end();) {
    const std::string& gateway = begin->gateway;
    const auto end = std::find_if(begin, groups.end(), [&](const Group& group) { return group.gateway != gateway; });
    const bool is_former = gateway != connection_.url();
    Attempt attempt;
    bool tried = false;
    std::vector<Group> failed;
    for (; begin != end; ++begin) {
      if (!IsDue(*begin)) continue;
      // After a refusal the next group is tried; after no answer it is not.
      if (!tried || attempt.result <= PushResult::kRejected) {
        const auto left = std::chrono::duration_cast<milliseconds>(deadline - connection_.Now());
        attempt = connection_.Delete(gateway + GroupingKeyPath(begin->identity), /*anonymous=*/is_former, left);
        tried = true;
      }
      if (attempt.result == PushResult::kSuccess) {
        ++deleted.groups;
        if (is_former) deleted.elsewhere.insert(begin->identity);
        done.push_back(*begin);
      } else {
        failed.push_back(*begin);
        error = gateway + ": " + attempt.error;
      }
    }
    const bool answers = attempt.result <= PushResult::kRejected;
    if (tried && answers) unreachable_.erase(gateway);
    if (!failed.empty()) Fail(failed, answers, error);
  }
  ledger_.Remove(done);
  for (const Group& group : done) failures_.erase(group);
  return deleted;
}

bool GroupReaper::IsDue(const Group& group) const {
  const auto now = connection_.Now();
  const auto gateway = unreachable_.find(group.gateway);
  const auto failure = failures_.find(group);
  return (gateway == unreachable_.end() || now >= gateway->second.at) &&
         (failure == failures_.end() || now >= failure->second.retry.at);
}

// `groups` of one gateway could not be deleted: it refused, or it does not answer.
void GroupReaper::Fail(const std::vector<Group>& groups, bool answers, const std::string& error) {
  const auto now = connection_.Now();
  const auto back_off = [&](Retry& retry) { retry.at = now + retry.backoff.Next(); };
  const std::string& gateway = groups.front().gateway;
  const bool logged = !answers && unreachable_.contains(gateway);
  if (!answers) back_off(unreachable_[gateway]);
  std::vector<Group> fresh;
  std::vector<Group> given_up;
  for (const Group& group : groups) {
    const auto [failure, is_new] = failures_.try_emplace(group, Failure{.since = now});
    if (answers) back_off(failure->second.retry);
    if (is_new) fresh.push_back(group);
    if (now - failure->second.since >= kGiveUpAfter) given_up.push_back(group);
  }
  const auto describe = [](const std::vector<Group>& those) {
    return std::to_string(those.size()) + " groups that nothing pushes any more, the first is " +
           GroupingKeyPath(those.front().identity);
  };
  if (!fresh.empty() && !logged)
    LogWarning("groups.end", "cannot delete " + describe(fresh) + ": " + error + "; it is tried again");
  if (given_up.empty()) return;
  LogWarning("groups.end", "gave up deleting " + describe(given_up) + ": " + error + "; delete them on the gateway's page");
  ledger_.Remove(given_up);
  for (const Group& group : given_up) failures_.erase(group);
  unreachable_.erase(gateway);
}

}  // namespace persia::agent

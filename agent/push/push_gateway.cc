#include "push/push_gateway.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>

#include "base/log.h"
#include "base/timing.h"
#include "format/group_renderer.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

// How long deleting groups may delay the next push.
constexpr milliseconds kDeleteLimit = std::chrono::seconds(2);

// The snapshot without the families whose type differs from `former`, the layout that was pushed last; nothing if there are
// none.
std::optional<Snapshot> WithoutChangedTypes(const Snapshot& snapshot, const std::shared_ptr<const Layout>& former) {
  if (former == nullptr || former == snapshot.layout) return std::nullopt;
  std::map<std::string_view, MetricType> types;
  for (const FamilyLayout& family : former->families) types.emplace(family.name, family.type);
  auto layout = std::make_shared<Layout>(*snapshot.layout);
  const size_t changed = std::erase_if(layout->families, [&](const FamilyLayout& family) {
    const auto type = types.find(family.name);
    return type != types.end() && type->second != family.type;
  });
  if (changed == 0) return std::nullopt;
  Snapshot without = snapshot;
  without.layout = std::move(layout);
  return without;
}

}  // namespace

// A group that has not arrived yet, and how its last attempt ended.
struct PushGateway::Group {
  size_t identity = 0;
  Attempt last = Attempt::NotSent();
};

PushGateway::PushGateway(Options options)
    : options_(std::move(options)),
      name_(options_.address.HostAndPort()),
      connection_({.address = options_.address,
                   .http = options_.http,
                   .gzip = options_.gzip,
                   .status_limit = options_.status_limit,
                   .now = options_.now,
                   .sleep = options_.sleep}),
      sender_(connection_, {.format = options_.format,
                            .max_push_bytes = options_.max_push_bytes,
                            .quarantine_retry = options_.quarantine_retry}) {
  if (options_.ledger != nullptr) reaper_.emplace(connection_, *options_.ledger, options_.delete_absent_groups);
}

Status PushGateway::Push(const Snapshot& snapshot) {
  const auto begin = options_.now();
  connection_.Begin(begin + options_.time_budget);
  report_ = {};
  if (snapshot.layout == nullptr) return Done{};

  if (lift_quarantine_.exchange(false)) sender_.LiftQuarantine();
  if (auto deferred = WaitForRetryAfter()) return *std::move(deferred);
  SetKeys(snapshot);
  arrived_.clear();
  present_.clear();
  AddToLedger(snapshot);
  // A gateway refuses a family whose type has changed as long as another group has it with the former type: each group is
  // pushed without it first.
  if (const auto without = WithoutChangedTypes(snapshot, layout_); without && keys_.size() > 1)
    for (size_t i = 0; i < keys_.size() && !connection_.interrupted(); ++i)
      sender_.Push({*without, i, GroupingKeyPath(keys_[i])});  // the result of the following push counts
  layout_ = snapshot.layout;

  std::deque<Group> pending;
  for (size_t i = 0; i < keys_.size(); ++i) pending.push_back({.identity = (first_group_ + i) % keys_.size()});
  std::string first_error;
  PushRounds(snapshot, pending, first_error);
  first_group_ = pending.empty() ? 0 : pending.front().identity;
  // The error of a group that was tried says more.
  std::stable_partition(pending.begin(), pending.end(), [](const Group& group) { return group.last.sent; });
  for (Group& group : pending) {
    if (connection_.interrupted()) {
      const std::string cause = group.last.sent ? std::move(group.last.error) : "";
      group.last = Attempt::Interrupted();
      if (!cause.empty()) group.last.error += "; before, " + cause;
    }
    Count(group.last, GroupingKeyPath(keys_[group.identity]), first_error);
  }
  CountMissing(snapshot);
  // A refused group counts as present, so that its refusal does not keep absent groups from being deleted.
  if (reaper_ && report_.result <= PushResult::kRejected) {
    std::set<std::string> jobs;
    for (const Identity& key : keys_) jobs.insert(key.job);
    const GroupReaper::Deleted deleted = reaper_->DeleteAbsent(jobs, present_, arrived_, kDeleteLimit);
    report_.groups_deleted = deleted.groups;
    // A former address may be another name of this gateway: these groups may have been deleted here, too.
    for (size_t i = 0; i < keys_.size(); ++i)
      if (deleted.elsewhere.contains(keys_[i])) sender_.Push({snapshot, i, GroupingKeyPath(keys_[i])});
  }
  if (options_.ledger != nullptr) report_.ledger_groups = options_.ledger->groups().size();
  if (!arrived_.empty()) sender_.LearnFormat();
  report_.requests = connection_.traffic().requests;
  report_.bytes = connection_.traffic().bytes;
  report_.http_status = connection_.traffic().http_status;
  report_.format = sender_.format();
  report_.duration = options_.now() - begin;
  if (report_.groups_failed == 0) return Done{};
  return Error{name() + ": " + std::to_string(report_.groups_failed) + " of " + std::to_string(report_.groups) +
               " groups did not arrive; " + first_error};
}

// An error if the gateway's Retry-After ends too late.
std::optional<Error> PushGateway::WaitForRetryAfter() {
  const auto left = std::chrono::ceil<milliseconds>(not_before_ - options_.now());
  if (left.count() <= 0 || (left < options_.time_budget / 2 && connection_.Pause(left))) return std::nullopt;
  report_.result = connection_.interrupted() ? PushResult::kInterrupted : PushResult::kDeferred;
  return Error{name() + ": nothing was pushed, the gateway asked for a pause (Retry-After) of another " +
               std::to_string(left.count() / 1000 + 1) + " s"};
}

// Returns when no group is pending, or no time is left for another round.
void PushGateway::PushRounds(const Snapshot& snapshot, std::deque<Group>& pending, std::string& first_error) {
  Backoff backoff(options_.first_pause, options_.longest_pause);
  for (;;) {
    const std::optional<milliseconds> retry_after = PushRound(snapshot, pending, first_error);
    if (pending.empty()) return;
    if (retry_after) not_before_ = options_.now() + *retry_after;
    if (retry_after && *retry_after >= connection_.TimeLeft()) {
      LogWarning("push.deferred", name() + " asks for a pause (Retry-After): nothing is pushed for " +
                                      std::to_string(retry_after->count() / 1000) + " s");
      return;
    }
    if (!connection_.Pause(backoff.NextJittered(retry_after))) return;
  }
}

// Tries each pending group once and leaves those to retry. If a group gets no answer, the next would get none: the round ends,
// and that group goes to the back of the queue, in case it is the reason. Retry-After also ends the round, and is returned.
std::optional<milliseconds> PushGateway::PushRound(const Snapshot& snapshot, std::deque<Group>& pending,
                                                   std::string& first_error) {
  std::deque<Group> again;
  std::optional<milliseconds> retry_after;
  while (!pending.empty() && connection_.TimeLeft().count() > 0 && !connection_.interrupted() && !retry_after) {
    Group group = std::move(pending.front());
    pending.pop_front();
    const Identity& key = keys_[group.identity];
    const std::string path = GroupingKeyPath(key);
    std::optional<Attempt> attempt = sender_.Push({snapshot, group.identity, path});
    if (!attempt) continue;
    present_.insert(key);
    std::string cause = group.last.sent ? std::move(group.last.error) : "";
    group.last = *std::move(attempt);
    if (group.last.result == PushResult::kInterrupted && !cause.empty()) group.last.error += "; before, " + cause;
    if (!group.last.may_pass_later) {
      if (group.last.result == PushResult::kSuccess) arrived_.insert(key);
      Count(group.last, path, first_error);
      continue;
    }
    if (group.last.retry_after) retry_after = std::min(*group.last.retry_after, options_.longest_retry_after);
    again.push_back(std::move(group));
    if (again.back().last.result == PushResult::kUnreachable) break;
  }
  if (retry_after)
    for (Group& group : pending) group.last = again.back().last;  // the answer applies to them, too
  std::move(again.begin(), again.end(), std::back_inserter(pending));
  return retry_after;
}

void PushGateway::SetKeys(const Snapshot& snapshot) {
  keys_ = snapshot.layout->identities;
  // The collection may be older than the decision that this agent adds the label.
  if (options_.ledger == nullptr || !options_.ledger->adds_agent_label()) return;
  for (Identity& key : keys_) key = WithAgentLabel(std::move(key), options_.ledger->agent_id());
}

// Before the first PUT of a new group.
void PushGateway::AddToLedger(const Snapshot& snapshot) {
  GroupLedger* const ledger = options_.ledger;
  if (ledger == nullptr) return;
  const std::set<GroupLedger::Group> known = ledger->groups();
  std::vector<bool> shown(keys_.size());  // the others are not pushed
  for (const FamilyLayout& family : snapshot.layout->families) {
    for (const SeriesLayout& series : family.series)
      if (!IsAbsent(snapshot.values[series.first_value])) shown[series.identity] = true;
  }
  std::vector<GroupLedger::Group> groups;
  for (size_t i = 0; i < keys_.size(); ++i) {
    GroupLedger::Group group{connection_.url(), keys_[i]};
    if (shown[i] && !known.contains(group)) groups.push_back(std::move(group));
  }
  groups.empty() ? ledger->Flush() : ledger->Add(groups);
}

Status PushGateway::DeleteGroups(const std::string& job, milliseconds limit) {
  report_.groups_deleted = 0;
  if (!reaper_) return Done{};
  const Status deleted = reaper_->DeleteAll(job, limit, report_.groups_deleted);
  report_.ledger_groups = options_.ledger->groups().size();
  return deleted;
}

void PushGateway::Count(const Attempt& attempt, const std::string& path, std::string& first_error) {
  ++report_.groups;
  if (attempt.result == PushResult::kSuccess) return;
  ++report_.groups_failed;
  report_.result = std::max(report_.result, attempt.result);
  if (first_error.empty()) first_error = path + ": " + attempt.error;
}

void PushGateway::CountMissing(const Snapshot& snapshot) {
  std::set<std::string> paths;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const std::string path = GroupingKeyPath(keys_[i]);
    const GroupSender::Missing missing = sender_.CountMissing({snapshot, i, path});
    report_.quarantined_series += missing.quarantined;
    report_.dropped_series += missing.dropped;
    paths.insert(path);
  }
  sender_.KeepOnly(paths);
}
}  // namespace persia::agent

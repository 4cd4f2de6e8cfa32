#include "sink/push_gateway.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "format/grouping_key.h"
#include "net/refused.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

// How long a gateway that takes pushes may think about what it is.
constexpr milliseconds kAskingLimit = std::chrono::seconds(1);

const Attempt kNotTried{PushResult::kUnreachable, true, "not tried, the time for this push was used up"};

// The group of an agent that leaves the plain one to another.
Identity WithAgent(Identity identity, const std::string& id) {
  const auto place =
      std::find_if(identity.labels.begin(), identity.labels.end(), [](const auto& label) { return label.first >= "agent"; });
  if (place == identity.labels.end() || place->first != "agent") {
    identity.labels.insert(place, {"agent", id});
  } else {
    place->second = id;
  }
  return identity;
}

PushGateway::Options Named(PushGateway::Options options) {
  if (options.name.empty()) options.name = options.address.HostAndPort();
  return options;
}

}  // namespace

std::string_view ToString(PushResult result) {
  switch (result) {
    case PushResult::kSuccess:
      return "success";
    case PushResult::kRejected:
      return "rejected";
    case PushResult::kServerError:
      return "server_error";
    case PushResult::kUnreachable:
      return "unreachable";
    case PushResult::kInterrupted:
      return "interrupted";
    case PushResult::kDeferred:
      break;
  }
  return "deferred";
}

// A group that has not arrived yet, and how its last try ended.
struct PushGateway::Group {
  size_t identity = 0;
  Attempt last = kNotTried;
};

PushGateway::PushGateway(Options options)
    : options_(Named(std::move(options))),
      client_(options_.http),
      sender_({.format = options_.format,
               .is_push_gateway = [this] { return IsPushGatewayThere(); },
               .max_push_bytes = options_.max_push_bytes,
               .quarantine_retry = options_.quarantine_retry,
               .send = [this](std::string_view method, const std::string& path, GroupFormat format, const std::string& body,
                              Refusal& refusal) { return Send(method, path, format, body, refusal); },
               .redact = [this](std::string& text) { client_.Redact(text); },
               .now = options_.now,
               // It quotes the gateway, which may have quoted us.
               .log = {.note = options_.log.note,
                       .warn =
                           [this](std::string_view event, std::string message) {
                             client_.Redact(message);
                             options_.log.warn(event, message);
                           }}}),
      pins_(options_.pins),
      jitter_(std::random_device()()) {
  if (options_.ledger == nullptr) return;
  const std::string gateway = options_.address.Url();
  sender_.set_trailer(OwnerSnapshot(options_.ledger->agent_id(), gateway));
  const auto read_owners = [this](const std::string& from, const std::string& job, milliseconds timeout, Owners& owners) {
    return ReadOwners(from, job, timeout, owners);
  };
  endings_.emplace(GroupEndings::Options{
      .ledger = options_.ledger,
      .gateway = gateway,
      .end_absent = options_.end_absent_groups,
      .takes = [this](const Identity& identity) { return Takes(identity); },
      .send_delete =
          [this](const std::string& url, milliseconds timeout) {
            return timeout.count() > 0 ? Ask({.method = "DELETE", .url = url, .timeout = timeout, .anonymous = !IsOurs(url)})
                                       : kNotTried;
          },
      .read_owners = read_owners,
      .now = options_.now,
      .log = options_.log});
  watch_.emplace(OwnerWatch::Options{
      .ledger = options_.ledger,
      .gateway = gateway,
      .read_owners = [=, this](const std::string& job,
                               Owners& owners) { return read_owners(gateway, job, options_.time_budget / 4, owners); },
      .now = options_.now,
      .log = options_.log});
}

Status PushGateway::Push(const Snapshot& snapshot) {
  const auto begin = options_.now();
  deadline_ = begin + options_.time_budget;
  report_ = {};
  if (snapshot.layout == nullptr) return Done{};

  if (lift_quarantine_.exchange(false)) sender_.LiftQuarantine();
  if (auto deferred = Deferred()) return *std::move(deferred);
  SetKeys(snapshot);
  if (watch_) {
    // What this agent has left is nobody's to quarrel about.
    std::erase_if(arrived_, [&](const Identity& key) {
      return std::none_of(taken_.begin(), taken_.end(), [&](size_t identity) { return keys_[identity] == key; });
    });
    watch_->Look(arrived_);
    SetKeys(snapshot);  // it may stand aside now
  }
  arrived_.clear();
  present_.clear();
  EnterGroups(snapshot);
  if (const auto without = types_.WithoutChanged(snapshot); without && keys_.size() > 1) {
    for (size_t i = 0; i < taken_.size() && !client_.interrupted(); ++i) {
      sender_.Push(*without, taken_[i], GroupingKeyPath(keys_[taken_[i]]));  // how it ends is seen by the push that follows
    }
  }
  types_.Take(snapshot);

  std::deque<Group> pending;
  for (const size_t identity : taken_) pending.push_back({.identity = identity});
  const auto first = std::find_if(pending.begin(), pending.end(), [&](const Group& g) { return g.identity >= first_group_; });
  std::rotate(pending.begin(), first, pending.end());
  std::string first_error;
  milliseconds pause = options_.first_pause;
  do {
    const std::optional<milliseconds> asked = PushRound(snapshot, pending, first_error);
    if (pending.empty()) break;
    if (asked) not_before_ = options_.now() + *asked;
    if (asked && *asked >= TimeLeft()) {
      options_.log.warn("push.deferred", name() + " asks to be left alone for " + std::to_string(asked->count() / 1000) +
                                             " s (Retry-After): nothing is pushed until then");
      break;
    }
    if (asked ? !Pause(*asked, std::max(*asked, pause)) : !Pause(pause / 2, pause)) break;
    pause = std::min(2 * pause, options_.longest_pause);
  } while (true);

  first_group_ = pending.empty() ? 0 : pending.front().identity;
  // What went wrong says more than what was not tried after it.
  std::stable_partition(pending.begin(), pending.end(), [](const Group& group) { return group.last.error != kNotTried.error; });
  for (Group& group : pending) {
    if (client_.interrupted()) group.last = {PushResult::kInterrupted, false, "the push was interrupted"};
    Count(group.last, GroupingKeyPath(keys_[group.identity]), first_error);
  }
  CountMissing(snapshot);
  // One that is refused, perhaps for ever, is as present as the others, and keeps none of those that left.
  if (endings_ && report_.result <= PushResult::kRejected) {
    std::set<std::string> jobs;  // also of groups that others take: this gateway may have none but those to end
    for (const Identity& key : keys_) jobs.insert(key.job);
    report_.groups_deleted = endings_->EndLeft(jobs, present_, arrived_, options_.ending_limit);
  }
  if (options_.ledger != nullptr) report_.ledger_groups = options_.ledger->groups().size();
  if (watch_) report_.identity_conflicts = watch_->conflicts();
  if (!arrived_.empty()) sender_.LearnFormat();
  report_.format = sender_.format();
  report_.duration = options_.now() - begin;
  if (report_.groups_failed == 0) return Done{};
  return Error{name() + ": " + std::to_string(report_.groups_failed) + " of " + std::to_string(report_.groups) +
               " groups did not arrive; " + first_error};
}

std::optional<Error> PushGateway::Deferred() {
  const auto left = std::chrono::ceil<milliseconds>(not_before_ - options_.now());
  if (left.count() <= 0 || (left < options_.time_budget / 2 && Pause(left, left))) return std::nullopt;
  report_.result = client_.interrupted() ? PushResult::kInterrupted : PushResult::kDeferred;
  return Error{name() + ": nothing was pushed, the gateway asks to be left alone for another " +
               std::to_string(left.count() / 1000 + 1) + " s (Retry-After)"};
}

// Tries each pending group once and leaves those that are to be tried again. Without an answer to one group there will be none
// to the next: the round ends, and that group goes to the back of the queue, lest it be itself what the gateway stumbles over.
// It ends as well when the gateway asks to be left alone: returns for how long.
std::optional<milliseconds> PushGateway::PushRound(const Snapshot& snapshot, std::deque<Group>& pending,
                                                   std::string& first_error) {
  std::deque<Group> again;
  std::optional<milliseconds> asked;
  while (!pending.empty() && TimeLeft().count() > 0 && !client_.interrupted() && !asked) {
    Group group = std::move(pending.front());
    pending.pop_front();
    const std::string path = GroupingKeyPath(keys_[group.identity]);
    std::optional<Attempt> attempt = sender_.Push(snapshot, group.identity, path);
    if (!attempt) continue;
    present_.insert(keys_[group.identity]);
    group.last = *std::move(attempt);
    if (group.last.may_pass_later) {
      const bool no_answer = group.last.result == PushResult::kUnreachable;
      if (group.last.retry_after) asked = std::min(*group.last.retry_after, options_.longest_retry_after);
      again.push_back(std::move(group));
      if (no_answer) break;
    } else {
      if (group.last.result == PushResult::kSuccess) arrived_.insert(keys_[group.identity]);
      Count(group.last, path, first_error);
    }
  }
  if (asked) {
    for (Group& group : pending) group.last = again.back().last;  // meant for them as well
  }
  std::move(again.begin(), again.end(), std::back_inserter(pending));
  return asked;
}

Attempt PushGateway::Send(std::string_view method, const std::string& path, GroupFormat format, const std::string& body,
                          Refusal& refusal) {
  const milliseconds time_left = TimeLeft();
  if (time_left.count() <= 0) return kNotTried;
  HttpRequest request{.method = std::string(method),
                      .url = options_.address.Url() + path,
                      .headers = {{"Content-Type", std::string(ContentType(format))}},
                      .body = body,
                      .timeout = time_left,
                      .receive = [&](int status, std::string_view piece) { return status != 400 || refusal.Add(piece); }};
  const bool pays = body.size() >= kGzipFromBytes && !options_.address.IsLoopback();
  if (options_.gzip == Gzip::kOn || (options_.gzip == Gzip::kAuto && pays)) {
    // Without memory to compress, it goes as it is.
    if (compressor_.Compress(body, compressed_).ok()) {
      request.body = compressed_;
      request.headers.emplace_back("Content-Encoding", "gzip");
    }
  }
  ++report_.requests;
  report_.bytes += request.body.size();
  Attempt attempt = Ask(request);
  if (attempt.status != 0) report_.http_status = attempt.status;
  return attempt;
}

// An answer over another connection says nothing of the one over which the last push went.
bool PushGateway::IsPushGatewayThere() {
  const milliseconds limit = std::min(kAskingLimit, TimeLeft() / 2);
  if (limit.count() <= 0) return false;
  const Result<HttpResponse> answer =
      client_.Send({.method = "GET", .url = options_.address.Url() + std::string(kGatewayStatusPath), .timeout = limit});
  return answer.ok() && !answer.value().new_connection && IsPushGateway(answer.value().status, answer.value().body);
}

Attempt PushGateway::Ask(const HttpRequest& request) {
  const Result<HttpResponse> response = client_.Send(request);
  if (client_.interrupted()) return {PushResult::kInterrupted, false, "the push was interrupted"};
  if (!response.ok()) {
    return {.result = PushResult::kUnreachable,
            .may_pass_later = true,
            .error = response.error(),
            .closed_without_answer = client_.closed_without_answer()};
  }
  const int status = response.value().status;
  const bool new_connection = response.value().new_connection;
  if (status == 200 || status == 202) return {.status = status, .new_connection = new_connection};
  const bool may_pass_later = MayPassLater(status);
  Attempt attempt{may_pass_later ? PushResult::kServerError : PushResult::kRejected,
                  may_pass_later,
                  "status " + std::to_string(status) + ": " + QuotedBody(response.value().body, options_.max_quoted_bytes),
                  status,
                  std::nullopt,
                  new_connection};
  if (status == 429 || status == 503) attempt.retry_after = response.value().retry_after;
  return attempt;
}

Attempt PushGateway::ReadOwners(const std::string& gateway, const std::string& job, milliseconds timeout, Owners& owners) {
  if (timeout.count() <= 0) return kNotTried;
  OwnerScan scan(job);
  const Attempt attempt =
      Ask({.method = "GET",
           .url = gateway + "/metrics",
           .timeout = timeout,
           .anonymous = !IsOurs(gateway + "/metrics"),
           .receive = [&](int status, std::string_view piece) { return status != 200 || scan.Add(piece); }});
  if (attempt.result == PushResult::kSuccess && scan.cut_short()) {
    return {PushResult::kServerError, true, "its page of metrics is too long to find out who pushed what", attempt.status};
  }
  owners = scan.owners();
  return attempt;
}

void PushGateway::SetKeys(const Snapshot& snapshot) {
  keys_ = snapshot.layout->identities;
  taken_.clear();
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (Takes(keys_[i])) taken_.push_back(i);
  }
  if (options_.ledger == nullptr || !options_.ledger->stands_aside()) return;
  for (Identity& key : keys_) key = WithAgent(std::move(key), options_.ledger->agent_id());
}

void PushGateway::EnterGroups(const Snapshot& snapshot) {
  GroupLedger* const ledger = options_.ledger;
  if (ledger == nullptr) return;
  const std::string gateway = options_.address.Url();
  const std::set<GroupLedger::Group> known = ledger->groups();
  std::vector<bool> is_new(keys_.size());
  for (const size_t i : taken_) is_new[i] = !known.contains({gateway, keys_[i]});
  if (std::find(is_new.begin(), is_new.end(), true) == is_new.end()) {
    ledger->Flush();
    return;
  }
  std::vector<bool> shown(keys_.size());  // the others are not pushed
  for (const FamilyLayout& family : snapshot.layout->families) {
    for (const SeriesLayout& series : family.series) {
      if (!IsAbsent(snapshot.values[series.first_value])) shown[series.identity] = true;
    }
  }
  std::vector<GroupLedger::Group> entries;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (is_new[i] && shown[i]) entries.push_back({gateway, keys_[i]});
  }
  ledger->Add(entries);
}

Status PushGateway::EndGroups(const std::string& job, milliseconds limit) {
  report_.groups_deleted = 0;
  if (!endings_) return Done{};
  const Status ended = endings_->EndAll(job, limit, report_.groups_deleted);
  report_.ledger_groups = options_.ledger->groups().size();
  return ended;
}

// Takes down how a group ended.
void PushGateway::Count(const Attempt& attempt, const std::string& where, std::string& first_error) {
  ++report_.groups;
  if (attempt.result == PushResult::kSuccess) return;
  ++report_.groups_failed;
  report_.result = std::max(report_.result, attempt.result);
  if (first_error.empty()) first_error = where + ": " + attempt.error;
}

void PushGateway::CountMissing(const Snapshot& snapshot) {
  std::set<std::string> paths;
  for (const size_t i : taken_) {
    const std::string path = GroupingKeyPath(keys_[i]);
    const GroupSender::Missing missing = sender_.CountMissing(snapshot, i, path);
    report_.quarantined_series += missing.quarantined;
    report_.dropped_series += missing.dropped;
    paths.insert(path);
  }
  sender_.KeepOnly(paths);
}

bool PushGateway::Takes(const Identity& identity) const {
  return pins_ == nullptr || pins_->Of(identity) == options_.address.Url();
}

bool PushGateway::IsOurs(const std::string& url) const {
  const auto is_of = [&url](const std::string& gateway) { return url.starts_with(gateway + "/metrics"); };
  return is_of(options_.address.Url()) ||
         (pins_ != nullptr && std::any_of(pins_->gateways().begin(), pins_->gateways().end(), is_of));
}

bool PushGateway::Pause(milliseconds least, milliseconds most) {
  const milliseconds pause(std::uniform_int_distribution<milliseconds::rep>(least.count(), most.count())(jitter_));
  if (pause >= TimeLeft() || client_.interrupted()) return false;
  if (options_.sleep) return options_.sleep(pause);
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, pause, [this] { return client_.interrupted(); });
}

milliseconds PushGateway::TimeLeft() const { return std::chrono::duration_cast<milliseconds>(deadline_ - options_.now()); }

void PushGateway::Interrupt() {
  const std::lock_guard lock(mutex_);
  client_.Interrupt();
  wake_.notify_all();
}

void PushGateway::Rearm() { client_.Rearm(); }

}  // namespace persia::agent

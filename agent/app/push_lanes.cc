#include "app/push_lanes.h"

#include <algorithm>
#include <utility>

#include "app/beside.h"

namespace persia::agent {

struct PushLanes::Way {
  explicit Way(PushTransport carrier) : transport(std::move(carrier)) {}

  PushTransport transport;  // replaced while nothing is under way
  StateLog push_log{"push"};
  StateLog slow_log{"push.slow"};
  PushReport last;                 // guarded by the lanes' mutex_
  std::unique_ptr<Pusher> pusher;  // last: its thread uses the rest
};

PushLanes::PushLanes(OwnMetrics& own, Pace pace) : own_(own), pace_(pace) {}

PushLanes::~PushLanes() = default;

void PushLanes::Start() {
  const std::lock_guard changing(changing_);
  started_ = true;
  for (Way* way : Ways()) {
    way->pusher->Start();
  }
}

void PushLanes::Use(const std::function<std::vector<PushTransport>()>& make) {
  const std::lock_guard changing(changing_);
  if (finished_) {
    return;
  }
  switching_ = true;
  for (Way* way : Ways()) {
    way->transport.interrupt();
  }
  for (Way* way : Ways()) {
    way->pusher->Hold();
  }
  switching_ = false;
  std::vector<PushTransport> transports = make();
  std::vector<std::unique_ptr<Way>> gone;  // ends when it is out of the others' sight
  std::vector<std::unique_ptr<Way>> used;
  {
    const std::lock_guard lock(mutex_);
    gone.swap(ways_);
  }
  for (PushTransport& transport : transports) {
    own_.AddGateway(transport.name);
    const auto same = std::find_if(gone.begin(), gone.end(),
                                   [&](const auto& way) { return way != nullptr && way->transport.name == transport.name; });
    if (same != gone.end()) {
      (*same)->transport = std::move(transport);
      used.push_back(std::move(*same));
      continue;
    }
    Way& way = *used.emplace_back(std::make_unique<Way>(std::move(transport)));
    way.pusher =
        std::make_unique<Pusher>(Pusher::Options{.push = [this, &way](const Snapshot& snapshot) { return Push(way, snapshot); },
                                                 .interrupt = [&way] { way.transport.interrupt(); },
                                                 .rearm = [&way] { way.transport.rearm(); },
                                                 .limit = pace().limit,
                                                 .limit_if_away = pace().limit_if_away});
    if (started_) {
      way.pusher->Start();
    }
  }
  for (const auto& way : gone) {
    if (way != nullptr) {
      own_.RetireGateway(way->transport.name);
    }
  }
  const std::lock_guard lock(mutex_);
  ways_ = std::move(used);
  for (const auto& way : ways_) {
    if (given_up_) {
      way->pusher->Interrupt();
    } else {
      way->transport.rearm();
    }
    way->pusher->Release();
  }
}

// While changing_ is held, none of them goes.
std::vector<PushLanes::Way*> PushLanes::Ways() {
  const std::lock_guard lock(mutex_);
  std::vector<Way*> ways;
  for (const auto& way : ways_) {
    ways.push_back(way.get());
  }
  return ways;
}

bool PushLanes::Offer(const std::shared_ptr<const Snapshot>& snapshot) {
  const std::lock_guard lock(mutex_);
  bool taken = true;
  for (const auto& way : ways_) {
    taken = way->pusher->Offer(snapshot) && taken;
  }
  return taken;
}

void PushLanes::Insist(const std::shared_ptr<const Snapshot>& snapshot) {
  const std::lock_guard lock(mutex_);
  for (const auto& way : ways_) {
    way->pusher->Insist(snapshot);
  }
}

// Asks each in a thread of its own: one that is away must not take the time of the others.
Status PushLanes::AtOnce(const std::function<Status(Way&)>& what) {
  const std::vector<Way*> ways = Ways();
  std::vector<Status> came(ways.size(), Status(Done{}));
  Beside others;
  for (size_t i = 1; i < ways.size(); ++i) {
    others.Run([&, i] { came[i] = what(*ways[i]); });
  }
  if (!ways.empty()) {
    came[0] = what(*ways[0]);
  }
  others.Join();
  std::string errors;
  for (const Status& status : came) {
    if (!status.ok()) {
      errors += (errors.empty() ? "" : "; ") + status.error();
    }
  }
  return errors.empty() ? Status(Done{}) : Status(Error{errors});
}

Status PushLanes::Finish(const std::shared_ptr<const Snapshot>& last) {
  finishing_ = true;
  const std::lock_guard changing(changing_);
  finished_ = true;
  return AtOnce([&last](Way& way) { return way.pusher->Finish(last); });
}

Status PushLanes::EndGroups() {
  const std::lock_guard changing(changing_);
  return AtOnce([this](Way& way) {
    if (!way.transport.end_groups) {
      return Status(Done{});
    }
    if (!given_up_) {
      way.transport.rearm();  // the last push may have been cut short
    }
    const Pace now = pace();
    return way.transport.end_groups(way.pusher->state().last_error.empty() ? now.limit : now.limit_if_away);
  });
}

void PushLanes::Interrupt() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  for (const auto& way : ways_) {
    way->pusher->Interrupt();
  }
}

void PushLanes::SetPace(Pace pace) {
  const std::lock_guard lock(mutex_);
  pace_ = pace;
  for (const auto& way : ways_) {
    way->pusher->SetLimits(pace.limit, pace.limit_if_away);
  }
}

PushLanes::Pace PushLanes::pace() {
  const std::lock_guard lock(mutex_);
  return pace_;
}

std::vector<PushLanes::Lane> PushLanes::lanes() {
  const std::lock_guard lock(mutex_);
  std::vector<Lane> lanes;
  for (const auto& way : ways_) {
    lanes.push_back({way->transport.name, way->last.groups, way->last.format, way->pusher->state()});
  }
  return lanes;
}

// In the way's push thread.
Status PushLanes::Push(Way& way, const Snapshot& snapshot) {
  if (snapshot.layout == nullptr) {
    return Done{};
  }
  const Status status = way.transport.push(snapshot);
  const PushReport report = way.transport.report();
  if (Note(way, report) && report.result != PushResult::kDeferred &&
      !finishing_) {  // the sink, or whoever waits for the end, says how it went
    Tell(way, report, status);
  }
  return status;
}

// False: nothing was to be pushed there.
bool PushLanes::Note(Way& way, const PushReport& report) {
  const std::string& name = way.transport.name;
  const std::lock_guard lock(mutex_);
  const bool has_part = ways_.size() < 2 || report.groups > 0 || report.result != PushResult::kSuccess;
  if (has_part) {
    own_.PushDone(name, ToString(report.result), report.duration.count(), report.bytes);
  } else {
    own_.GatewayIdle(name);  // nobody knows whether it is there
  }
  if (report.result == PushResult::kDeferred) {
    return true;
  }
  way.last = report;
  PushReport all;
  for (const auto& one : ways_) {
    all.quarantined_series += one->last.quarantined_series;
    all.dropped_series += one->last.dropped_series;
    all.identity_conflicts += one->last.identity_conflicts;
  }
  own_.SetQuarantinedSeries("gateway", all.quarantined_series);
  own_.SetDroppedSeries("push_bytes", all.dropped_series);
  own_.SetIdentityConflicts(all.identity_conflicts);
  own_.SetGroups(report.ledger_groups);
  own_.GroupsDeleted(report.groups_deleted);
  return has_part;
}

void PushLanes::Tell(Way& way, const PushReport& report, const Status& status) {
  const std::string& name = way.transport.name;
  if (report.result == PushResult::kInterrupted && switching_) {
    return;  // cut short for other gateways
  }
  if (!status.ok()) {
    way.push_log.Bad(ToString(report.result), "cannot push to " + status.error());
    return;
  }
  way.push_log.Good("pushing to " + name);
  if (report.duration > pace().interval) {
    way.slow_log.Bad("slow", "pushes to " + name + " take longer than the push interval; ticks are left out");
  } else {
    way.slow_log.Recovered("pushes take less than the push interval again");
  }
}

}  // namespace persia::agent

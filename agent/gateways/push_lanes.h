// A push thread for each gateway, so that one that is slow or down delays no other.
//
// Each gateway's thread receives each snapshot and pushes the groups that are pinned to the gateway (push/group_pins.h). No
// group moves to another gateway while its own is down: when its own returns, it would show the old values beside the new ones.
//
//   PushLanes lanes(own, {.interval = 10s});
//   lanes.Use(make_sinks);                      // before Start, and whenever the gateways change
//   lanes.Start();
//   lanes.Offer(snapshot);                      // false: at least one is busy
//   Status arrived = lanes.Finish(last);        // to all gateways in parallel
//
// Thread safety: Start, Use, Finish and DeleteGroups wait for each other; the rest from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "format/exposition_format.h"
#include "gateways/push_reports.h"
#include "gateways/pusher.h"
#include "own/own_metrics.h"
#include "push/push_sink.h"

namespace persia::agent {

class PushLanes {
 public:
  struct Pace {
    std::chrono::milliseconds interval{10'000};  // a push that takes longer is logged
    // As Pusher::Limits.
    std::chrono::milliseconds limit{10'000};
    std::chrono::milliseconds limit_if_away{3'000};
  };
  // The state of the pushes to one gateway, for the pages.
  struct Lane {
    std::string name;
    size_t groups = 0;                                  // of the last push; without any, the gateway gets no request
    ExpositionFormat format = ExpositionFormat::kText;  // of the next push
    Pusher::State state;
  };
  using Sinks = std::vector<std::shared_ptr<PushSink>>;

  PushLanes(OwnMetrics& own, Pace pace) : reports_(own, pace.interval), pace_(pace) {}

  void Start();
  // Interrupts running pushes; the next ones go to the sinks that `make` returns. While it is called no push is running
  // to any gateway, since groups may move from one to another. A gateway whose name stays keeps its thread and its counts.
  void Use(const std::function<Sinks()>& make);
  bool Offer(const std::shared_ptr<const Snapshot>& snapshot);
  void Enqueue(const std::shared_ptr<const Snapshot>& snapshot);
  // Pushes the last snapshot to all, and ends the threads. An error names the groups that did not arrive. REQUIRES: started.
  Status Finish(const std::shared_ptr<const Snapshot>& last);
  // The job is over: deletes all its groups. REQUIRES: Finish is over.
  Status DeleteGroups(const std::string& job);
  // Ends running pushes, and all later ones.
  void Interrupt();
  void SetPace(Pace pace);
  [[nodiscard]] std::vector<Lane> lanes();

 private:
  std::vector<std::shared_ptr<Pusher>> Pushers();
  Status OnAll(const std::function<Status(Pusher&)>& act);
  Pusher::Limits limits();

  PushReports reports_;
  std::atomic<bool> interrupted_ = false;

  Mutex changing_;  // held while pushers are started, changed or finished; locked before mutex_
  bool started_ PERSIA_GUARDED_BY(changing_) = false;
  bool finished_ PERSIA_GUARDED_BY(changing_) = false;

  Mutex mutex_;  // never held while waiting
  Pace pace_ PERSIA_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Pusher>> pushers_ PERSIA_GUARDED_BY(mutex_);  // changes under both mutexes
};

}  // namespace persia::agent

// A push thread for each gateway, so that one which is slow or away holds up no other.
//
// Each gateway is offered each snapshot and takes the groups that are its own (sink/group_pins.h). No group goes to another
// gateway while its own is away: one that comes back would show its old values beside the new ones.
//
//   PushLanes lanes({.own = &own, .interval = 10s});
//   lanes.Use(transports);                      // before Start, and whenever the gateways change
//   lanes.Start();
//   lanes.Offer(snapshot);                      // false: at least one is busy
//   Status arrived = lanes.Finish(last);        // all of them at once
//
// Thread safety: Start, Use, Finish and EndGroups wait for each other; the rest from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/log.h"
#include "app/pusher.h"
#include "format/group_format.h"
#include "sink/push_gateway.h"
#include "source/own_metrics.h"

namespace persia::agent {

// What carries snapshots to a gateway: a PushGateway, or what a test puts in its place.
struct PushTransport {
  std::string name;  // "host:port"
  std::function<Status(const Snapshot&)> push;
  std::function<PushReport()> report;  // of the last push
  std::function<void()> interrupt;
  std::function<void()> rearm;
  // Ends all groups of the job that are this gateway's; null if that cannot be.
  std::function<Status(std::chrono::milliseconds limit)> end_groups{};
};

class PushLanes {
 public:
  struct Pace {
    std::chrono::milliseconds interval{10'000};  // a push that takes longer is reported
    std::chrono::milliseconds limit{10'000};     // as Pusher's
    std::chrono::milliseconds limit_if_away{3'000};
  };
  // How pushing to one gateway goes, for people.
  struct Lane {
    std::string name;
    size_t groups = 0;                        // of the last push; a gateway that has none is not asked for anything
    GroupFormat format = GroupFormat::kText;  // of the next push
    Pusher::State state;
  };

  PushLanes(OwnMetrics& own, Pace pace);
  ~PushLanes();

  void Start();
  // Leads each push from now on by what `make` gives, after those under way were cut short. It is called while no push is under
  // way anywhere, as groups may pass from one gateway to another. A gateway whose name stays goes on in its place.
  void Use(const std::function<std::vector<PushTransport>()>& make);
  bool Offer(const std::shared_ptr<const Snapshot>& snapshot);
  void Insist(const std::shared_ptr<const Snapshot>& snapshot);
  // Pushes the last snapshot to all, and ends the threads. An error says what did not arrive. REQUIRES: started.
  Status Finish(const std::shared_ptr<const Snapshot>& last);
  // The job is over: ends all its groups. REQUIRES: Finish is over.
  Status EndGroups();
  // Ends what is under way, and what comes later: nobody wants to wait any longer.
  void Interrupt();
  void SetPace(Pace pace);
  [[nodiscard]] std::vector<Lane> lanes();

 private:
  struct Way;

  std::vector<Way*> Ways();
  Status AtOnce(const std::function<Status(Way&)>& what);
  Status Push(Way& way, const Snapshot& snapshot);
  bool Note(Way& way, const PushReport& report);
  void Tell(Way& way, const PushReport& report, const Status& status);
  Pace pace();

  OwnMetrics& own_;
  std::atomic<bool> switching_ = false;
  std::atomic<bool> finishing_ = false;
  std::atomic<bool> given_up_ = false;

  std::mutex changing_;  // held by whoever starts, changes or ends lanes; before mutex_
  bool started_ = false;
  bool finished_ = false;

  std::mutex mutex_;  // guards what follows; never held while somebody is waited for
  Pace pace_;
  std::vector<std::unique_ptr<Way>> ways_;  // added and removed under both
};

}  // namespace persia::agent

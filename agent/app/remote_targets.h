// The targets of remote write that the settings name, each with its queue in the agent's state.
//
// Thread safety: Apply and Offer belong to the collector thread, Finish to the one that ends the agent; Interrupt, stats: any.
//
//   RemoteTargets targets(place, "persia-metrics-agent/0.1.0", log);
//   targets.Apply(options);      // at the start and after a reload: others go on as they are
//   targets.Offer(snapshot);
//   targets.Finish(last, 10s, 3s, RemoteWrite::Ending::kGoesOn);
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "app/job_session.h"
#include "app/options.h"
#include "model/snapshot.h"
#include "remote/remote_write.h"

namespace persia::agent {

class RemoteTargets {
 public:
  RemoteTargets(StatePlace place, std::string user_agent, WriteQueue::Log log)
      : place_(std::move(place)), user_agent_(std::move(user_agent)), log_(std::move(log)) {}

  // What is new or changed is opened, what is gone is closed; what waits for it stays on disk. One that cannot be opened is
  // off, and the log says so, once.
  void Apply(const AgentOptions& options);
  // One that is off is tried again first; if it stays so, the samples are counted as dropped.
  void Offer(const std::shared_ptr<const Snapshot>& snapshot);
  // All at once. `limit_if_away`: for a target that failed last. Says to the log what is left.
  void Finish(const std::shared_ptr<const Snapshot>& last, std::chrono::milliseconds limit,
              std::chrono::milliseconds limit_if_away, RemoteWrite::Ending ending);
  void Interrupt();
  // By name. Counts are totals over reloads. Of one that is off, the oldest sample that it did not get is the oldest that
  // waits.
  [[nodiscard]] std::vector<std::pair<std::string, RemoteWrite::Stats>> stats() const;

 private:
  struct Target {
    RemoteWriteTarget settings;
    std::chrono::milliseconds connect_timeout{};
    std::shared_ptr<RemoteWrite> sink{};  // null: it is off
    RemoteWrite::Stats before{};          // what others of this name counted, before a reload changed them
  };

  static RemoteWrite::Stats StatsOf(const Target& target);
  // Null: it cannot be had now. `again`: that was said already.
  std::shared_ptr<RemoteWrite> Open(const Target& target, bool again);
  void OpenAgain(const Snapshot& snapshot);
  [[nodiscard]] std::string FileName(const RemoteWriteTarget& settings) const;
  void TellOfOthers(const std::vector<RemoteWriteTarget>& wanted) const;
  [[nodiscard]] std::vector<Target> targets() const;

  const StatePlace place_;
  const std::string user_agent_;
  const WriteQueue::Log log_;
  mutable std::mutex mutex_;     // guards what follows
  std::vector<Target> targets_;  // changed by the collector thread alone
  bool interrupted_ = false;
};

}  // namespace persia::agent

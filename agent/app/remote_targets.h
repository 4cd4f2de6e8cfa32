// The targets of remote write that the settings name, each with its queue in the agent's state.
//
// Thread safety: Apply and Offer: the collector thread; Finish: the thread that ends the agent; Interrupt, stats: any thread.
//
//   RemoteTargets targets(place, "persia-metrics-agent/0.1.0");
//   targets.Apply(options);      // at the start and after a reload: targets with the same settings do not change
//   targets.Offer(snapshot);
//   targets.Finish(last, 10s, 3s, RemoteWrite::Ending::kGoesOn);
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "config/options.h"
#include "job/job_session.h"
#include "model/remote_write_counts.h"
#include "model/snapshot.h"
#include "remote/remote_write.h"

namespace persia::agent {

class RemoteTargets {
 public:
  RemoteTargets(StateLocation place, std::string user_agent) : state_(std::move(place)), user_agent_(std::move(user_agent)) {}

  // Opens new and changed targets, and closes those that are gone; their backlog stays on disk. A target that cannot be opened
  // is off, which is logged once.
  void Apply(const AgentOptions& options);
  // First tries to open targets that are off. If a target stays off, its samples are counted as dropped.
  void Offer(const std::shared_ptr<const Snapshot>& snapshot);
  // Finishes all targets concurrently. `limit_if_away`: for a target whose last request failed. Logs how many samples are left.
  void Finish(const std::shared_ptr<const Snapshot>& last, std::chrono::milliseconds limit,
              std::chrono::milliseconds limit_if_away, RemoteWrite::Ending ending);
  void Interrupt();
  // By name. Totals go on over reloads. If a target is off, its oldest pending sample is the oldest one that was dropped.
  [[nodiscard]] std::map<std::string, RemoteWriteCounts> stats() const;

 private:
  struct Target {
    RemoteWriteTarget settings;
    std::shared_ptr<RemoteWrite> sink{};  // null: it is off
    RemoteWriteCounts before{};           // of the targets of this name before a reload
  };

  static RemoteWriteCounts StatsOf(const Target& target);
  // Null: it cannot be opened now, which is logged if `log_failure`.
  std::shared_ptr<RemoteWrite> Open(const Target& target, bool log_failure);
  void RetryOpen(std::vector<Target>& targets, const Snapshot& snapshot);
  void Use(std::vector<Target> targets);
  [[nodiscard]] std::string FileName(const RemoteWriteTarget& settings) const;
  void WarnOfUnusedQueues(const std::vector<RemoteWriteTarget>& wanted) const;
  [[nodiscard]] std::vector<Target> targets() const;

  const StateLocation state_;
  const std::string user_agent_;
  mutable Mutex mutex_;
  std::vector<Target> targets_ PERSIA_GUARDED_BY(mutex_);  // changed by the collector thread alone
  bool interrupted_ PERSIA_GUARDED_BY(mutex_) = false;
};

}  // namespace persia::agent

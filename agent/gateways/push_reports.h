// Keeps the last report of each gateway, and turns reports into the agent's own metrics about pushing, and log lines.
//
// Thread safety: any method, from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "own/own_metrics.h"
#include "push/push_sink.h"

namespace persia::agent {

class PushReports {
 public:
  // `own` outlives it. A push that takes longer than `interval` is logged.
  PushReports(OwnMetrics& own, std::chrono::milliseconds interval) : own_(own), interval_(interval) {}

  // Forgets the other gateways. REQUIRES: no push is running.
  void SetGateways(const std::vector<std::string>& names);
  void SetInterval(std::chrono::milliseconds interval) { interval_ = interval; }
  // From now on no push is logged: the caller waits for the last pushes and reports their results.
  void StopLogging() { logs_ = false; }

  // REQUIRES: the gateway is one of SetGateways.
  void Add(const std::string& gateway, const PushReport& report, const Status& status);
  // Of the last push that was not deferred.
  [[nodiscard]] PushReport Last(const std::string& gateway) const;

 private:
  struct Gateway {
    PushReport last;
    StateLog push_log{"push"};
    StateLog slow_log{"push.slow"};
  };

  void UpdateTotals() PERSIA_REQUIRES(mutex_);
  void Log(Gateway& gateway, const std::string& name, const PushReport& report, const Status& status);

  OwnMetrics& own_;
  std::atomic<std::chrono::milliseconds> interval_;
  std::atomic<bool> logs_ = true;
  mutable Mutex mutex_;
  std::map<std::string, Gateway> gateways_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent

// Metrics of the job as a whole and of what the agent does for it, on the agent's own identity: `persia_job_*`, the push
// interval, and the space for the workers' segments.
//
//   JobMetrics metrics(agent_identity, "/dev/shm/persia-metrics-0/dlrm");
//   metrics.Collect({.hangs = false, .hang_after = 60s, .push_interval = 10s, .throughput = {{"my_app_steps", 2.5}}});
//
// Thread safety: the collector thread alone.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "model/rows.h"

namespace persia::agent {

class JobMetrics {
 public:
  struct Values {
    bool hangs = false;
    std::chrono::milliseconds hang_after{0};  // 0: nothing is judged
    std::chrono::milliseconds push_interval{0};
    std::optional<std::chrono::milliseconds> unchanged = {};  // none: nothing has changed yet
    // Name of the progress counter, and its rate; none: there is no such counter.
    std::optional<std::pair<std::string, double>> throughput = {};
  };

  // `directory`: of the segments; it may not exist yet.
  JobMetrics(Identity identity, std::string directory) : identity_(std::move(identity)), directory_(std::move(directory)) {}

  // Snapshots have the same layout object as long as the progress counter is the same.
  std::shared_ptr<const Snapshot> Collect(const Values& values);

 private:
  const Identity identity_;
  const std::string directory_;
  std::string counter_;  // the newest one
  Rows rows_;
};

}  // namespace persia::agent

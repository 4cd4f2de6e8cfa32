// Metrics of the job as a whole and of what the agent does for it, on the agent's own identity: `persia_job_*`, the push
// interval, and the space for the workers' segments.
//
//   JobMetrics metrics(agent_identity, "/dev/shm/persia-metrics-0/dlrm");
//   metrics.Collect({.hangs = false, .hang_after = 60s, .push_interval = 10s});
//
// Thread safety: the collector thread alone.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "model/snapshot.h"

namespace persia::agent {

class JobMetrics {
 public:
  struct Values {
    bool hangs = false;
    std::chrono::milliseconds hang_after{0};  // 0: nothing is judged
    std::chrono::milliseconds push_interval{0};
  };

  // `directory`: of the segments; it may not exist yet.
  JobMetrics(Identity identity, std::string directory);

  // Every snapshot has the same layout object.
  std::shared_ptr<const Snapshot> Collect(const Values& values);

 private:
  const std::string directory_;
  std::shared_ptr<const Layout> layout_;
};

}  // namespace persia::agent

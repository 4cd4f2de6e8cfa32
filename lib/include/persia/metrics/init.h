// Identifies this process, and makes its metrics visible to an agent.
#pragma once

#include <optional>
#include <string>

#include "persia/metrics/export.h"
#include "persia/metrics/labels.h"

namespace persia::metrics {
inline namespace abi_1 {

// The program's own values of these settings. The environment overrides them, so that a deployment can change them:
// PERSIA_METRICS_ENABLED, PERSIA_METRICS_DIR, PERSIA_JOB_NAME, PERSIA_ROLE, REPLICA_INDEX (else RANK; docs/ranks.md lists all
// sources of the replica), PERSIA_RUN_ID (else TORCHELASTIC_RUN_ID), TORCHELASTIC_RESTART_COUNT, PERSIA_METRICS_SEGMENT_BYTES.
// A rank of torchrun that has no other role gets that of `torchrun --role`, from ROLE_NAME.
struct Options {
  // The name of the training job: "dlrm_v1.0". Default: "default".
  std::string job_name = {};
  // What this process does in the job: "trainer", "embedding_server". Default: "worker".
  std::string role = {};
  // The number of this process among those of its role, from 0. Default: that of a launcher, else 0.
  std::optional<int> replica = {};
  // Labels that every series of this process gets. The agent reads at most 32, of 2,048 bytes in all.
  LabelSet labels = {};
  // The job's directory of segments. Default: `/dev/shm/persia-metrics-<uid>/<job name>`.
  std::string metrics_dir = {};
  // False: handles write to private memory, and no file appears.
  bool enabled = true;
};

// The outcome of Init.
struct InitResult {
  // Whether an agent can see this process's metrics.
  bool exporting = false;
  // The path of the segment file; if there is none, the reason and what to do about it.
  std::string detail = {};
};

// Makes this process's metrics visible to the job's agent, which may start before or after this call. Values recorded before
// the call are kept. If PERSIA_METRICS_DIR or PERSIA_JOB_NAME is in the environment, the first metric has the same effect. A
// failure is logged in one line. Handles still work, and their next uses try again, once a second; no count is lost.
//
// A second call, for example by a library, only changes the role, replica and labels that it gives. Another job name or
// directory is logged in one line and has no effect.
//
// Call it before other threads record. If metrics exist already, a value that another thread records at the moment of the first
// call may be lost.
// Thread safety: any thread.
PERSIA_METRICS_API InitResult Init(const Options& options = {}) noexcept;

// Whether Init or the environment requested that an agent sees this process's metrics, and metrics are not disabled. True also
// while an export that failed is tried again; Init returns whether it has succeeded.
// Thread safety: any thread.
[[nodiscard]] PERSIA_METRICS_API bool Exporting() noexcept;

}  // namespace abi_1
}  // namespace persia::metrics

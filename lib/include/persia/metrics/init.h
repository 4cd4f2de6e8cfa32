// Who this process is, and where its metrics go.
#pragma once

#include <optional>
#include <string>

#include "persia/metrics/export.h"
#include "persia/metrics/labels.h"

namespace persia::metrics {

// What a program knows of itself. Where the environment says otherwise, the environment wins, so that whoever deploys a
// program decides: PERSIA_METRICS_ENABLED, PERSIA_METRICS_DIR, PERSIA_JOB_NAME, PERSIA_ROLE, REPLICA_INDEX (else RANK),
// PERSIA_RUN_ID (else TORCHELASTIC_RUN_ID), TORCHELASTIC_RESTART_COUNT, PERSIA_METRICS_SEGMENT_BYTES.
struct Options {
  // The training job, to tell it from others: "dlrm_v1.0". Default: "default".
  std::string job_name = {};
  // What this process does in the job: "trainer", "embedding_server". Default: "worker".
  std::string role = {};
  // Which of the processes of its role this is. Default: 0.
  std::optional<int> replica = {};
  // Labels that stand on every series of this process.
  LabelSet labels = {};
  // The job's directory of segments. Default: /dev/shm/persia-metrics-<uid>/<job name>.
  std::string metrics_dir = {};
  // False: handles write to private memory, and no file appears.
  bool enabled = true;
};

// What became of it.
struct InitResult {
  // Whether an agent can see this process's metrics.
  bool exporting = false;
  // The segment's path; or why there is none, and what to do about it.
  std::string detail = {};
};

// Makes this process's metrics visible to the job's agent: an agent may come before or after. What was counted before this
// call counts. Without it, PERSIA_METRICS_DIR or PERSIA_JOB_NAME in the environment do the same at the first metric. A failure
// is logged in one line and changes nothing for the handles; a second call only renews role, replica and labels.
//
// Call it before threads start to count: when the metrics made before it must move to another place, what other threads count
// during the move (microseconds) may be lost.
// Thread safety: any thread.
PERSIA_METRICS_API InitResult Init(const Options& options = {}) noexcept;

// Whether an agent can see this process's metrics: Init or the environment asked for it, and nobody forbade it. For those who
// do something else with their values when metrics are off. Thread safety: any thread.
PERSIA_METRICS_API bool Exporting() noexcept;

}  // namespace persia::metrics

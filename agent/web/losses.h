// Which of the job's own values were lost, and why, in words: how many, of which metric, in which ranks, and what to do.
//
// Thread safety: a pure function.
#pragma once

#include <vector>

#include "health/health_report.h"
#include "model/snapshot.h"

namespace persia::agent {

// A reason of kind "lost" for each metric and cause, at most HealthReport::kMaxReasons: values that the workers' library or the
// agent refused, metrics of one name with two types, and series beyond a limit.
[[nodiscard]] std::vector<HealthReport::Reason> LossesIn(const Snapshot& snapshot);

}  // namespace persia::agent

// How far the training is, and when it ends: from the steps, samples and tokens that the job's processes count
// (persia/metrics/progress.h).
//
// Thread safety: functions of their arguments.
#pragma once

#include <optional>
#include <span>

#include "web/history.h"
#include "web/throughput.h"

namespace persia::agent {

// What no process counts, or what is not known yet, is empty.
struct Progress {
  // Per second, over the last 30 seconds; of a job that is over, over its last ten minutes. The steps are those of the median
  // rank, since each rank counts each step of data-parallel training; samples and tokens are those of all ranks together.
  std::optional<double> steps_per_second = {};
  std::optional<double> samples_per_second = {};
  std::optional<double> tokens_per_second = {};
  // Of the rank that ends last: the number of its step, that of its last step, and the time until then at its present rate.
  std::optional<double> step = {};
  std::optional<double> planned_steps = {};
  std::optional<double> remaining_seconds = {};
};

// Without ranks that have ended, unless the job is over. Nothing: no process counts its progress. `history`: the oldest first.
[[nodiscard]] std::optional<Progress> ProgressOf(std::span<const History::Entry> history, bool is_over = false);

// Of a job that stands still: nothing is done per second now, although something was in the last 30 seconds.
void StandStill(std::optional<Progress>& progress, std::optional<Throughput>& throughput);

}  // namespace persia::agent

// How far the training is: the steps, samples and tokens that are done, and the number of steps of the whole training.
//
//   SetTotalSteps(10'000);
//   for (; step < 10'000; ++step) {
//     Train(batch);
//     CountSamples(batch.size());
//     CountSteps();
//   }
//
// Exported: the counters `persia_progress_steps_total`, `persia_progress_samples_total` and `persia_progress_tokens_total`, of
// which a program counts those that it has, and the gauge `persia_progress_planned_steps`. They are read back by these names in
// the group `persia_progress`. The agent derives rates and the remaining time from them.
//
// The counters continue over restarts, as each counter of a run does, and include steps that are done again after a restart.
// The remaining time comes from the number of the present step, `persia_phase_step`: what the program has set last by SetStep
// (phase.h), 0 before that, and the steps that this process has counted since. So a program that continues from a checkpoint
// calls SetStep once, and counts go on from there. A program may also set the number of each step. If exactly one call of
// CountSteps was between the last two settings, the next such call leaves the number as it is: that of a step stands until the
// program sets the next one.
//
// Thread safety: any function, from any thread. Counting takes no lock, makes no system call and allocates nothing, except for
// the first call of each function. Not for use inside signal handlers.
#pragma once

#include <cstdint>

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {

// The process has done `count` more steps. In data-parallel training each rank counts each step.
PERSIA_METRICS_API void CountSteps(uint64_t count = 1) noexcept;
// The process has trained on `count` more samples: those of its own batches.
PERSIA_METRICS_API void CountSamples(uint64_t count) noexcept;
// The process has trained on `count` more tokens.
PERSIA_METRICS_API void CountTokens(uint64_t count) noexcept;
// The training ends with this step, as the program numbers steps, if it is known. The last call counts.
PERSIA_METRICS_API void SetTotalSteps(uint64_t steps) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics

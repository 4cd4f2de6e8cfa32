// What the process does now: loading data, a forward pass, waiting for other ranks. And how long it has done what.
//
//   static const Phase data("data"), sync("sync");
//   while (...) {
//     SetStep(step);
//     {
//       const InPhase in(data);
//       batch = loader.Next();
//     }
//     ...
//   }
//
// The agent reads this from outside, also from a process that is stopped, hangs, or is dead. Usual names of phases are init,
// rendezvous, data, forward, backward, sync, optimizer, checkpoint and eval; a program may have others. `sync` is the time that
// a rank waits for others: mark it from the entry of a collective to its return.
//
// From the first mark on, each moment belongs to one phase: the one that was entered last, or `other` outside of all. A phase
// does not run while one is entered inside it. Exported: the counter `persia_phase_seconds_total{phase}`, which also counts the
// time of the phase that runs; the histogram `persia_phase_duration_seconds{phase}` of the phases that were left; and the
// gauges `persia_phase_step` and `persia_phase_first_step`, the step with which the process began. They are read back by these
// names in the group `persia_phase`.
//
// A process has the phases of one thread: the one that entered a phase while no other thread was in one. What other threads
// mark meanwhile is left out, which is logged once. A forked child is in no phase.
//
// Thread safety: any function, from any thread. A mark reads the clock, and takes no lock, makes no system call and allocates
// nothing, except that a thread's first mark may claim memory. Not for use inside signal handlers.
#pragma once

#include <cstdint>
#include <string_view>

#include "persia/metrics/export.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/internal/lane.h"

namespace persia::metrics {
inline namespace abi_1 {

// A phase. Small, and trivial to copy; all phases of one name are the same. A request is refused as that of any metric
// (instruments.h); a refused phase is left out.
class PERSIA_METRICS_API Phase {
 public:
  // Left out.
  Phase() noexcept = default;
  // The phase of this name.
  explicit Phase(std::string_view name) noexcept;

  // The process is in this phase from now on. At most 64 phases may be entered in each other; deeper ones are left out.
  void Enter() const noexcept;
  // The process is in the phase again in which this one was entered. Nothing happens if the thread is not in it.
  void Leave() const noexcept;

  // The seconds that the process has spent in it, with those of now.
  [[nodiscard]] double Value() const noexcept;

 private:
  uint32_t clock_ = internal::kScratchSlot;
  Histogram durations_;
};

// The process is in the phase during a scope. An object belongs to one thread.
class InPhase {
 public:
  // Enters the phase.
  [[nodiscard]] explicit InPhase(Phase phase) noexcept : phase_(phase) { phase_.Enter(); }
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;
  // Leaves it.
  ~InPhase() { phase_.Leave(); }

 private:
  const Phase phase_;
};

// The step that the process trains now, as the program numbers it over the whole run: a process that continues from a
// checkpoint continues with its number. By the number, the agent finds the steps that are trained again. Call it at each step,
// or, in a program that counts its steps, once at the start (progress.h).
PERSIA_METRICS_API void SetStep(uint64_t step) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics

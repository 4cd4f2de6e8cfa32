#include "persia/metrics/phase.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "cells.h"
#include "clock.h"
#include "log.h"
#include "made_once.h"
#include "phase_track.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using segment::Kind;

constexpr std::string_view kPhaseGroup = "persia_phase";

// From 100 microseconds to half an hour, since a checkpoint may take as long.
constexpr std::array<double, 20> kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                            0.25,   0.5,     1,      2.5,   5,      10,    30,   60,    300,  1800};

void StoreStart(uint32_t slot, uint64_t now) noexcept {
  CommonCell(slot)[segment::kClockStart].store(now, std::memory_order_release);
}

// Release, in this order: a reader that finds the same word before and after the start has both of one moment.
void StartClock(uint32_t slot, uint64_t now) noexcept {
  StoreStart(slot, now);
  const CommonCell cell(slot);
  cell->store(segment::StartedClock(cell->load(std::memory_order_relaxed), now), std::memory_order_release);
}

void StopClock(uint32_t slot, uint64_t now) noexcept {
  const CommonCell cell(slot);
  cell->store(segment::StoppedClock(cell->load(std::memory_order_relaxed), now), std::memory_order_relaxed);
}

uint32_t NewClock(std::string_view phase) noexcept {
  Registry& registry = Registry::Get();
  try {
    internal::FamilyNode* family = registry.FindOrAddFamily({.kind = Kind::kClock,
                                                             .group = kPhaseGroup,
                                                             .name = "seconds_total",
                                                             .help = "Time that the process spent in the phase.",
                                                             .unit = "seconds"});
    return registry.FindOrAddChild(family, LabelSet{{"phase", std::string(phase)}});
  } catch (const std::bad_alloc&) {
    registry.CountDropped(segment::Drop::kOutOfMemory);
    return internal::kScratchSlot;
  }
}

Histogram NewDurations(std::string_view phase) noexcept {
  try {
    return {kPhaseGroup,
            "duration_seconds",
            kBounds,
            {.help = "Time from the entry of a phase to its end, without the phases inside it.",
             .unit = "seconds",
             .labels = {{"phase", std::string(phase)}}}};
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
    return {};
  }
}

// A phase that was entered and not left.
struct Entered {
  uint32_t clock;
  uint64_t ran_ns;  // until it last stopped
};

// How often each phase was entered beyond those that a track has. Coroutines take turns, so that one of them may leave while
// one of the track's stays.
class LeftOut {
 public:
  void Enter(uint32_t clock) noexcept {
    ++all_;
    const auto at = std::ranges::find_if(phases_, [&](const Entry& phase) { return phase.count == 0 || phase.clock == clock; });
    if (at == phases_.end())
      ++further_;
    else
      *at = {clock, at->count + 1};
  }
  // False: the phase was not entered.
  bool Leave(uint32_t clock) noexcept {
    if (all_ == 0) return false;
    const auto at = std::ranges::find_if(phases_, [&](const Entry& phase) { return phase.count > 0 && phase.clock == clock; });
    if (at == phases_.end()) return false;
    --at->count;
    --all_;
    return true;
  }
  // Of a phase that neither this nor the track knows.
  void LeaveFurther() noexcept {
    if (further_ == 0) return;
    --further_;
    --all_;
  }
  [[nodiscard]] uint32_t all() const noexcept { return all_; }

 private:
  struct Entry {
    uint32_t clock;
    uint32_t count;
  };
  std::array<Entry, 16> phases_ = {};
  uint32_t further_ = 0;  // of phases without an entry
  uint32_t all_ = 0;
};

// The phases that the process is in. Constant-initialised, and never destroyed.
class Track {
 public:
  static Track track;  // of the process

  void Enter(uint32_t clock) noexcept {
    if (!Own()) return;
    if (depth_ == entered_.size()) return left_out_.Enter(clock);
    const uint64_t now = MonotonicNs();
    Stop(now);
    entered_[depth_++] = {clock, 0};
    Start(now);
  }

  // The nanoseconds that the phase ran since it was entered; kNotEntered: it was not.
  static constexpr uint64_t kNotEntered = UINT64_MAX;
  uint64_t Leave(uint32_t clock) noexcept {
    if (owner_.load(std::memory_order_relaxed) != &internal::tls_lane) return kNotEntered;
    const uint64_t ran = left_out_.Leave(clock) ? kNotEntered : LeaveEntered(clock);
    if (Depth() == 0) owner_.store(nullptr, std::memory_order_release);
    return ran;
  }

  // The thread ends.
  void LeaveAll() noexcept {
    if (owner_.load(std::memory_order_relaxed) != &internal::tls_lane) return;
    const uint64_t now = MonotonicNs();
    Stop(now);
    depth_ = 0;
    left_out_ = {};
    Start(now);
    owner_.store(nullptr, std::memory_order_release);
  }

  // Of the calling thread.
  [[nodiscard]] uint32_t Depth() const noexcept {
    return owner_.load(std::memory_order_relaxed) == &internal::tls_lane ? depth_ + left_out_.all() : 0;
  }

  // The process exits. If another thread is in a phase, its clock runs until the process has ended.
  void End() noexcept {
    const void* owner = nullptr;
    owner_.compare_exchange_strong(owner, &internal::tls_lane, std::memory_order_acquire);
    if ((owner == nullptr || owner == &internal::tls_lane) && runs_) {
      const uint64_t now = MonotonicNs();
      // In this order, so that a reader that finds the new time finds the clock stopped.
      Stop(now);
      StoreStart(Current(), now);
      runs_ = false;
    }
  }

  // In a forked child, whose clocks have not run.
  void Forget() noexcept {
    owner_.store(nullptr, std::memory_order_relaxed);
    depth_ = 0;
    left_out_ = {};
    runs_ = false;
  }

  // Once, at the first phase.
  void Begin() noexcept {
    if (begun_.exchange(true)) return;
    other_.store(NewClock("other"), std::memory_order_relaxed);
    std::atexit([] { track.End(); });
    pthread_atfork(nullptr, nullptr, [] { track.Forget(); });
    pthread_key_t key = 0;
    if (pthread_key_create(&key, [](void* of) { static_cast<Track*>(of)->LeaveAll(); }) == 0)
      thread_end_.store(int64_t{key}, std::memory_order_relaxed);
  }

 private:
  // Whether the calling thread's marks count. The address of a thread's own variable names the thread.
  bool Own() noexcept {
    const void* self = &internal::tls_lane;
    const void* owner = owner_.load(std::memory_order_relaxed);
    if (owner == self) return true;
    // Acquire: pairs with the release of the thread that was in a phase before.
    if (owner == nullptr && owner_.compare_exchange_strong(owner, self, std::memory_order_acquire)) {
      const int64_t key = thread_end_.load(std::memory_order_relaxed);
      if (key >= 0) pthread_setspecific(static_cast<pthread_key_t>(key), this);
      return true;
    }
    LogLineOnce(logged_, "two threads are in phases at a time; what the second one marks is left out");
    return false;
  }

  uint64_t LeaveEntered(uint32_t clock) noexcept {
    // The last one, unless coroutines take turns.
    uint32_t at = depth_;
    while (at > 0 && entered_[at - 1].clock != clock) --at;
    if (at == 0) {
      left_out_.LeaveFurther();
      return kNotEntered;
    }
    const uint64_t now = MonotonicNs();
    Stop(now);
    const uint64_t ran = entered_[at - 1].ran_ns;
    std::move(entered_.begin() + at, entered_.begin() + depth_, entered_.begin() + at - 1);
    --depth_;
    Start(now);
    return ran;
  }

  [[nodiscard]] uint32_t Current() const noexcept {
    return depth_ > 0 ? entered_[depth_ - 1].clock : other_.load(std::memory_order_relaxed);
  }

  void Stop(uint64_t now) noexcept {
    if (!runs_) return;
    StopClock(Current(), now);
    if (depth_ > 0) entered_[depth_ - 1].ran_ns += now - started_;
  }

  void Start(uint64_t now) noexcept {
    StartClock(Current(), now);
    started_ = now;
    runs_ = true;
  }

  std::atomic<bool> begun_ = false;
  std::atomic<uint32_t> other_ = internal::kScratchSlot;  // the clock that runs outside of all phases
  std::atomic<int64_t> thread_end_ = -1;                  // a pthread key; -1: none
  std::atomic<bool> logged_ = false;
  std::atomic<const void*> owner_ = nullptr;  // the thread that is in a phase; it alone uses what follows
  std::array<Entered, 64> entered_ = {};
  uint32_t depth_ = 0;
  LeftOut left_out_;      // entered beyond these
  uint64_t started_ = 0;  // the clock that runs
  bool runs_ = false;
};

constinit Track Track::track;

constinit MadeOnce<Gauge> step_gauge;

// The number of the present step: what the program has set last, and what it has counted since. Relaxed: numbers alone; a
// thread that sets while another one counts makes them differ by a step until the next call.
struct StepNumber {
  std::atomic<uint64_t> set = 0;
  std::atomic<uint64_t> counted = 0;
  std::atomic<uint32_t> counts = 0;           // calls that counted
  std::atomic<bool> program_numbers = false;  // there was one such call between the last two settings
  std::atomic<bool> first_is_noted = false;
};
constinit StepNumber step_number;

// A forked child counts its own steps.
void ForgetStep() noexcept {
  step_number.set.store(0, std::memory_order_relaxed);
  step_number.counted.store(0, std::memory_order_relaxed);
  step_number.counts.store(0, std::memory_order_relaxed);
  step_number.program_numbers.store(false, std::memory_order_relaxed);
  step_number.first_is_noted.store(false, std::memory_order_relaxed);
}

// After a restart, the first step is the one from which the run continues.
void NoteFirstStep(uint64_t step) noexcept {
  std::atomic<bool>& noted = step_number.first_is_noted;
  if (noted.load(std::memory_order_relaxed) || noted.exchange(true, std::memory_order_relaxed)) return;
  try {
    Gauge(kPhaseGroup, "first_step", {.help = "The first step that the process trained."}).Set(static_cast<double>(step));
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

void StoreStep(uint64_t step) noexcept {
  if (auto gauge = step_gauge.Get([] {
        pthread_atfork(nullptr, nullptr, &ForgetStep);
        return Gauge(kPhaseGroup, "step", {.help = "The step that the process trains now."});
      }))
    gauge->Set(static_cast<double>(step));
}

}  // namespace

Phase::Phase(std::string_view name) noexcept : clock_(NewClock(name)), durations_(NewDurations(name)) { Track::track.Begin(); }

void Phase::Enter() const noexcept {
  if (clock_ != internal::kScratchSlot) Track::track.Enter(clock_);
}

void Phase::Leave() const noexcept {
  if (clock_ == internal::kScratchSlot) return;
  const uint64_t ran = Track::track.Leave(clock_);
  if (ran != Track::kNotEntered) Histogram(durations_).Observe(segment::SecondsOf(ran));
}

double Phase::Value() const noexcept { return Registry::Get().ClockAt(clock_); }

uint32_t PhaseDepth() noexcept { return Track::track.Depth(); }

void SetStep(uint64_t step) noexcept {
  const uint32_t counts = step_number.counts.exchange(0, std::memory_order_relaxed);
  if (counts > 0) step_number.program_numbers.store(counts == 1, std::memory_order_relaxed);
  step_number.counted.store(0, std::memory_order_relaxed);
  step_number.set.store(step, std::memory_order_relaxed);
  NoteFirstStep(step);
  StoreStep(step);
}

void AdvanceStep(uint64_t count) noexcept {
  const uint64_t counted = step_number.counted.fetch_add(count, std::memory_order_relaxed) + count;
  const bool is_first = step_number.counts.fetch_add(1, std::memory_order_relaxed) == 0;
  // The program's own number of a step stands until it sets the next one.
  if (is_first && step_number.program_numbers.load(std::memory_order_relaxed)) return;
  StoreStep(step_number.set.load(std::memory_order_relaxed) + counted);
}

}  // namespace abi_1
}  // namespace persia::metrics

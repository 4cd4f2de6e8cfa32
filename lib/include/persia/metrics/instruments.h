// Handles through which a program records its measurements.
//
// A handle names a slot in this process's segment. It is small and trivial to copy and destroy; copies share the series, and
// asking twice for one (group, name, labels) gives the same series. Handles may be made before Init and before main, in any
// thread, and be used after main has returned and after a fork.
//
// Asking for a name that exists with another type or other bounds, or with bounds that are not sorted and finite, gives a
// handle that counts nothing, logs one line, and adds to the dropped counts that the agent exports.
//
// Thread safety: any method, from any thread, without a lock, a system call, an allocation or a look at the clock. The first
// touch of a metric by a thread may claim memory. Not for use inside signal handlers.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "persia/metrics/export.h"
#include "persia/metrics/internal/bucket_search.h"
#include "persia/metrics/internal/fast_math.h"
#include "persia/metrics/internal/lane.h"
#include "persia/metrics/labels.h"

namespace persia::metrics {

// A number that only goes up: batches trained, bytes sent. Starts at 0.
class PERSIA_METRICS_API Counter {
 public:
  // Counts nothing.
  Counter() noexcept = default;
  Counter(std::string_view group, std::string_view name, const Description& about = {}) noexcept;

  // Adds one.
  void Increment() noexcept { Increment(1U); }

  // Adds `by`. Whole numbers below 2^52 are counted as integers, exactly, fractions as doubles. A negative or non-finite `by`
  // is ignored and counted as dropped: a bad measurement must not stop a training step.
  template <std::integral T>
  void Increment(T by) noexcept {
    if constexpr (std::is_signed_v<T>) {
      if (by < 0) [[unlikely]] {
        return CountBadValue();
      }
    }
    if (internal::Cell* chunk = internal::ChunkOf(internal::tls_lane, slot_)) [[likely]] {
      internal::AddTo(internal::CellIn(chunk, slot_), static_cast<uint64_t>(by));
    } else {
      AddSlow(slot_, static_cast<uint64_t>(by));
    }
  }
  void Increment(double by) noexcept {
    // The sum of 2^52 and a whole number below it is a double whose lower 52 bits are that number. A fraction is rounded away,
    // a negative number or a larger one changes the upper bits, and NaN equals nothing.
    const double shifted = internal::Opaque(by + kWholeLimit);
    const uint64_t whole = std::bit_cast<uint64_t>(shifted) - std::bit_cast<uint64_t>(kWholeLimit);
    if (whole >> 52 == 0 && internal::Opaque(shifted - kWholeLimit) == by) [[likely]] {
      Increment(whole);
    } else {
      AddFraction(by);
    }
  }

 private:
  template <class Instrument>
  friend class Family;
  static constexpr double kWholeLimit = 4503599627370496.0;  // 2^52

  static void AddSlow(uint32_t slot, uint64_t by) noexcept;
  void AddFraction(double by) noexcept;
  static void CountBadValue() noexcept;

  uint32_t slot_ = internal::kScratchSlot;
};

// What several processes of one identity (job, role, replica) show together.
enum class GaugeMerge : uint8_t {
  kLast = 0,  // the most recently changed one
  kSum = 1,
  kMin = 2,
  kMax = 3,
  kAvg = 4,
  kEach = 5,  // each its own series, told apart by an ordinal label
};

// A number that goes up and down: staleness, pending batches. Not exported until it is first set.
class PERSIA_METRICS_API Gauge {
 public:
  // Counts nothing.
  Gauge() noexcept = default;
  Gauge(std::string_view group, std::string_view name, const Description& about = {},
        GaugeMerge merge = GaugeMerge::kLast) noexcept;

  // Any double, NaN and infinities too. The last of several concurrent calls wins.
  void Set(double value) noexcept {
    // Relaxed, both: the chunk was there before the handle, and the value orders nothing but itself.
    if (internal::Cell* chunk = internal::ReadChunk(internal::common_lane, slot_, std::memory_order_relaxed)) [[likely]] {
      internal::CellIn(chunk, slot_).store(std::bit_cast<uint64_t>(value), std::memory_order_relaxed);
    } else {
      SetSlow(value);
    }
  }

  // Adds to the value; a gauge that was never set counts as 0. Exact under concurrent calls.
  void Add(double by) noexcept;
  void Subtract(double by) noexcept { Add(-by); }

 private:
  template <class Instrument>
  friend class Family;
  void SetSlow(double value) noexcept;

  uint32_t slot_ = internal::kScratchSlot;
};

// Bounds for a histogram: `count` of them, `width` apart, from `start`.
PERSIA_METRICS_API std::vector<double> LinearBounds(double start, double width, int count);
// Bounds for a histogram: `count` of them from `start`, each `factor` times the one before.
PERSIA_METRICS_API std::vector<double> ExponentialBounds(double start, double factor, int count);
// 100 microseconds to 10 seconds in 16 steps: look-ups, RPCs, training steps. Contains Prometheus's default bounds.
PERSIA_METRICS_API std::span<const double> DefaultSecondsBounds() noexcept;

// A distribution: how long, how large. Exported with its buckets, sum and count.
class PERSIA_METRICS_API Histogram {
 public:
  // Counts nothing.
  Histogram() noexcept = default;
  // `bounds` are inclusive upper bounds, ascending, finite, at most 500; a bucket for what is above the last is added.
  Histogram(std::string_view group, std::string_view name, std::span<const double> bounds,
            const Description& about = {}) noexcept;

  // Adds one observation. NaN is ignored and counted as dropped; an infinity counts, and makes the sum infinite.
  void Observe(double value) noexcept {
    if (internal::Cell* chunk = internal::ChunkOf(internal::tls_lane, slot_); chunk != nullptr && !internal::IsNan(value))
        [[likely]] {
      internal::Cell* cells = &internal::CellIn(chunk, slot_);
      // Two cells of one writer each: a reader may see the bucket of an observation in flight before its sum.
      const double sum = std::bit_cast<double>(cells[0].load(std::memory_order_relaxed));
      cells[0].store(std::bit_cast<uint64_t>(sum + value), std::memory_order_relaxed);
      internal::AddTo(cells[1 + internal::BucketOf(*buckets_, value)], 1);
    } else {
      ObserveSlow(value);
    }
  }

 private:
  template <class Instrument>
  friend class Family;
  void ObserveSlow(double value) noexcept;

  uint32_t slot_ = internal::kScratchSlot;
  const internal::BucketIndex* buckets_ = &internal::kNoBounds;  // of the registry, never freed
};

// How long something takes, as PersiaML exports it: one instrument, two families. The histogram `<name>` in seconds, and the
// gauge `<name>_sec`, the last batch's.
class PERSIA_METRICS_API TimeCost {
 public:
  // Counts nothing.
  TimeCost() noexcept = default;
  TimeCost(std::string_view group, std::string_view name, const Description& about = {},
           std::span<const double> bounds = DefaultSecondsBounds()) noexcept;

  void Observe(double seconds) noexcept {
    histogram_.Observe(seconds);
    last_.Set(seconds);
  }

 private:
  Histogram histogram_;
  Gauge last_;
};

}  // namespace persia::metrics

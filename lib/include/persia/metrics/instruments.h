// Handles through which a program records its measurements.
//
// A handle names a slot in this process's segment. It is small, and trivial to copy and destroy. Copies share the series, and
// two requests for one (group, name, labels) give the same series. A handle can be made before Init and before main, in any
// thread, and used after main has returned and after a fork.
//
// A request is refused if the name exists with another type or other bounds, if the bounds are not sorted and finite, if the
// segment is full, or if memory runs out. A refused handle counts nothing; the library logs one line and increments a count of
// refusals, which the agent exports. If the series only cannot be exported now (a full filesystem, a limit of the process), it
// counts, and is exported later.
//
// All constructors take the group, the name, what the type needs (merge policy, bounds, buckets), and the description, which
// may be left out.
//
// `Value()` returns what this process has recorded so far, in all its threads, as a test or a log line needs it. It does not
// stop the threads: it includes what was recorded before the call, and may include what is recorded during it.
//
// Thread safety: any method, from any thread. Methods that record take no lock, make no system call, allocate nothing and do
// not read the clock, except that a thread's first use of a metric may claim memory. Not for use inside signal handlers, nor in
// a replaced operator new or malloc: a request for a metric allocates while it holds a mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "persia/metrics/export.h"
#include "persia/metrics/internal/bits.h"
#include "persia/metrics/internal/bucket_search.h"
#include "persia/metrics/internal/lane.h"
#include "persia/metrics/labels.h"
#include "persia/metrics/span.h"
#include "persia/metrics/values.h"

namespace persia::metrics {
inline namespace abi_1 {

class Enum;
class Info;

// A number that only goes up: batches trained, bytes sent. Starts at 0.
class PERSIA_METRICS_API Counter {
 public:
  // Counts nothing.
  Counter() noexcept = default;
  // The counter (`group`, `name`) with the labels of `about`. Exported as `<group>_<name>`, or `<name>` if `group` is empty.
  Counter(std::string_view group, std::string_view name, const Description& about = {}) noexcept;

  // Adds one.
  void Increment() noexcept { Increment(1U); }

  // Adds `by`. Whole numbers below 2^52 are added exactly, as integers; other numbers are added as doubles. A negative or
  // non-finite `by` is ignored and counted as dropped: a bad measurement must not stop a training step.
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  void Increment(T by) noexcept {
    if constexpr (std::is_signed_v<T>) {
      if (PERSIA_METRICS_UNLIKELY(by < 0)) return AddFraction(static_cast<double>(by));
    }
    if (internal::Cell* chunk = internal::ChunkOf(internal::tls_lane, slot_); PERSIA_METRICS_LIKELY(chunk != nullptr))
      internal::AddTo(internal::CellIn(chunk, slot_), static_cast<uint64_t>(by));
    else
      AddSlow(slot_, static_cast<uint64_t>(by));
  }
  // The same for a double.
  void Increment(double by) noexcept {
    // 2^52 plus a whole number below 2^52 is a double whose lower 52 bits are that number. The two tests below detect the rest:
    // a negative or larger number changes the upper bits, a fraction is rounded, and a NaN is equal to nothing.
    const double shifted = internal::Opaque(by + kWholeLimit);
    const uint64_t whole = internal::BitsOf(shifted) - internal::BitsOf(kWholeLimit);
    if (PERSIA_METRICS_LIKELY(whole >> 52 == 0 && internal::Opaque(shifted - kWholeLimit) == by))
      Increment(whole);
    else
      AddFraction(by);
  }

  // From now on, a thread of the library calls `function` once a period (callback.h), and adds the increase of its result since
  // the last call: for a total that other code keeps. The first result is added whole, and so is one below the last. An empty
  // `function` ends this. When this returns, the former function does not run any more; called by the function itself, it
  // returns at once. Not for inner loops.
  void SetFunction(std::function<double()> function) noexcept;

  // The count.
  [[nodiscard]] double Value() const noexcept;

 private:
  template <class Instrument>
  friend class Family;
  static constexpr double kWholeLimit = 4503599627370496.0;  // 2^52

  static void AddSlow(uint32_t slot, uint64_t by) noexcept;
  void AddFraction(double by) noexcept;

  uint32_t slot_ = internal::kScratchSlot;
};

// How the agent merges the gauges of several processes that have one identity (job, role, replica). An ended process's value
// counts only if no living process has set the gauge, for `gauge_ttl_seconds` after its end.
enum class GaugeMerge : uint8_t {
  // The value that changed in the newest of the agent's collections. If several processes changed theirs in it, the value of
  // the process that started last, even if another process called Set later. Of ended processes, the value of the one that
  // ended last.
  kLast = 0,
  kSum = 1,   // the sum of the values
  kMin = 2,   // the lowest value
  kMax = 3,   // the highest value
  kAvg = 4,   // the mean of the values
  kEach = 5,  // a series for each process, with an ordinal label
};

// A number that goes up and down: staleness, pending batches. Not exported until it is set.
class PERSIA_METRICS_API Gauge {
 public:
  // Counts nothing.
  Gauge() noexcept = default;
  // The gauge (`group`, `name`) with the labels of `about`. Exported as `<group>_<name>`, or `<name>` if `group` is empty.
  Gauge(std::string_view group, std::string_view name, const Description& about = {}) noexcept
      : Gauge(group, name, GaugeMerge::kLast, about) {}
  // The same with another merge policy than kLast.
  Gauge(std::string_view group, std::string_view name, GaugeMerge merge, const Description& about = {}) noexcept;

  // Sets the value: any double, including NaN and infinities. The last of several concurrent calls wins.
  void Set(double value) noexcept {
    // Both relaxed: the chunk existed before the handle, and no other memory is ordered by the value.
    if (internal::Cell* chunk = internal::ReadChunk(internal::common_lane, slot_, std::memory_order_relaxed);
        PERSIA_METRICS_LIKELY(chunk != nullptr))
      internal::CellIn(chunk, slot_).store(internal::BitsOf(value), std::memory_order_relaxed);
    else
      SetSlow(value);
  }

  // Adds to the value. A gauge that was never set starts from 0. Concurrent calls lose nothing.
  void Add(double by) noexcept;
  // The same as `Add(-by)`.
  void Subtract(double by) noexcept { Add(-by); }

  // Takes the value away: the gauge is not exported until it is set again.
  void Unset() noexcept;

  // From now on, a thread of the library calls `function` once a period (callback.h), and sets the gauge to the result. An
  // empty `function` ends this, and takes the value away. When this returns, the former function does not run any more; called
  // by the function itself, it returns at once. Not for inner loops.
  void SetFunction(std::function<double()> function) noexcept;

  // The value. Empty: it was not set.
  [[nodiscard]] std::optional<double> Value() const noexcept;

 private:
  template <class Instrument>
  friend class Family;
  friend class Enum;
  friend class Info;
  void SetSlow(double value) noexcept;

  uint32_t slot_ = internal::kScratchSlot;
};

// `count` histogram bounds from `start`, `width` apart. None if memory runs out.
[[nodiscard]] PERSIA_METRICS_API std::vector<double> LinearBounds(double start, double width, int count) noexcept;
// `count` histogram bounds from `start`, each `factor` times the previous one. None if memory runs out.
[[nodiscard]] PERSIA_METRICS_API std::vector<double> ExponentialBounds(double start, double factor, int count) noexcept;
// The bounds of a histogram or time cost that is given none, in C++, C and Python: 16 bounds in seconds, from 100 microseconds
// to 10 seconds, for look-ups, RPCs and training steps. They include Prometheus's default bounds.
[[nodiscard]] PERSIA_METRICS_API Span<const double> DefaultSecondsBounds() noexcept;

// The buckets of a native histogram, with client_golang's options and, since a segment has a fixed size, a range of values.
//
// Each bucket's upper bound is the lower one times 2^(2^-schema). The schema, -4 to 8, is the coarsest one that grows by at
// most `factor`. A family has at most 500 bounds: if the range needs more, the schema is lower. So with the default range the
// finest schema is 3 (a factor of 1.09); a smaller range allows finer ones.
struct NativeBuckets {
  double factor = 1.1;              // NativeHistogramBucketFactor; above 1
  uint16_t max_buckets = 160;       // NativeHistogramMaxBucketNumber; beyond, the exported schema is lower; 0: no limit
  double zero_threshold = 0x1p-20;  // NativeHistogramZeroThreshold, rounded up to a bound. Values up to it, also negative ones,
                                    // count in the zero bucket
  double most = 0x1p20;             // the last bound, rounded up; values above it count in one more bucket
};

// A distribution of durations or sizes. Exported with its buckets, sum and count.
class PERSIA_METRICS_API Histogram {
 public:
  // Counts nothing.
  Histogram() noexcept = default;
  // The histogram (`group`, `name`) with the labels of `about`, with DefaultSecondsBounds().
  Histogram(std::string_view group, std::string_view name, const Description& about = {}) noexcept
      : Histogram(group, name, DefaultSecondsBounds(), about) {}
  // The same with other bounds: inclusive upper bounds, in the unit of the observations: ascending, finite, at most 500. The
  // bucket up to +Inf is added. Without bounds, it is exported as a summary: a sum and a count.
  Histogram(std::string_view group, std::string_view name, Span<const double> bounds, const Description& about = {}) noexcept;
  // The same for bounds in braces: `Histogram("my_app", "loss", {0.1, 1, 10})`.
  Histogram(std::string_view group, std::string_view name, std::initializer_list<double> bounds,
            const Description& about = {}) noexcept
      : Histogram(group, name, Span<const double>(bounds.begin(), bounds.size()), about) {}
  // The same as a native histogram. Readers of text, and databases that take none, get classic buckets, whose bounds a rule of
  // the agent decides.
  Histogram(std::string_view group, std::string_view name, const NativeBuckets& buckets,
            const Description& about = {}) noexcept;

  // Adds one observation. A NaN is ignored and counted as dropped. An infinity is counted, and makes the sum infinite.
  void Observe(double value) noexcept {
    if (internal::Cell* chunk = internal::ChunkOf(internal::tls_lane, slot_);
        PERSIA_METRICS_LIKELY(chunk != nullptr && !internal::IsNan(value))) {
      internal::Cell* cells = &internal::CellIn(chunk, slot_);
      // A reader may see the bucket before the sum of an observation in flight.
      internal::AddDoubleTo(cells[0], value);
      internal::AddTo(cells[1 + internal::BucketOf(*buckets_, value)], 1);
    } else {
      ObserveSlow(value, 1);
    }
  }
  // Adds `count` observations of `value` at once.
  void Observe(double value, uint64_t count) noexcept { ObserveSlow(value, count); }

  // The observations. Without buckets if memory runs out.
  [[nodiscard]] HistogramValue Value() const noexcept;

 private:
  template <class Instrument>
  friend class Family;
  void ObserveSlow(double value, uint64_t count) noexcept;

  uint32_t slot_ = internal::kScratchSlot;
  const internal::BucketIndex* buckets_ = &internal::kNoBounds;  // owned by the registry, never freed
};

// A duration, exported as PersiaML does: the histogram `<name>` in seconds, and the gauge `<name>_sec` with the last duration.
class PERSIA_METRICS_API TimeCost {
 public:
  // Counts nothing.
  TimeCost() noexcept = default;
  // The time cost (`group`, `name`) with the labels of `about`, with DefaultSecondsBounds().
  TimeCost(std::string_view group, std::string_view name, const Description& about = {}) noexcept
      : TimeCost(group, name, DefaultSecondsBounds(), about) {}
  // The same with other bounds of the histogram, in seconds.
  TimeCost(std::string_view group, std::string_view name, Span<const double> bounds, const Description& about = {}) noexcept;
  // The same for bounds in braces.
  TimeCost(std::string_view group, std::string_view name, std::initializer_list<double> bounds,
           const Description& about = {}) noexcept
      : TimeCost(group, name, Span<const double>(bounds.begin(), bounds.size()), about) {}

  // Adds one duration to the histogram, as Histogram::Observe does, and sets the gauge to it.
  void Observe(double seconds) noexcept {
    histogram_.Observe(seconds);
    last_.Set(seconds);
  }
  // Adds `count` durations of `seconds` at once.
  void Observe(double seconds, uint64_t count) noexcept {
    histogram_.Observe(seconds, count);
    last_.Set(seconds);
  }

  // The durations.
  [[nodiscard]] TimeCostValue Value() const noexcept { return {histogram_.Value(), last_.Value()}; }

 private:
  template <class Instrument>
  friend class Family;

  Histogram histogram_;
  Gauge last_;
};

}  // namespace abi_1
}  // namespace persia::metrics

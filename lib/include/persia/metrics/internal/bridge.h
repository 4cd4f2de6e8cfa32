// For bridges to other metric libraries: reads this process's metrics, and adds whole buckets to histograms. Not for users.
//
// Thread safety: any function, from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "persia/metrics/export.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/labels.h"
#include "persia/metrics/span.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

// Numbered as segment::Kind.
enum class ValueKind : uint8_t { kCounter = 1, kGauge = 2, kHistogram = 3, kStream = 4, kEvent = 5 };

struct SeriesValues {
  const LabelSet* labels;              // sorted by name
  bool set = false;                    // gauge and stream: whether there is a value
  double value = 0;                    // counter and event: the count; gauge and stream: the last value
  uint64_t count = 0;                  // histogram and stream
  double sum = 0;                      // histogram and stream; of a histogram, lags by the observations in flight
  std::vector<uint64_t> buckets = {};  // histogram: one for each bound and one for +Inf; not cumulative
};

// Texts, bounds and labels are valid for the life of the process.
struct FamilyValues {
  ValueKind kind;
  std::string_view group;  // of an event: its type
  std::string_view name;
  std::string_view help;
  std::string_view unit;
  GaugeMerge merge;  // of a gauge
  bool native;       // a native histogram
  Span<const double> bounds;
  std::vector<SeriesValues> series = {};
};

// All families in the order of their creation; none if metrics are disabled. Throws std::bad_alloc only.
[[nodiscard]] PERSIA_METRICS_API std::vector<FamilyValues> ReadValues();

// A Histogram that receives whole buckets of observations.
class PERSIA_METRICS_API BucketedHistogram {
 public:
  // Counts nothing.
  BucketedHistogram() noexcept = default;
  BucketedHistogram(std::string_view group, std::string_view name, Span<const double> bounds,
                    const Description& about) noexcept;

  // Adds `counts` to the buckets, one for each bound and one for +Inf, and `sum` to the sum.
  void Add(Span<const uint64_t> counts, double sum) noexcept;
  // Adds one observation to the bucket with this number. REQUIRES: `value` is not NaN.
  void Observe(uint32_t bucket, double value) noexcept;

 private:
  uint32_t slot_ = 0;
  uint32_t buckets_ = 0;
};

// Writes one line to stderr if `logged` is not set, and sets it.
PERSIA_METRICS_API void LogOnce(std::atomic<bool>& logged, std::string_view text) noexcept;

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

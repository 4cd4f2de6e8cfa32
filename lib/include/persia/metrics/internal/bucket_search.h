// Finds a value's bucket. Not for users.
#pragma once

#include <cstdint>
#include <limits>

#include "persia/metrics/export.h"
#include "persia/metrics/internal/bits.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

// A histogram's bounds, with an index that finds a bucket by one comparison.
//
// The bits of a positive double, read as an integer, ascend with its value. Shifted to the right, they are the number of a
// cell. Each cell stores how many bounds lie below it. Cells are narrow enough to hold at most one bound each, so one
// comparison with that bound gives the bucket. The first cell lies below all positive bounds and takes all values below; the
// last one lies above all bounds. `Histogram::Observe` takes half the time that it takes with a binary search of 11 bounds.
struct BucketIndex {
  static constexpr uint32_t kMaxCells = 512;

  int64_t first = 0;               // the number of the first cell
  int64_t last = -1;               // the last cell, counted from the first; negative: no cells, use BucketBySearch
  uint32_t shift = 0;              // from a double's bits to the number of its cell
  uint32_t count = 0;              // of bounds
  uint8_t starts[kMaxCells] = {};  // for each cell, the number of bounds below it
  const double* bounds = nullptr;  // ascending, followed by +infinity
  // Of a native histogram: the bounds in each octave, and the number of the first bound if 1 has number 0. Else 0.
  int64_t per_octave = 0;
  int64_t first_bound = 0;
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Of a histogram that was refused: one bucket.
inline constexpr BucketIndex kNoBounds{0, 0, 0, 0, {}, &kInfinity, 0, 0};

// BucketOf for bounds that are too close together for cells, or of which several are not positive. For those of a native
// histogram, it searches one octave.
PERSIA_METRICS_API uint32_t BucketBySearch(const BucketIndex& index, double value) noexcept;

// The index of `value`'s bucket: the number of bounds below `value`, since bounds are inclusive. REQUIRES: `value` is not a
// NaN.
inline uint32_t BucketOf(const BucketIndex& index, double value) noexcept {
  if (PERSIA_METRICS_UNLIKELY(index.last < 0)) return BucketBySearch(index, value);
  int64_t cell = (static_cast<int64_t>(BitsOf(value)) >> index.shift) - index.first;
  cell = cell < 0 ? 0 : cell;
  cell = cell > index.last ? index.last : cell;
  const uint32_t start = index.starts[cell];
  return start + static_cast<uint32_t>(index.bounds[start] < value);
}

// The index of `value`'s bucket, 0 to 161: the number of bounds 2^(k / 4), k from -80 to 80, below `value`.
// REQUIRES: `value` is positive (may be infinite) and not a NaN.
inline uint32_t StreamBucketOf(double value) noexcept {
  // value = 2^exponent * (1 + mantissa / 2^52). Scaling by a power of two is exact, so within an octave the mantissa is
  // compared with those of 2^(1/4), 2^(1/2) and 2^(3/4).
  constexpr uint64_t kQuarter = 0x3'06fe'0a31'b715;
  constexpr uint64_t kHalf = 0x6'a09e'667f'3bcd;
  constexpr uint64_t kThreeQuarters = 0xa'e89f'995a'd3ad;
  const uint64_t bits = BitsOf(value);
  const uint64_t mantissa = bits & 0xf'ffff'ffff'ffff;
  const auto exponent = static_cast<int>(bits >> 52) - 1023;
  if (PERSIA_METRICS_UNLIKELY(exponent < -20)) return 0;
  if (PERSIA_METRICS_UNLIKELY(exponent >= 20)) return 160U + static_cast<uint32_t>(exponent > 20 || mantissa != 0);
  return static_cast<uint32_t>(4 * (exponent + 20)) + static_cast<uint32_t>(mantissa > 0) +
         static_cast<uint32_t>(mantissa > kQuarter) + static_cast<uint32_t>(mantissa > kHalf) +
         static_cast<uint32_t>(mantissa > kThreeQuarters);
}

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

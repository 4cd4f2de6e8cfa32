// Which bucket a value falls into. Not for users.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "persia/metrics/export.h"

namespace persia::metrics::internal {

// A histogram's bounds, and where to look among them.
//
// The highest bits of positive doubles ascend with the doubles. So they number cells, of which each knows how many bounds lie
// below it; the cells are so narrow that at most one bound lies in each, and one comparison finds the rest. The first cell lies
// below all positive bounds and stands for all values below, the last one lies above all bounds. Takes 2 ns for 11 bounds where
// comparing with all of them takes 3, and the same for 200.
struct BucketIndex {
  static constexpr uint32_t kMaxCells = 512;

  int64_t first = 0;               // the number of the first cell
  int64_t last = -1;               // the last cell, counted from the first; negative: such cells do not fit, BucketBySearch
  uint32_t shift = 0;              // a double's bits, shifted to the right by that, are its cell's number
  uint32_t count = 0;              // of bounds
  uint8_t starts[kMaxCells] = {};  // of each cell: how many bounds lie below it
  const double* bounds = nullptr;  // ascending, and +infinity behind the last
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr BucketIndex kNoBounds{.last = 0, .bounds = &kInfinity};

// For bounds that cells do not fit: too close to each other, or several of them not positive. REQUIRES: no NaN.
PERSIA_METRICS_API uint32_t BucketBySearch(const BucketIndex& index, double value) noexcept;

// The number of bounds that are below `value`, which is the index of its bucket, since bounds are inclusive upper bounds.
// REQUIRES: `value` is not a NaN.
inline uint32_t BucketOf(const BucketIndex& index, double value) noexcept {
  if (index.last < 0) [[unlikely]] {
    return BucketBySearch(index, value);
  }
  int64_t cell = (std::bit_cast<int64_t>(value) >> index.shift) - index.first;
  cell = cell < 0 ? 0 : cell;
  cell = cell > index.last ? index.last : cell;
  const uint32_t start = index.starts[cell];
  return start + static_cast<uint32_t>(index.bounds[start] < value);
}

}  // namespace persia::metrics::internal

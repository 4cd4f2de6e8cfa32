// A stream's counts by bucket, added over all processes, and the histogram and summary values computed from them.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "segment_format.h"

namespace persia::agent {

struct StreamTotals {
  uint64_t negatives = 0;
  uint64_t zeros = 0;
  std::array<uint64_t, persia::metrics::segment::kStreamBuckets> buckets{};  // of positive values

  // Adds the counts of one process. `cells` begins at the stream's slot.
  void Add(const uint64_t* cells);
  [[nodiscard]] uint64_t Count() const;
};

// Writes the counts of a histogram's cuts.size() + 1 buckets to `out`. Values that are not positive count in the first.
void CountBetween(const StreamTotals& totals, std::span<const uint32_t> cuts, double* out);

// Writes the counts of a native histogram: of the zero bucket, then of each bucket. See StreamNativeBuckets in
// exposure/definition.cc.
void CountNative(const StreamTotals& totals, double* out);

// The quantile's value, in the program's unit. It is exact to the bucket, which is 19 % wide, and interpolated by ratio within
// it. For a quantile among negative values, of which a stream keeps only the sum, it is their mean. NaN without values.
double StreamQuantile(const StreamTotals& totals, double quantile, double negative_sum);

}  // namespace persia::agent

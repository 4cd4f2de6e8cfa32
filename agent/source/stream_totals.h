// What a stream's values come to, over all processes: counts by bucket, and what a histogram or a summary shows of them.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/scale.h"
#include "segment_format.h"

namespace persia::agent {

struct StreamTotals {
  uint64_t negatives = 0;
  uint64_t zeros = 0;
  std::array<uint64_t, persia::metrics::segment::kStreamBuckets> buckets{};  // of positive values

  // Adds the cells of one process; `cells` are those of a segment from the stream's slot on.
  void Add(const uint64_t* cells);
  [[nodiscard]] uint64_t Count() const;
};

// For each bound of a histogram the number of the last bucket below it. `bounds` are exposed ones, which `scale` made of
// boundaries of streams.
std::vector<uint32_t> StreamCuts(std::span<const double> bounds, const Scale& scale);
// The counts between the cuts, and the one above the last, to `out`: cuts.size() + 1 of them. What is not positive is below the
// first.
void CountBetween(const StreamTotals& totals, std::span<const uint32_t> cuts, double* out);

// The value below which the share `quantile` of all values lies, in the program's unit: exact to the bucket, which is 19 %
// wide, and inside it as if its values were spread evenly by ratio. Among negative values, of which a stream keeps the sum
// alone, their mean. NaN if there are no values.
double StreamQuantile(const StreamTotals& totals, double quantile, double negative_sum);

}  // namespace persia::agent

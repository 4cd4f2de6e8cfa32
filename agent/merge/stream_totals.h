// A stream's counts by bucket, added over all processes, and the histogram and summary values computed from them.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "exposure/exposure_plan.h"
#include "segment/measurements.h"
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

// Hides the series of streams without a new value for the time to live that a rule sets.
//
// A value equal to the one before is a new value: the stream's count changes. Not thread-safe.
class StreamAges {
 public:
  // For the next HideExpired. Keeps the ages of series that stay in the plan.
  void SetPlan(const ExposurePlan& plan);
  // Marks expired series as absent in `values`.
  // REQUIRES: `plan` is that of the last SetPlan, `inputs` are those of this merge.
  void HideExpired(const ExposurePlan& plan, std::span<const Measurements> inputs, std::chrono::steady_clock::time_point now,
                   std::vector<double>& values);

 private:
  struct Age {
    uint64_t count = 0;
    uint64_t last = 0;  // a hash of the last values of all parts
    std::chrono::steady_clock::time_point since{};
    bool seen = false;
    bool planned = false;
  };
  struct ExpiringSeries {
    size_t series;  // its index in the plan
    std::chrono::milliseconds ttl;
    bool gauge;
    Age* age;
  };

  std::map<std::string, Age> ages_;  // by family, identity and labels
  std::vector<ExpiringSeries> expiring_;
};

}  // namespace persia::agent

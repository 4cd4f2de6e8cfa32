// What the instruments' `Value()` returns: the values that this process has recorded.
//
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace persia::metrics {
inline namespace abi_1 {

// The observations of a histogram.
struct HistogramValue {
  uint64_t count = 0;                  // of observations
  double sum = 0;                      // of the observed values; may lag behind `count` by observations in progress
  std::vector<double> bounds = {};     // the buckets' inclusive upper bounds, without +Inf
  std::vector<uint64_t> buckets = {};  // observations in each bucket, the last one up to +Inf; not cumulative
};

// The durations of a time cost.
struct TimeCostValue {
  HistogramValue histogram = {};    // in seconds
  std::optional<double> last = {};  // the last duration, in seconds; empty: none yet
};

// The values of a stream.
struct StreamValue {
  uint64_t count = 0;               // of values, without NaNs
  double sum = 0;                   // of the values, without NaNs
  std::optional<double> last = {};  // the last value; empty: none yet
};

}  // namespace abi_1
}  // namespace persia::metrics

// The buckets of a family of native histograms, and the classic buckets that are made of them.
//
// Prometheus' native histograms have exponential buckets: bucket k of schema s has the values in (2^((k - 1) / 2^s),
// 2^(k / 2^s)]. A series has a count for the zero bucket, then one for each bucket from `first` on. Both forms of the histogram
// are computed from these counts when they are written, so that the values are collected once.
//
// The zero bucket takes all values up to its threshold, the lower bound of the first bucket; also negative ones, of which
// streams and programs keep no buckets. The last bucket also takes all values above it.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/scale.h"
#include "native_grid.h"

namespace persia::agent {

struct NativeBuckets {
  // More than the library's limit for a family, and those of a stream.
  static constexpr uint32_t kMaxBuckets = 511;

  int schema = 0;
  int first = 0;                    // the index of the bucket after the zero bucket
  uint32_t buckets = 0;             // without the zero bucket
  uint32_t max_buckets = 0;         // of a message, by a coarser schema; 0: no limit
  bool classic = false;             // by remote write, the classic form is sent beside the native one
  std::vector<uint32_t> cuts = {};  // for each bound of the classic form, how many counts are below it

  [[nodiscard]] double ZeroThreshold() const { return metrics::segment::NativeBound(schema, first - 1); }

  friend auto operator<=>(const NativeBuckets&, const NativeBuckets&) = default;
};

// By how many buckets values move if they are multiplied by `scale`: the nearest whole number. Bounds are then wrong by at most
// half a bucket, unless the scale is a power of the buckets' growth.
[[nodiscard]] int NativeShift(int schema, const Scale& scale);

// The classic counts of a series: for each bound, and for +Inf; not cumulative. The result is valid as long as `buffer`.
// `counts`: the zero bucket's, then those of the buckets. REQUIRES: at most kMaxBuckets cuts.
using ClassicBuffer = std::array<double, NativeBuckets::kMaxBuckets + 1>;
const double* ClassicCounts(const NativeBuckets& native, const double* counts, ClassicBuffer& buffer);

}  // namespace persia::agent

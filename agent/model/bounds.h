// Bounds of buckets, and the factor of a unit.
#pragma once

#include <array>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "native_grid.h"

namespace persia::agent {

// The factor from the program's unit to the exposed unit: from milliseconds to seconds it is 0.001.
//
// A scale of 1/n divides by n, so that 9 ms become 0.009 s and not 0.009000000000000001.
// Thread safety: a value.
class Scale {
 public:
  Scale() = default;
  // REQUIRES: `factor` is positive and finite.
  explicit Scale(double factor) : multiplier_(factor) {
    const double inverse = std::round(1 / factor);
    if (factor < 1 && inverse < 1e15 && 1 / inverse == factor) {
      multiplier_ = 1;
      divisor_ = inverse;
    }
  }

  [[nodiscard]] bool is_one() const { return multiplier_ == 1 && divisor_ == 1; }
  // From the program's unit to the exposed unit. Keeps the order of values; different values may become equal.
  [[nodiscard]] double Apply(double value) const { return value * multiplier_ / divisor_; }
  // From the exposed unit to the program's unit.
  [[nodiscard]] double Undo(double value) const { return value * divisor_ / multiplier_; }

  friend bool operator==(const Scale&, const Scale&) = default;

 private:
  double multiplier_ = 1;
  double divisor_ = 1;
};

// The boundaries of a stream's buckets: 2^(k/4) for k from -80 to 80, in the program's unit.
//
// A histogram of a stream can only have these boundaries as bounds: its counts are exact there, and would be estimates
// elsewhere. Thread safety: pure functions, any thread.
inline constexpr int kFirstStreamBound = -80;  // 2^-20
inline constexpr int kLastStreamBound = 80;    // 2^20
inline constexpr int kStreamSchema = 2;        // of the native histogram that has these boundaries

// 2^(k/4), the nearest double. REQUIRES: kFirstStreamBound <= k <= kLastStreamBound.
double StreamBound(int k);

// For each bound, the boundary nearest to it by ratio; ascending, without duplicates. A bound that is not positive becomes the
// first boundary, one above all boundaries the last. REQUIRES: no bound is a NaN.
std::vector<double> SnapToStreamBounds(std::span<const double> bounds);
// As above, for bounds in the exposed unit, which is `scale` times the program's.
std::vector<double> SnapToStreamBounds(std::span<const double> bounds, const Scale& scale);

// For each bound of a histogram, the index of the stream's last bucket below it. REQUIRES: the bounds are boundaries of a
// stream, scaled by `scale`.
std::vector<uint32_t> StreamCuts(std::span<const double> bounds, const Scale& scale);

// The bounds of a rule that has none: the powers of four from 2^-10 to 2^16.
std::vector<double> DefaultStreamBounds();

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

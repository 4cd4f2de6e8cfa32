// Finds a value's bucket in a stream. Not for users.
#pragma once

#include <cstdint>

#include "persia/metrics/internal/bits.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

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
  if (PERSIA_METRICS_UNLIKELY(exponent < -20)) {
    return 0;
  }
  if (PERSIA_METRICS_UNLIKELY(exponent >= 20)) {
    return 160U + static_cast<uint32_t>(exponent > 20 || mantissa != 0);
  }
  return static_cast<uint32_t>(4 * (exponent + 20)) + static_cast<uint32_t>(mantissa > 0) +
         static_cast<uint32_t>(mantissa > kQuarter) + static_cast<uint32_t>(mantissa > kHalf) +
         static_cast<uint32_t>(mantissa > kThreeQuarters);
}

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

// Which bucket a value falls into. Not for users.
#pragma once

#include <bit>
#include <cstdint>

#include "persia/metrics/export.h"

namespace persia::metrics::internal {

// Asked of the bits: training code is often compiled with -ffast-math, which takes `value != value` for false.
inline bool IsNan(double value) noexcept { return std::bit_cast<uint64_t>(value) << 1 > 0xffe0'0000'0000'0000; }

// Up to this many pairs of bounds, comparing with all of them is faster than a search by halves.
inline constexpr uint32_t kMaxPairsCompared = 16;

// The search by halves, for many bounds.
PERSIA_METRICS_API uint32_t BucketByHalves(const double* bounds, uint32_t pairs, double value) noexcept;

// The number of bounds that are below `value`, which is the index of its bucket, since bounds are inclusive upper bounds.
// REQUIRES: `bounds` holds 2 * `pairs` ascending numbers (an odd count is padded with +infinity), `value` is not a NaN,
// which would pass every comparison into bucket 0.
inline uint32_t BucketOf(const double* bounds, uint32_t pairs, double value) noexcept {
  if (pairs > kMaxPairsCompared) [[unlikely]] {
    return BucketByHalves(bounds, pairs, value);
  }
  // Two comparisons an instruction; a true lane is -1. Written with vectors since compilers turn the plain loop into
  // unpredictable branches at -O2.
  using Pair = double __attribute__((vector_size(16)));
  using Mask = long long __attribute__((vector_size(16)));  // NOLINT(google-runtime-int): what comparing a Pair gives
  const Pair values = {value, value};
  Mask below = {0, 0};
  for (uint32_t i = 0; i < pairs; ++i) {
    Pair pair;
    __builtin_memcpy(&pair, bounds + 2 * i, sizeof pair);  // bounds are aligned to 8 only
    below += pair < values;
  }
  return static_cast<uint32_t>(-(below[0] + below[1]));
}

}  // namespace persia::metrics::internal

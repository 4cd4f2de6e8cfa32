// Arithmetic that stays correct if the including code is compiled with -ffast-math, as training code often is. Not for users.
#pragma once

#include <cstdint>

#include "persia/metrics/internal/bits.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

// Tests the bits: with -ffast-math the compiler may assume that `value != value` is false.
inline bool IsNan(double value) noexcept { return BitsOf(value) << 1 > 0xffe0'0000'0000'0000; }

// Returns `value`, and hides from the compiler how it was computed, so that (a + b) - b is not simplified to a.
inline double Opaque(double value) noexcept {
#if defined(__x86_64__)
  asm("" : "+x"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#else
  asm("" : "+m"(value));
#endif
  return value;
}

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

// A double and its bits. C++20's std::bit_cast and [[likely]], for C++17. Not for users.
#pragma once

#include <cstdint>
#include <cstring>

// Tells the compiler which way a condition mostly goes.
#define PERSIA_METRICS_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define PERSIA_METRICS_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

inline uint64_t BitsOf(double value) noexcept {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline double DoubleOf(uint64_t bits) noexcept {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The rest stays correct if the including code is compiled with -ffast-math, as training code often is.

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

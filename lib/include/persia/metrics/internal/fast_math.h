// What must hold also where the including code is compiled with -ffast-math, as training code often is. Not for users.
#pragma once

#include <bit>
#include <cstdint>

namespace persia::metrics::internal {

// Asked of the bits: the compiler may take `value != value` for false.
inline bool IsNan(double value) noexcept { return std::bit_cast<uint64_t>(value) << 1 > 0xffe0'0000'0000'0000; }

// The same value, of which the compiler knows nothing: (a + b) - b is not a, and a - b == c is not a == b + c.
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

}  // namespace persia::metrics::internal

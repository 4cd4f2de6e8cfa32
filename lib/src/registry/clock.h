// The clock of phases. The agent reads the same one.
#pragma once

#include <cstdint>
#include <ctime>

namespace persia::metrics {
inline namespace abi_1 {

inline uint64_t MonotonicNs() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace abi_1
}  // namespace persia::metrics

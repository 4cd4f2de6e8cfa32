// A small, fast generator, SplitMix64, with the same numbers on every compiler. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <limits>

#include "hashing.h"

namespace embedding_job {

class Random {
 public:
  using result_type = uint64_t;  // with min, max and operator(), a generator for std::shuffle

  explicit Random(uint64_t seed) : state_(MixBits(seed)) {}

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return std::numeric_limits<uint64_t>::max(); }
  uint64_t operator()() { return MixBits(state_++); }

  // 0 to limit - 1. REQUIRES: limit > 0.
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>((((*this)() >> 32) * limit) >> 32); }
  // 0 up to, but not including, 1.
  double Share() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace embedding_job

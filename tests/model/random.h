// Draws of the histories: xorshift64*. Thread safety: none.
#pragma once

#include <cstdint>

namespace persia::agent::model {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
  uint32_t Below(uint32_t limit) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1D) >> 33) % limit;
  }

 private:
  uint64_t state_;
};

}  // namespace persia::agent::model

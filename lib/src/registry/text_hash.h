// Hashes the names of series. With std::hash a `PutMetric`, which hashes two names, takes half as long again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace persia::metrics {
inline namespace abi_1 {

// Combines the halves of the product, so that each bit of `a` and `b` changes the whole hash.
inline uint64_t MixHash(uint64_t a, uint64_t b) noexcept {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a ^ 0x9e37'79b9'7f4a'7c15U) * (b ^ 0xd1b5'4a32'd192'ed03U);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// One multiplication for each 16 bytes: names are short, and each multiplication waits for the previous one.
inline uint64_t MixHash(uint64_t hash, std::string_view text) noexcept {
  const auto load = [](const char* at, size_t bytes) {
    uint64_t word = 0;
    std::memcpy(&word, at, bytes);
    return word;
  };
  const char* at = text.data();
  size_t left = text.size();
  hash ^= uint64_t{left} << 48;
  for (; left > 16; at += 16, left -= 16) hash = MixHash(hash ^ load(at, 8), load(at + 8, 8));
  if (left >= 4) {
    // Four words that overlap so that they cover 4 to 16 bytes. A branch on the length would be hard to predict.
    const size_t inward = left / 8 * 4;
    return MixHash(hash ^ (load(at, 4) << 32 | load(at + inward, 4)),
                   load(at + left - 4, 4) << 32 | load(at + left - 4 - inward, 4));
  }
  return MixHash(hash, left == 0 ? 0 : load(at, 1) | load(at + left / 2, 1) << 8 | load(at + left - 1, 1) << 16);
}

}  // namespace abi_1
}  // namespace persia::metrics

// Hashes shared by all roles.
#pragma once

#include <cstdint>
#include <string_view>

namespace embedding_job {

// Spreads the bits of a number over all 64 (the finaliser of SplitMix64). A bijection, so no two ids collide.
constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// FNV-1a of a text, then mixed.
constexpr uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return MixBits(hash);
}

// The server, of `servers`, that holds an id. It depends on the hash's high half, because the tables inside a server use the
// low half.
constexpr uint32_t ServerOf(uint64_t id, uint32_t servers) {
  return static_cast<uint32_t>(((MixBits(id) >> 32) * servers) >> 32);
}

}  // namespace embedding_job

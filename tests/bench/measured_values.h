// What the measured programs feed to each library: the same values, bounds and label values for all.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bench {

inline constexpr uint64_t kValues = 1024;

// Small whole numbers in no order.
inline const std::array<uint64_t, kValues> kWholes = [] {
  std::array<uint64_t, kValues> wholes{};
  uint64_t state = 1;
  for (uint64_t& whole : wholes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    whole = 1 + (state >> 54);
  }
  return wholes;
}();

// Seconds from 50 microseconds to some 50 s, in no order, evenly over the octaves: each bucket gets its share.
inline const std::array<double, kValues> kSeconds = [] {
  std::array<double, kValues> seconds{};
  for (uint64_t i = 0; i < kValues; ++i) {
    seconds[i] = 5e-5 * std::exp2(20 * static_cast<double>(kWholes[i]) / 1024);
  }
  return seconds;
}();

inline double ValueOf(uint64_t i) { return kSeconds[i % kValues]; }

// `count` bounds over the same range.
inline std::vector<double> Bounds(int count) {
  std::vector<double> bounds;
  for (int i = 0; i < count; ++i) {
    bounds.push_back(1e-4 * std::exp2(19.0 * i / count));
  }
  return bounds;
}

inline constexpr std::array<std::string_view, 8> kFeatures = {"user_id",   "item_id",  "shop_id",    "category",
                                                              "time_slot", "position", "query_hash", "age_bucket"};

}  // namespace bench

// The measurement of a call: the same loop, values, bounds and label values for each library.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
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

// The same as doubles.
inline const std::array<double, kValues> kWholeDoubles = [] {
  std::array<double, kValues> wholes{};
  std::copy(kWholes.begin(), kWholes.end(), wholes.begin());
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

// Names as a user's features have them, in no order.
inline const std::array<std::string_view, kValues> kFeatures = [] {
  constexpr std::array<std::string_view, 8> kNames = {"user_id",   "item_id",  "shop_id",    "category",
                                                      "time_slot", "position", "query_hash", "age_bucket"};
  std::array<std::string_view, kValues> features{};
  for (uint64_t i = 0; i < kValues; ++i) {
    features[i] = kNames[kWholes[i] % kNames.size()];
  }
  return features;
}();

// `count` bounds over the range of kSeconds.
inline std::vector<double> Bounds(int64_t count) {
  std::vector<double> bounds;
  for (int64_t i = 0; i < count; ++i) {
    bounds.push_back(1e-4 * std::exp2(19.0 * static_cast<double>(i) / static_cast<double>(count)));
  }
  return bounds;
}

// The values that a compiler may keep in registers from one call to the next.
enum class Between {
  kNothing,    // as many as it can: calls that follow one another. Only inlined calls gain from it, such as ours.
  kOtherWork,  // none: between two calls of a training step there is code that could change any memory
};

// Measures `call(value)`. Values vary, since a constant would make calls faster. A round of the loop has eight calls: otherwise
// the loop's jump, which takes one or two cycles depending on its place in memory, would be half of a short call.
template <Between between = Between::kNothing, class Values, class Call>
void Each(benchmark::State& state, const Values& values, const Call& call) {
  while (state.KeepRunningBatch(kValues)) {
    for (uint64_t i = 0; i < kValues; i += 8) {
      const auto one = [&](uint64_t at) {
        call(values[i + at]);
        if constexpr (between == Between::kOtherWork) {
          benchmark::ClobberMemory();
        }
      };
      one(0), one(1), one(2), one(3), one(4), one(5), one(6), one(7);
    }
  }
}

}  // namespace bench

// Counts durations by upper bound, for a histogram of another thread or library.
//
//   DurationCounts counts;
//   counts.Add(std::chrono::milliseconds(3));
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace persia::agent {

struct DurationCounts {
  // Inclusive, in seconds; infinity follows. 2^(k/4) from 1/1024 to 32: those of a native histogram of schema 2.
  static constexpr auto kBounds = [] {
    constexpr std::array kQuarters{1.0, 0x1.306fe0a31b715p+0, 0x1.6a09e667f3bcdp+0, 0x1.ae89f995ad3adp+0};
    std::array<double, 61> bounds{};
    double octave = 0x1p-10;
    for (size_t i = 0; i < bounds.size(); ++i) {
      bounds[i] = octave * kQuarters[i % 4];
      if (i % 4 == 3) octave *= 2;
    }
    return bounds;
  }();

  void Add(std::chrono::duration<double> duration) {
    const auto bound = std::ranges::lower_bound(kBounds, duration.count());
    ++counts[static_cast<size_t>(bound - kBounds.begin())];
    sum += duration.count();
  }
  void Add(const DurationCounts& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
    sum += other.sum;
  }

  std::array<uint64_t, kBounds.size() + 1> counts{};  // each without those of lower bounds
  double sum = 0;                                     // in seconds
};

}  // namespace persia::agent

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
  // Inclusive, in seconds; infinity follows.
  static constexpr std::array kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0};

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

// Time: clocks, delays and counts of durations. A clock is passed in, so that a test does not sleep.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/mutex.h"

namespace persia::agent {

[[nodiscard]] inline double Seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

// Thread safety: any method, from any thread.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  virtual TimePoint Now() = 0;
  // Returns when `changed` is notified or at `time`; may also return earlier.
  virtual void WaitUntil(Mutex& mutex, CondVar& changed, TimePoint time) PERSIA_REQUIRES(mutex) = 0;
};

class SystemClock : public Clock {
 public:
  TimePoint Now() override { return std::chrono::steady_clock::now(); }
  void WaitUntil(Mutex& mutex, CondVar& changed, TimePoint time) override PERSIA_REQUIRES(mutex) {
    changed.WaitUntil(mutex, time);
  }
};

// Exponential backoff: the delay before each retry.
//
//   Backoff backoff(100ms, 5s);
//   while (!Try()) Sleep(backoff.NextJittered());
//
// Thread safety: none; one per sequence of attempts.
class Backoff {
 public:
  // REQUIRES: 0 < first <= longest.
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest) : first_(first), longest_(longest) {}

  // `first`, then twice the last delay, up to `longest`.
  std::chrono::milliseconds Next();
  // A random delay from Next() / 2 to Next(); if the peer asks for at least `least`, from `least` to Next().
  std::chrono::milliseconds NextJittered(std::optional<std::chrono::milliseconds> least = {});

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds last_{0};
};

// Counts durations by upper bound, for a histogram of another thread or library.
//
//   DurationCounts counts;
//   counts.Add(std::chrono::milliseconds(3));
//
// Thread safety: none.
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

// Measures a scope.
#pragma once

#include <chrono>

namespace persia::metrics {

// Observes the time from its making to its end, in seconds, in a Histogram or a TimeCost:
//
//   ScopedTimer timer(lookup_cost);
//
// Reads the monotonic clock twice; use it around what takes microseconds, not nanoseconds.
template <class Instrument>
class ScopedTimer {
 public:
  explicit ScopedTimer(Instrument instrument) noexcept : instrument_(instrument), start_(Clock::now()) {}
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;
  ~ScopedTimer() {
    if (armed_) {
      instrument_.Observe(Seconds());
    }
  }

  // The time so far, in seconds.
  [[nodiscard]] double Seconds() const noexcept { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // Observes nothing at the end: the scope was left for another reason than the one measured.
  void Cancel() noexcept { armed_ = false; }

 private:
  using Clock = std::chrono::steady_clock;
  Instrument instrument_;
  Clock::time_point start_;
  bool armed_ = true;
};

}  // namespace persia::metrics

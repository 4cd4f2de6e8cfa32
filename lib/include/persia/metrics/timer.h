// Measures the duration of a scope.
#pragma once

#include <chrono>

namespace persia::metrics {
inline namespace abi_1 {

// Observes the seconds from its construction to its destruction in a Histogram or a TimeCost:
//
//   ScopedTimer timer(lookup_cost);
//
// It reads the monotonic clock twice, so it suits scopes of microseconds, not of nanoseconds. A scope that an exception leaves
// is observed too. Thread safety: an object belongs to one thread.
template <class Instrument>
class ScopedTimer {
 public:
  // Reads the clock.
  [[nodiscard]] explicit ScopedTimer(Instrument instrument) noexcept : instrument_(instrument), start_(Clock::now()) {}
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;
  // Observes the time, unless it was cancelled.
  ~ScopedTimer() {
    if (armed_) instrument_.Observe(Seconds());
  }

  // The time so far, in seconds.
  [[nodiscard]] double Seconds() const noexcept { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // Cancels the observation, for a scope that is left for another reason than the measured one.
  void Cancel() noexcept { armed_ = false; }

 private:
  using Clock = std::chrono::steady_clock;
  Instrument instrument_;
  Clock::time_point start_;
  bool armed_ = true;
};

}  // namespace abi_1
}  // namespace persia::metrics

// Time, passed in so that a test does not sleep.
#pragma once

#include <chrono>

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

}  // namespace persia::agent

// Time, passed in, so that a test need not sleep.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

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
  // Waits on `changed` until it is notified, or the time has come; may also return earlier.
  // REQUIRES: `lock` is locked.
  virtual void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint time) = 0;
};

class SystemClock : public Clock {
 public:
  TimePoint Now() override { return std::chrono::steady_clock::now(); }
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint time) override {
    changed.wait_until(lock, time);
  }
};

}  // namespace persia::agent

// A clock that goes on only when the test says so.
#pragma once

#include <vector>

#include "app/clock.h"

namespace persia::agent {

class ManualClock : public Clock {
 public:
  TimePoint Now() override {
    const std::lock_guard lock(mutex_);
    return now_;
  }

  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint time) override {
    {
      const std::lock_guard own(mutex_);
      if (now_ >= time) {
        return;
      }
      waiters_.push_back({lock.mutex(), &changed});
      ++waits_;
      waiting_.notify_all();
    }
    changed.wait(lock);
  }

  void Advance(std::chrono::milliseconds by) {
    std::vector<Waiter> waiters;
    {
      const std::lock_guard lock(mutex_);
      now_ += by;
      waiters.swap(waiters_);
    }
    for (const Waiter& waiter : waiters) {
      const std::lock_guard lock(*waiter.mutex);
      waiter.changed->notify_all();
    }
  }

  // Until somebody waits for the `count`th time.
  void AwaitWaits(int count) {
    std::unique_lock lock(mutex_);
    waiting_.wait(lock, [&] { return waits_ >= count; });
  }

 private:
  struct Waiter {
    std::mutex* mutex;
    std::condition_variable* changed;
  };
  std::mutex mutex_;
  std::condition_variable waiting_;
  TimePoint now_{std::chrono::hours(1)};
  std::vector<Waiter> waiters_;
  int waits_ = 0;
};

}  // namespace persia::agent

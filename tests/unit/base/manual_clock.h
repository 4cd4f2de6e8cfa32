// A clock that only the test advances.
#pragma once

#include <chrono>
#include <vector>

#include "base/timing.h"

namespace persia::agent {

class ManualClock : public Clock {
 public:
  TimePoint Now() override {
    const MutexLock lock(mutex_);
    return now_;
  }

  void WaitUntil(Mutex& mutex, CondVar& changed, TimePoint time) override PERSIA_REQUIRES(mutex) {
    {
      const MutexLock lock(mutex_);
      if (now_ >= time) {
        return;
      }
      waiters_.push_back({&mutex, &changed});
      ++waits_;
      waiting_.NotifyAll();
    }
    changed.Wait(mutex);
  }

  void Advance(std::chrono::milliseconds by) {
    std::vector<Waiter> waiters;
    {
      const MutexLock lock(mutex_);
      now_ += by;
      waiters.swap(waiters_);
    }
    for (const Waiter& waiter : waiters) {
      const MutexLock lock(*waiter.mutex);
      waiter.changed->NotifyAll();
    }
  }

  // Returns once WaitUntil was called `count` times.
  void AwaitWaits(int count) {
    const MutexLock lock(mutex_);
    while (waits_ < count) waiting_.Wait(mutex_);
  }

 private:
  struct Waiter {
    Mutex* mutex;
    CondVar* changed;
  };
  Mutex mutex_;
  CondVar waiting_;
  TimePoint now_ PERSIA_GUARDED_BY(mutex_){std::chrono::hours(1)};
  std::vector<Waiter> waiters_ PERSIA_GUARDED_BY(mutex_);
  int waits_ PERSIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace persia::agent

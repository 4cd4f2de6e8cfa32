// A mutex, its lock and its condition variable, checked by clang's thread-safety analysis.
//
//   Mutex mutex_;
//   CondVar changed_;
//   int pending_ PERSIA_GUARDED_BY(mutex_) = 0;
//
//   const MutexLock lock(mutex_);
//   while (pending_ == 0) changed_.Wait(mutex_);
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "thread_annotations.h"

namespace persia::agent {

using metrics::Mutex;
using metrics::MutexLock;

// Thread safety: any method, from any thread.
class CondVar {
 public:
  // May return without a notification: check the condition in a loop.
  void Wait(Mutex& mutex) PERSIA_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native(), std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns at `time` at the latest.
  void WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point time) PERSIA_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native(), std::adopt_lock);
    condition_.wait_until(lock, time);
    lock.release();
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace persia::agent

// A mutex that is unlocked in a forked child, even if another thread of the parent held it.
#pragma once

#include <pthread.h>

#include <mutex>

namespace persia::metrics {
inline namespace abi_1 {

// REQUIRES: at most one object per `Owner`, which is never destroyed.
template <class Owner>
class ForkSafeMutex {
 public:
  ForkSafeMutex() {
    mutex_pointer_ = &mutex_;
    pthread_atfork([] { mutex_pointer_->lock(); }, [] { mutex_pointer_->unlock(); }, [] { mutex_pointer_->unlock(); });
  }
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static inline std::mutex* mutex_pointer_ = nullptr;
  std::mutex mutex_;
};

}  // namespace abi_1
}  // namespace persia::metrics

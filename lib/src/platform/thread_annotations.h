// A mutex with the annotations of clang's thread-safety analysis, which libstdc++'s mutex lacks.
#pragma once

#include <mutex>

#if defined(__clang__)
#define PERSIA_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define PERSIA_THREAD_ATTRIBUTE(x)
#endif
#define PERSIA_GUARDED_BY(x) PERSIA_THREAD_ATTRIBUTE(guarded_by(x))
#define PERSIA_REQUIRES(...) PERSIA_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define PERSIA_EXCLUDES(...) PERSIA_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

namespace persia::metrics {

class PERSIA_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void Lock() PERSIA_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  bool TryLock() PERSIA_THREAD_ATTRIBUTE(try_acquire_capability(true)) { return mutex_.try_lock(); }
  void Unlock() PERSIA_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  // For a condition variable, which unlocks and locks it while it waits.
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class PERSIA_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) PERSIA_THREAD_ATTRIBUTE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() PERSIA_THREAD_ATTRIBUTE(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace persia::metrics

// The library's system and C library calls that matter for the order of its accesses, or that a test lets fail. The linker
// replaces the calls by these (CMakeLists.txt: --wrap).

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "faults.h"
#include "recorder.h"
#include "threads.h"

using persia::litmus::CurrentThread;
using persia::litmus::Faults;
using persia::litmus::IsRecorded;
using persia::litmus::MessagePtr;
using persia::litmus::Recorder;
using persia::litmus::Unrecorded;

namespace {

// What the last unlock of a mutex passes on.
std::map<pthread_mutex_t*, MessagePtr> unlocked;

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names.
extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
void* __real_mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_linkat(int from_fd, const char* from, int to_fd, const char* to, int flags);
int __real_posix_fallocate(int fd, off_t offset, off_t bytes);
int __real_clock_gettime(clockid_t clock, timespec* now);

int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  if (!IsRecorded()) return __real_pthread_mutex_trylock(mutex);
  const Unrecorded own;
  Recorder::Get().Before();
  const int error = __real_pthread_mutex_trylock(mutex);
  if (error == 0) Recorder::Get().memory().Acquire(CurrentThread(), unlocked[mutex]);
  return error;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!IsRecorded()) return __real_pthread_mutex_lock(mutex);
  while (__wrap_pthread_mutex_trylock(mutex) != 0) {
    if (!persia::litmus::MayTurn(true)) {
      std::puts("a deadlock: every thread waits for a mutex");
      std::fflush(stdout);
      _exit(1);
    }
  }
  return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (IsRecorded()) {
    const Unrecorded own;
    Recorder::Get().Before();
    unlocked[mutex] = Recorder::Get().memory().Release(CurrentThread());
  }
  return __real_pthread_mutex_unlock(mutex);
}

void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  void* memory = __real_mmap(at, bytes, protection, flags, fd, offset);
  const bool is_recorded = IsRecorded();
  const Unrecorded own;
  if (is_recorded && memory != MAP_FAILED && fd >= 0 && (protection & PROT_WRITE) != 0) {
    Recorder::Get().SegmentWasMapped(memory, bytes);
  }
  return memory;
}

// Other threads, and an agent, see the file from then on.
int __wrap_linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) {
  const int error = __real_linkat(from_fd, from, to_fd, to, flags);
  if (!IsRecorded() || error != 0) return error;
  const Unrecorded own;
  Recorder::Get().SegmentWasNamed();
  return error;
}

int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (!IsRecorded()) return __real_posix_fallocate(fd, offset, bytes);
  const Unrecorded own;
  if (Faults::Get().is_full) return ENOSPC;
  const int error = __real_posix_fallocate(fd, offset, bytes);
  if (error == 0) Recorder::Get().SegmentHas(static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes));
  return error;
}

int __wrap_clock_gettime(clockid_t clock, timespec* now) {
  static time_t seconds = 1000;
  if (clock == CLOCK_MONOTONIC && IsRecorded()) {
    *now = {.tv_sec = ++seconds, .tv_nsec = 0};
    return 0;
  }
  const int error = __real_clock_gettime(clock, now);
  now->tv_sec += Faults::Get().seconds_later;
  return error;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

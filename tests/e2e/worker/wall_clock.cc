// Preloaded into a program, moves its wall clock: by as many seconds as the file in $WALL_CLOCK_SHIFT says now, so that a test
// can set the clock while the program runs. The monotonic clock does not change, as when a real clock is set.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

long ShiftSeconds() {
  const int former = errno;
  const char* path = std::getenv("WALL_CLOCK_SHIFT");
  const int fd = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  char text[32] = {};
  const ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
  if (fd >= 0) {
    close(fd);
  }
  errno = former;
  return size > 0 ? std::strtol(text, nullptr, 10) : 0;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  using Function = int (*)(clockid_t, struct timespec*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) {
    time->tv_sec += ShiftSeconds();
  }
  return result;
}

extern "C" int gettimeofday(struct timeval* __restrict time, void* __restrict zone) noexcept {
  using Function = int (*)(struct timeval*, void*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "gettimeofday"));
  const int result = real(time, zone);
  time->tv_sec += ShiftSeconds();
  return result;
}

extern "C" time_t time(time_t* out) noexcept {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) {
    *out = now.tv_sec;
  }
  return now.tv_sec;
}

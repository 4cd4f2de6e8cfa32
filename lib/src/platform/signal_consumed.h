// Hides from the program a signal that a system call sends to its own thread: SIGPIPE of a write to a pipe without a reader,
// and SIGXFSZ of a file that grows beyond its limit. Both kill the process by default; with this, the call only fails. Thread
// safety: an object belongs to one thread.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cerrno>

namespace persia::metrics {

class SignalConsumed {
 public:
  explicit SignalConsumed(int signal) {
    sigemptyset(&signal_);
    sigaddset(&signal_, signal);
    sigset_t pending;
    sigpending(&pending);
    pending_ = sigismember(&pending, signal) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  // Leaves errno as it is.
  ~SignalConsumed() {
    const int error = errno;
    if (!pending_) {  // else the program waits for it
      const timespec now{};
      while (sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  SignalConsumed(const SignalConsumed&) = delete;
  SignalConsumed& operator=(const SignalConsumed&) = delete;

 private:
  sigset_t signal_;
  sigset_t before_;
  bool pending_;
};

}  // namespace persia::metrics

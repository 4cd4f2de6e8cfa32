// Blocks all signals in the calling thread, and so in the threads that it starts: signals go to the program's own threads,
// which expect them.
// Thread safety: an object belongs to one thread.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace persia::metrics {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace persia::metrics

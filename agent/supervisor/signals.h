// The supervisor's signals: all 64 are blocked and taken one by one, so that there is no handler, and no thread for them.
// System calls instead of sigset_t's functions, since C libraries leave out the signals of their own threads (32 to 34).
#pragma once

#include <signal.h>
#include <stdint.h>

namespace persia::supervisor {

class Signals {
 public:
  // Blocks all signals. SIGCHLD gets its default action: if it is ignored, the kernel reaps children and their exit codes are
  // lost.
  Signals();

  // The number of the next signal, or 0 after `milliseconds`; negative: waits without limit. `only`: other signals stay
  // pending.
  int Take(siginfo_t& info, int64_t milliseconds, int only = 0) const;

  // The first pending signal that asks a program to end; 0: none. One that this process inherited as ignored does not count.
  [[nodiscard]] int PendingEnd() const;

  // Stops this process as the signal does by default, as a shell expects of a job whose terminal sent Ctrl-Z. Returns once it
  // was continued, or at once where the kernel ignores it: in a process group that nobody could continue.
  void StopBy(int signal) const;

  // In a forked child: the mask and the actions that this process inherited. Async-signal-safe.
  void RestoreInChild() const;

 private:
  uint64_t inherited_mask_ = 0;
  struct sigaction inherited_child_ {};
};

}  // namespace persia::supervisor

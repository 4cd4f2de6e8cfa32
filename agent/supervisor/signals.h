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

  // The number of the next signal, or 0 after `milliseconds`. `only`: other signals stay pending.
  int Take(siginfo_t& info, int64_t milliseconds, int only = 0) const;

  // The pending signals: bit n - 1 for signal n.
  [[nodiscard]] uint64_t Pending() const;
  // The first of them that asks a program to end; 0: none. One that this process inherited as ignored or blocked does not
  // count.
  [[nodiscard]] int PendingEnd(uint64_t pending) const;

  // Whether the terminal sent it to the whole process group: after a key, and at its hang-up unless this process leads the
  // session, since then only the leader gets SIGHUP. The kernel sends other signals to one process, such as that of alarm(2).
  [[nodiscard]] static bool IsForGroup(int signal, const siginfo_t& info);

  // Stops this process as the signal does by default, as a shell expects of a job whose terminal sent Ctrl-Z. Returns once it
  // was continued, or immediately if the kernel ignores the signal: in a process group that no other process could continue.
  void StopBy(int signal) const;

  // In a forked child: the mask and the actions that this process inherited. Async-signal-safe.
  void RestoreInChild() const;

 private:
  uint64_t inherited_mask_ = 0;
  struct sigaction inherited_child_ {};
};

}  // namespace persia::supervisor

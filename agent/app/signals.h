// Signals as something to wait for, instead of something that interrupts.
//
// While a SignalReader lives, the signals that concern the agent or its command are blocked in the thread that made it and in
// all threads that it starts, and come out of Next(). What the process had inherited is put back by the destructor, and in a
// forked child by RestoreInChild(), so that a command sees what it would see without us.
// Thread safety: Next in one thread; Wake from any. REQUIRES: made before other threads, one at a time.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>

namespace persia::agent {

struct ReceivedSignal {
  int number = 0;
  // Sent by the kernel, so by the terminal (Ctrl-C, hang-up): then everyone in the foreground group has got it.
  bool from_terminal = false;
};

class SignalReader {
 public:
  SignalReader();
  ~SignalReader();
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  // The next signal: SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2. Nothing after Wake().
  std::optional<ReceivedSignal> Next();
  // Makes Next return without a signal, once.
  void Wake();

  // Whether this process was started with the signal ignored, as nohup and shells' background jobs are.
  [[nodiscard]] static bool InheritedAsIgnored(int signal);

  // Async-signal-safe.
  void RestoreInChild() const;

 private:
  sigset_t inherited_mask_;
  struct sigaction inherited_pipe_;
  struct sigaction inherited_ttou_;
  struct sigaction inherited_child_;
  int signals_ = -1;
  int wake_ = -1;
};

}  // namespace persia::agent

// Signals that a thread waits for, instead of signal handlers.
//
// Once a SignalReader is made, the signals that Next() returns are blocked in the thread that made it and in all threads that
// this one starts. SIGPIPE and SIGTTOU are ignored from then on: neither a closed pipe nor output from the background may end
// or stop the agent. Thread safety: Next: one thread; Wake: any. REQUIRES: created before other threads, one at a time.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <optional>

namespace persia::agent {

struct ReceivedSignal {
  int number = 0;
  // Sent by the kernel for the terminal (Ctrl-C, hang-up), to all processes of the foreground group.
  bool from_terminal = false;
  // Whether it may ask this process to end, by its sender.
  bool may_end = true;

  // Whether it asks the process to end.
  [[nodiscard]] bool IsEnd() const { return may_end && (number == SIGTERM || number == SIGINT || number == SIGQUIT); }
};

class SignalReader {
 public:
  // `ender`: the process whose signals alone ask this one to end; 0: any.
  explicit SignalReader(pid_t ender = 0);
  ~SignalReader();
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  using TimePoint = std::chrono::steady_clock::time_point;
  // The next signal: SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2. None after Wake(), and at `until`.
  std::optional<ReceivedSignal> Next(std::optional<TimePoint> until = {});
  // Makes Next return without a signal, once.
  void Wake();

  // Whether this process was started with the signal ignored, as nohup and shells' background jobs are.
  [[nodiscard]] static bool InheritedAsIgnored(int signal);

 private:
  const pid_t ender_;
  int signal_fd_ = -1;
  int wake_fd_ = -1;
};

}  // namespace persia::agent

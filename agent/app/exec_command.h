// The command that the agent runs under `exec`: started, given its signals, waited for.
//
//   SignalReader signals;
//   auto started = ExecCommand::Start({"python3", "train.py"}, {{"PERSIA_JOB_NAME", "dlrm"}}, signals);
//   if (auto* failure = std::get_if<ExecCommand::Failure>(&started)) return failure->exit_code;
//   int exit_code = std::get<ExecCommand>(started).Wait(signals);
//
// The command stays in the agent's process group: the terminal's job control (Ctrl-C, Ctrl-Z, fg, bg) works on both as on one,
// and a Ctrl-C reaches the command once, from the terminal, since the agent does not pass on what the terminal sent. It has
// the signal mask and dispositions that the agent had inherited, and no descriptor of the agent's. It is not tied to the
// agent's life: an agent that is killed leaves it running.
// Thread safety: none. REQUIRES: started while the process has one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/signals.h"

namespace persia::agent {

// A process that was buried.
struct EndedChild {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // with the pid, tells it apart from all others; 0: not known
  int wait_status = 0;       // as of waitpid(2)
};

class ExecCommand {
 public:
  // As a shell has it: 127 if there is no such command, 126 if it cannot be run.
  struct Failure {
    int exit_code = 0;
    std::string message;
  };

  // Runs arguments[0], looked up in PATH, with our environment and `environment` in it. REQUIRES: arguments are not empty.
  static std::variant<ExecCommand, Failure> Start(const std::vector<std::string>& arguments,
                                                  const std::vector<std::pair<std::string, std::string>>& environment,
                                                  const SignalReader& signals);

  // Passes signals on until the command has ended, and buries the children of others that were left to us: all of them as
  // pid 1, else those that the command left behind. Returns its exit code, 128 + n if signal n ended it.
  // `on_end` is told of each of them.
  int Wait(SignalReader& signals, const std::function<void(const EndedChild&)>& on_end = nullptr);

  [[nodiscard]] pid_t pid() const { return pid_; }
  // The signal that ended the command, if it was sent to the whole group and has not come to us yet: a Ctrl-C may end the
  // command before we hear of it, and is no second one then. 0: none. `exit_code`: what Wait returned.
  [[nodiscard]] int SignalOnItsWay(int exit_code) const;

 private:
  explicit ExecCommand(pid_t pid) : pid_(pid) {}
  void PassOn(const ReceivedSignal& signal);

  pid_t pid_;
  std::set<int> received_;  // signals, while the command ran
};

}  // namespace persia::agent

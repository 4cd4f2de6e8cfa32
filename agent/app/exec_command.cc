#include "app/exec_command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "app/text.h"
#include "source/proc_reader.h"

namespace persia::agent {
namespace {

// Our environment, with `changes` in it.
std::vector<std::string> MakeEnvironment(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    bool changed = false;
    for (const auto& change : changes) {
      changed = changed || change.first == name;
    }
    if (!changed) {
      result.emplace_back(text);
    }
  }
  for (const auto& [name, value] : changes) {
    result.push_back(name + "=" + value);
  }
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) {
    pointers.push_back(string.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

ExecCommand::Failure CannotRun(const std::string& command, int error) {
  if (error == ENOENT) {
    return {127, "cannot run " + Quoted(command) + ": there is no such command"};
  }
  return {126, "cannot run " + Quoted(command) + ": " + std::strerror(error)};
}

// Any child that has ended; none if there is none now.
std::optional<EndedChild> Bury(ProcReader& proc) {
  siginfo_t info{};
  // Left as it is at first: what /proc tells of it goes with it.
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  EndedChild child{.pid = info.si_pid};
  if (const auto stat = proc.Stat(std::to_string(child.pid))) {
    child.start_ticks = stat->start_ticks;
  }
  return waitpid(child.pid, &child.wait_status, 0) == child.pid ? std::optional(child) : std::nullopt;
}

}  // namespace

std::variant<ExecCommand, ExecCommand::Failure> ExecCommand::Start(
    const std::vector<std::string>& arguments, const std::vector<std::pair<std::string, std::string>>& environment,
    const SignalReader& signals) {
  // What the command leaves behind comes to us, as it does anyway for pid 1; without it, orphans would be init's.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<std::string> argument_strings = arguments;
  std::vector<std::string> environment_strings = MakeEnvironment(environment);
  const std::vector<char*> argv = Pointers(argument_strings);
  const std::vector<char*> envp = Pointers(environment_strings);
  // Closed by a successful exec; else it brings the reason.
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    return CannotRun(arguments[0], errno);
  }
  const pid_t pid = fork();
  if (pid == 0) {
    signals.RestoreInChild();
    execvpe(argv[0], argv.data(), envp.data());
    const int error = errno;
    const ssize_t written = write(report[1], &error, sizeof error);
    _exit(written == static_cast<ssize_t>(sizeof error) ? 127 : 126);
  }
  const int fork_error = errno;
  close(report[1]);
  int error = 0;
  ssize_t size = 0;
  if (pid > 0) {
    do {
      size = read(report[0], &error, sizeof error);
    } while (size < 0 && errno == EINTR);
  }
  close(report[0]);
  if (pid < 0) {
    return CannotRun(arguments[0], fork_error);
  }
  if (size == static_cast<ssize_t>(sizeof error)) {
    waitpid(pid, nullptr, 0);
    return CannotRun(arguments[0], error);
  }
  return ExecCommand(pid);
}

int ExecCommand::Wait(SignalReader& signals, const std::function<void(const EndedChild&)>& on_end) {
  ProcReader proc;
  int exit_code = 0;
  bool ended = false;
  while (!ended) {
    // Looked at before the first signal too: a SIGCHLD may have come before anyone was listening.
    while (const auto child = Bury(proc)) {
      const int status = child->wait_status;
      if (child->pid == pid_) {
        ended = true;
        exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      }
      if (on_end) {
        on_end(*child);
      }
    }
    if (!ended) {
      if (const auto signal = signals.Next()) {
        PassOn(*signal);
      }
    }
  }
  return exit_code;
}

int ExecCommand::SignalOnItsWay(int exit_code) const {
  const int signal = exit_code > 128 ? exit_code - 128 : 0;
  return received_.contains(signal) ? 0 : signal;
}

void ExecCommand::PassOn(const ReceivedSignal& signal) {
  received_.insert(signal.number);
  if (signal.number == SIGCHLD) {
    return;
  }
  if (signal.from_terminal && getpgid(pid_) == getpgrp()) {
    return;  // the command has got it from the terminal
  }
  kill(pid_, signal.number);
}

}  // namespace persia::agent

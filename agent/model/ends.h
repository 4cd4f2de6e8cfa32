// How a run and its processes end.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

// How a process of the job ended, as a label value: "exit_0", "exit_3", "SIGKILL", or one of the constants.
//
// Thread safety: pure functions.

// By a normal exit whose code is not known.
inline constexpr std::string_view kExitOfUnknownCode = "exit";
// Without a mark of a normal exit, and no parent has told the agent more: by a signal, or by _exit.
inline constexpr std::string_view kUnknownEnd = "unknown";
// The process lives: it has replaced its program by exec, and the new one has a segment of its own.
inline constexpr std::string_view kReplacedProgram = "exec";

// Whether the process left on its own, and not because of an error.
[[nodiscard]] inline bool IsCleanExit(std::string_view reason) {
  return reason == "exit_0" || reason == kExitOfUnknownCode || reason == kReplacedProgram;
}

// A person or a scheduler has asked the job to end, by a signal to `exec`.
//
// Thread safety: plain data.
struct Interruption {
  std::string signal = {};     // "SIGINT"
  bool from_terminal = false;  // by a key: a person did it
  std::chrono::system_clock::time_point at = {};
};

// "interrupted by SIGINT", "terminated by SIGTERM"
[[nodiscard]] inline std::string InterruptionText(const std::string& signal) {
  return (signal == "SIGTERM" ? "terminated by " : "interrupted by ") + signal;
}

// One of the commands that `exec` runs, one after another, in a run that goes on after failures.
//
// Thread safety: plain data.
struct RunAttempt {
  int number = 1;
  std::chrono::system_clock::time_point began = {};
  std::optional<std::chrono::system_clock::time_point> run_began = {};  // none: not known
};

}  // namespace persia::agent

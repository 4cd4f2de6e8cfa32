// How a process of the job ended, as a label value: "exit_0", "exit_3", "SIGKILL", or one of the constants.
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

namespace persia::agent {

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

}  // namespace persia::agent

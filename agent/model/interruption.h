// A person or a scheduler has asked the job to end, by a signal to `exec`.
//
// Thread safety: plain data.
#pragma once

#include <chrono>
#include <string>

namespace persia::agent {

struct Interruption {
  std::string signal = {};     // "SIGINT"
  bool from_terminal = false;  // by a key: a person did it
  std::chrono::system_clock::time_point at = {};
};

// "interrupted by SIGINT", "terminated by SIGTERM"
[[nodiscard]] inline std::string InterruptionText(const std::string& signal) {
  return (signal == "SIGTERM" ? "terminated by " : "interrupted by ") + signal;
}

}  // namespace persia::agent

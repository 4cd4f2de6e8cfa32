// One of the commands that `exec` runs, one after another, in a run that goes on after failures.
//
// Thread safety: plain data.
#pragma once

#include <chrono>
#include <optional>

namespace persia::agent {

struct RunAttempt {
  int number = 1;
  std::chrono::system_clock::time_point began = {};
  std::optional<std::chrono::system_clock::time_point> run_began = {};  // none: not known
};

}  // namespace persia::agent

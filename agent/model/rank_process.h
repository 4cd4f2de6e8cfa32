// A process that may be a rank's, with its phases and steps.
//
// Thread safety: plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {

// The role of a launcher, such as torchrun: it starts the ranks, and is none.
inline constexpr std::string_view kLauncherRole = "launcher";

// Role and replica.
using RankKey = std::pair<std::string, int32_t>;

struct RankProcess {
  using Nanoseconds = std::chrono::nanoseconds;

  RankKey rank;
  std::string id;  // of its segment
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  bool alive = false;
  bool forked = false;         // by a process of the same rank: a data loader, for example
  Nanoseconds began{0};        // of CLOCK_MONOTONIC, as are all moments here
  uint64_t birth_unix_ns = 0;  // when it began to record
  Nanoseconds recorded{0};     // the same of CLOCK_MONOTONIC; 0: as it began
  uint32_t restart_count = 0;  // from the launcher
  bool has_changed = false;    // the collector has found a value changed, or a counter that is not 0
  bool hangs = false;
  bool runs_other = false;  // it has replaced its program by exec, and the new one recorded nothing when it was last alive
  // The time in each phase, the present one, and until when the times count; no moment: no clock runs.
  std::vector<std::pair<std::string, Nanoseconds>> phases = {};
  std::string phase = {};
  std::optional<Nanoseconds> clocks_until = {};
  Nanoseconds last_mark{0};  // when it last entered a phase, or exited; 0: it has entered none
  std::optional<double> step = {};
  std::optional<double> first_step = {};
  double counted_steps = 0;  // of a program that has not numbered them
  // How an ended process ended (exit_reason.h); none: that may become known in the next collection.
  std::optional<std::string> exit = {};
};

// How a process ended whose exit was not known before.
struct LateExit {
  std::string id;
  std::string exit;
};

}  // namespace persia::agent

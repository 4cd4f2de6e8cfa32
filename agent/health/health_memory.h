// What an agent that starts again must know to go on judging: the rhythm of the job, and the processes of a hang.
//
//   std::string bytes = EncodeHealth(memory);      // into the state of the run
//   std::optional<HealthMemory> memory = DecodeHealth(bytes);
//
// ../ledger/state_format.md has the encoding. Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/death_memory.h"

namespace persia::agent {

struct HealthMemory {
  using TimePoint = std::chrono::system_clock::time_point;
  struct Process {
    uint64_t pid_namespace = 0;
    uint32_t pid = 0;
    uint64_t start_ticks = 0;
    uint32_t ordinal = 0;
    uint64_t changes = 0;                           // in how many collections its metrics had changed
    std::optional<TimePoint> unchanged_since = {};  // none: they still changed
    std::optional<TimePoint> hung_since = {};       // none: it was not singled out

    friend bool operator==(const Process&, const Process&) = default;
  };

  std::chrono::milliseconds longest_pause{0};
  std::optional<TimePoint> job_hangs_since = {};
  std::vector<Process> processes = {};  // all of the job while it or a process hangs, else none
  DeathMemory deaths = {};

  friend bool operator==(const HealthMemory&, const HealthMemory&) = default;
};

[[nodiscard]] std::string EncodeHealth(const HealthMemory& memory);
// None: the bytes are malformed.
[[nodiscard]] std::optional<HealthMemory> DecodeHealth(std::string_view bytes);

}  // namespace persia::agent

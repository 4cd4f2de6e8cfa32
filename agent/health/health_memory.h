// What an agent that starts again must know to go on judging: the rhythm of the job, and the processes of a hang.
//
//   std::string bytes = Encode(memory);      // into the state of the run
//   auto memory = DecodeAs<HealthMemory>(bytes);
//
// The order of the fields here is that of the state (files/bytes.h). Thread safety: plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "files/bytes.h"
#include "health/death_memory.h"

namespace persia::agent {

struct HealthMemory {
  using TimePoint = std::chrono::system_clock::time_point;
  struct Known {
    ProcessId id = {};
    uint32_t ordinal = 0;
    uint64_t changes = 0;                           // in how many collections its metrics had changed
    std::optional<TimePoint> unchanged_since = {};  // none: they still changed
    std::optional<TimePoint> hung_since = {};       // none: it was not singled out

    friend bool operator==(const Known&, const Known&) = default;
  };

  std::chrono::milliseconds longest_pause{0};
  std::optional<TimePoint> job_hangs_since = {};
  std::vector<Known> processes = {};  // all of the job while it or a process hangs, else none
  DeathMemory deaths = {};

  friend bool operator==(const HealthMemory&, const HealthMemory&) = default;
};

template <class Archive>
void Fields(Archive& archive, HealthMemory::Known& process) {
  archive(process.id, process.ordinal, process.changes, process.unchanged_since, process.hung_since);
}

template <class Archive>
void Fields(Archive& archive, HealthMemory& memory) {
  archive(memory.longest_pause, memory.job_hangs_since, memory.processes, memory.deaths);
  archive.Check(memory.longest_pause.count() >= 0);
}

}  // namespace persia::agent

// A rank, and how its processes are told apart.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/process.h"

namespace persia::agent {

// A rank: the main process of an instance, which marks phases. Further processes of it, such as data loaders, are no ranks.
//
// Thread safety: pure functions.

// The phase in which a rank waits for others (persia/metrics/phase.h).
inline constexpr std::string_view kSyncPhase = "sync";

// Instead of `sync`, if a signal has stopped the rank there.
inline constexpr std::string_view kStoppedPhase = "stopped";

// Distinguishes it from its successors, and from other ranks in the same process.
using RankProcessKey = std::pair<Identity, ProcessId>;

// Whether it is alive, and marks phases.
[[nodiscard]] inline bool IsRank(const Process& process) {
  return process.alive && process.ordinal == 0 && !process.phase_seconds.empty();
}
[[nodiscard]] inline RankProcessKey RankProcessKeyOf(const Process& process) { return {process.identity, process.id}; }

// Ranks that several processes share: they train at once under one role and replica, so that nothing distinguishes them.
//
//   SharedRanks shared;
//   for (const SharedRanks::Pair& pair : shared.Look(processes)) Log(SentenceOf(pair));   // in each collection
//
// Two processes train at once if one counts or numbers a step, then the other one, then the first one again. Each rank is found
// once. Thread safety: none; used by the collector thread alone.
class SharedRanks {
 public:
  struct Pair {
    RankId rank;
    uint32_t first_pid = 0;
    uint32_t second_pid = 0;
  };

  // The ranks that are found to be shared now.
  [[nodiscard]] std::vector<Pair> Look(std::span<const Process> processes);

 private:
  struct Steps {
    double step = 0;
    bool has_changed = false;
  };

  std::map<std::string, Steps> steps_;     // of the running processes, by id
  std::map<RankId, std::string> trained_;  // the process that changed its step last
  std::set<RankId> found_;
};

// What is wrong, and what to do.
[[nodiscard]] std::string SentenceOf(const SharedRanks::Pair& pair);

}  // namespace persia::agent

// Ranks that several processes share: they train at once under one role and replica, so that nothing distinguishes them.
//
//   SharedRanks shared;
//   for (const SharedRanks::Pair& pair : shared.Look(processes)) Log(SentenceOf(pair));   // in each collection
//
// Two processes train at once if one counts or numbers a step, then the other one, then the first one again. Each rank is found
// once. Thread safety: none; used by the collector thread alone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/process.h"

namespace persia::agent {

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

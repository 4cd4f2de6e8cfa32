// Reports each end of a process once in a run, also if the agent restarts, and the deaths among them.
//
//   DeathRecorder recorder;
//   recorder.Restore(former_memory);                         // before the first Look
//   for (const Process& ended : recorder.Look(ends, {...})) ...
//   recorder.memory()                                        // to be saved with the folds of these ends, in one write
//
// An end whose reason is not known yet waits for one more Look, in which its parent may have reported it. Meanwhile it is in
// the memory, so that an agent that is killed loses no death. Thread safety: none; used by the collector thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "health/death_memory.h"
#include "model/ends.h"
#include "model/process.h"

namespace persia::agent {

class DeathRecorder {
 public:
  struct Moment {
    // How a process ended whose reason was not known; empty: it still is not. Null: no reason can become known later.
    std::function<std::string(const Process&)> exit_of = {};
    // No further collection may follow: the reasons that are not known now are unknown.
    bool is_last = false;
    // The signal that asks the job to end; none: nothing does.
    std::optional<Interruption> interruption = {};
  };

  // `ended`: since the last Look. Returns those whose exit is known now, each with its death if it has died; those that ended
  // first come first.
  [[nodiscard]] std::vector<Process> Look(std::vector<Process> ended, const Moment& moment);

  [[nodiscard]] const DeathMemory& memory() const { return memory_; }
  // Rises with each change of the memory.
  [[nodiscard]] uint64_t changes() const { return changes_; }
  // The kernel's counts, to be saved with the deaths that were found by them.
  void SetKills(const std::map<std::string, uint64_t>& kills);
  // What a former agent has reported. May be called at any time, since a state may become readable after ends were reported.
  void Restore(const DeathMemory& former);

 private:
  void KeepDeaths(std::span<const Process> told);
  void Keep(Process dead);

  DeathMemory memory_;
  uint64_t changes_ = 0;
  size_t told_before_ = 0;  // deaths that the last Look has told
};

}  // namespace persia::agent

// The state of the processes shortly before they end: memory, limits, the kernel's kills for lack of memory, full filesystems
// and stacks.
//
//   Vitals vitals({.directory = job_directory});
//   vitals.Restore(kills_of_the_former_agent);
//   vitals.Describe(ends, now);                  // in each collection: the ends that it found
//   vitals.Look(processes, now);                 // and then, in full collections, the processes that live
//   vitals.kills()                               // for the state
//
// Files outside of /proc, the cgroups and the job's directory are touched only in threads of their own, since their filesystem
// may hang. Processes of other pid namespaces have no vitals but the kernel's counts. Thread safety: the collector thread
// alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "health/memory_kills.h"
#include "health/stack_files.h"
#include "health/stderr_file.h"
#include "kernel/background_call.h"
#include "kernel/cgroups.h"
#include "kernel/full_filesystems.h"
#include "kernel/proc_reader.h"
#include "model/process.h"

namespace persia::agent {

class Vitals {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Options {
    std::string directory = {};  // of the job, with the files of stacks
    std::string root = {};       // of /proc and the cgroups; empty: the machine itself
    FullFilesystems::FreeRatio free_ratio = FullFilesystems::FreeRatioOf;
  };
  explicit Vitals(Options options);

  // How many last lines of a dead process's stderr are read; 0: none.
  void SetStderrLines(uint64_t lines) { stderr_lines_ = lines; }
  void Restore(const std::map<std::string, uint64_t>& kills) { kills_.Restore(kills); }
  // Sets ProcessEnd::about of each. REQUIRES: each has an end.
  void Describe(std::vector<Process>& ends, TimePoint now);
  void Look(std::span<const Process> processes, TimePoint now);
  [[nodiscard]] std::map<std::string, uint64_t> kills() const { return kills_.counts(); }

  // Asks a living process for the stacks of its threads, once in a hang.
  void AskForStacks(const Process& process);
  // The process does not hang any more: the next hang is another one.
  void EndHang(const Process& process);
  // The stacks that it has written since it was asked; each answer once, empty if there is none.
  [[nodiscard]] std::string TakeStacks(const Process& process);
  // Those that no end removes (StackFiles).
  void RemoveOrphanedStacks() { stacks_.RemoveOrphans(); }

 private:
  struct Sample {
    std::string cgroup;
    std::optional<MemoryLimit> limit;
    Circumstances about;
    std::deque<std::pair<TimePoint, uint64_t>> resident;  // of the last minute
    std::optional<StderrFile> stderr_file;
    std::optional<TimePoint> slow_read;  // of what rarely changes
    bool was_asked = false;
    bool awaits_stacks = false;
    uint64_t look = 0;
  };

  void NoteKills(TimePoint now);
  void Measure(const ProcessId& process, Sample& sample, TimePoint now);
  bool TakeKill(const Sample* sample, ProcessEnd& end, TimePoint now);
  void ReadStderr(std::vector<Process>& ends);
  [[nodiscard]] const Sample* SampleOf(const Process& process) const;

  MemoryCgroups cgroups_;
  MemoryKills kills_;
  FullFilesystems filesystems_;
  StackFiles stacks_;
  ProcReader proc_;
  const std::optional<uint64_t> own_namespace_;
  const std::string own_cgroup_;
  std::map<ProcessId, Sample> samples_;
  BackgroundCall stderr_call_{"stderr"};
  uint64_t stderr_lines_ = 0;
  uint64_t looks_ = 0;
};

}  // namespace persia::agent

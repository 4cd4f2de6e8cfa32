// `persia_process_*` of each worker process and `persia_job_info` of each identity, or of the agent if there is none, from the
// collector's list of processes and from /proc.
//
//   WorkerMetrics metrics({.processes = [&] { return segments.processes(); }, .agent_version = "0.1.0"});
//   segments.Collect();
//   auto snapshot = metrics.Collect();
//
// /proc/<pid> is read only if its pid namespace and start time are those in the worker's segment. For a worker in another
// container, the values from /proc are left out.
//
// Thread safety: the collector thread alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/proc_reader.h"
#include "model/process.h"
#include "model/rows.h"

namespace persia::agent {

class WorkerMetrics {
 public:
  struct Options {
    // The current processes, each identity and ordinal once. Called by Collect, which sets their usage.
    std::function<std::span<Process>()> processes;
    std::string agent_version;
    std::string run_id = {};             // of the agent; that of a process without one, too
    std::optional<Identity> agent = {};  // stands for a job without a worker process; none: nothing does
    std::filesystem::path proc = "/proc";
    // The instances with ended processes. Called by Collect; may be null.
    std::function<std::span<const EndedProcesses>()> ended = {};
    bool shows_hangs = false;
  };

  explicit WorkerMetrics(Options options);

  // Unknown values are left out.
  std::shared_ptr<const Snapshot> Collect();

 private:
  using EntryKey = std::pair<Identity, uint32_t>;
  struct Entry {
    Process process;  // as of the last change of what the layout and the reads of /proc depend on
    std::string pid;  // as a directory name in /proc
    std::string ordinal;
    std::string last_exit;
    bool readable = false;  // /proc/<pid> is in the same pid namespace
    bool is_first = true;   // of the entries of the process
    std::optional<double> start_time;
    std::string library_version;  // kept when the process has ended
  };

  void UpdateEntries(std::span<const Process> processes);
  void SetProcess(Entry& entry, const Process& process);
  // Several copies of the library in one process have a segment each: one of them has what the kernel knows of the process.
  void FindFirsts();
  void FindInfos();
  void ReadUsage(Process& process, Entry& entry);
  void AddProcess(const Process& process, const Entry& entry);

  const Options options_;
  ProcReader proc_;
  std::map<EntryKey, Entry> entries_;
  std::vector<Entry*> order_;  // as in the last list of processes
  std::map<Identity, Labels> infos_;
  Rows rows_;
};

}  // namespace persia::agent

// One reading of all sources of this folder.
//
// The job's cgroup, network namespace, /dev/shm and working directory are those of one worker: the first that /proc shows,
// until it ends. Before the first worker they are the agent's. After a worker has ended, its cgroup is still read, and so are
// the namespaces that it shares with the agent; those of its own are not, because its pid may be that of another process.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/cgroups.h"
#include "kernel/proc_reader.h"
#include "machine/filesystem_probe.h"
#include "machine/machine_reading.h"
#include "machine/worker_details.h"

namespace persia::agent {

struct MachineResult {
  std::vector<MachineReading::Series> series;  // sorted by family and labels
  WorkerDetails::Values workers;
  std::vector<std::string> absent;  // sources without a value, in words
  std::chrono::steady_clock::time_point read_at;
};

class MachineSources {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    std::string root = {};             // of all paths; "": the machine itself
    std::string state_directory = {};  // empty: none
    FilesystemProbe::Statvfs statvfs = {};
    std::chrono::milliseconds worker_interval = std::chrono::seconds(10);  // of WorkerDetails
  };

  explicit MachineSources(Options options);

  MachineResult Read(std::span<const ProcessId> processes, TimePoint now);

 private:
  // The process whose values are those of the job, and where they are read.
  struct Subject {
    std::optional<ProcessId> worker;  // none: the agent
    std::string membership = {};      // its /proc/<pid>/cgroup
    CgroupPaths cgroup;
    // Empty: not known any more.
    std::string network = "self";  // a process in the network namespace
    std::string shm = "/dev/shm";
    std::string working_directory;
  };

  void Follow(std::span<const ProcessId> processes);
  void FollowWorker(const ProcessId& worker);
  bool SharesNamespace(const std::string& pid, std::string_view kind);
  void ReadFilesystems(TimePoint now, MachineReading& reading);

  const Options options_;
  KernelFiles files_;  // of the whole machine
  ProcReader proc_;
  WorkerDetails details_;
  Subject subject_;
  FilesystemProbe shm_;
  FilesystemProbe state_;
  FilesystemProbe working_directory_;
  std::optional<TimePoint> details_read_;
  std::vector<ProcessId> details_of_;  // the processes of that reading
};

}  // namespace persia::agent

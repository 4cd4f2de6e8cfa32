// Which worker processes a signal has stopped (SIGSTOP, SIGTSTP, a debugger), by /proc.
//
// Thread safety: the collector thread alone.
#pragma once

#include <filesystem>

#include "files/proc_reader.h"
#include "model/worker_process.h"

namespace persia::agent {

class StoppedProcesses {
 public:
  explicit StoppedProcesses(const std::filesystem::path& proc = "/proc");

  // False also if the process is in another pid namespace than the agent, or has ended.
  bool Contains(const WorkerProcess& process);

 private:
  ProcReader proc_;
};

}  // namespace persia::agent

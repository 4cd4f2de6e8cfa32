#include "workers/stopped_processes.h"

#include <string>

namespace persia::agent {

StoppedProcesses::StoppedProcesses(const std::filesystem::path& proc)
    : proc_(proc), own_namespace_(proc_.PidNamespace("self")) {}

bool StoppedProcesses::Contains(const WorkerProcess& process) {
  const std::string pid = std::to_string(process.pid);
  const uint64_t there = proc_.PidNamespace(pid).value_or(own_namespace_.value_or(0));
  if (!process.alive || process.pid_namespace == 0 || there != process.pid_namespace) return false;
  const auto stat = proc_.Stat(pid);
  return stat && stat->start_ticks == process.start_ticks && (stat->state == 'T' || stat->state == 't');
}

}  // namespace persia::agent

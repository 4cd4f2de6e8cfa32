#include "workers/stopped_processes.h"

#include <optional>

namespace persia::agent {

StoppedProcesses::StoppedProcesses(const std::filesystem::path& proc) : proc_(proc) {}

bool StoppedProcesses::Contains(const WorkerProcess& process) {
  const auto stat = process.alive ? proc_.StatOf(process) : std::nullopt;
  return stat && (stat->state == 'T' || stat->state == 't');
}

}  // namespace persia::agent

// The values of MachineReader as a snapshot: those of the machine on the agent's identity, those of each worker on the
// worker's.
//
//   MachineMetrics metrics({.identity = agent_identity, .read = ReadOf({.state_directory = "/var/lib/persia"})});
//   metrics.Use(/*enabled=*/true, 10s);
//   metrics.Collect(segments.processes());
//
// Thread safety: the collector thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "machine/machine_reader.h"
#include "machine/machine_sources.h"
#include "model/process.h"
#include "model/rows.h"

namespace persia::agent {

class MachineMetrics {
 public:
  struct Options {
    Identity identity;
    MachineReader::Read read;
    std::function<MachineReader::TimePoint()> now = std::chrono::steady_clock::now;
  };

  explicit MachineMetrics(Options options) : options_(std::move(options)) {}

  // Whether the machine is read, and how often; the interval is taken as at least 1 s and at most 15 s.
  void Use(bool enabled, std::chrono::milliseconds interval);
  // The newest values, without waiting. Values that are older than three intervals and 15 s are left out. `processes`: each
  // identity and ordinal once.
  std::shared_ptr<const Snapshot> Collect(std::span<const Process> processes);

 private:
  void AddWorker(const Process& process, const WorkerDetail& details);
  void ReportAbsent(const MachineResult& result);

  const Options options_;
  std::chrono::milliseconds interval_{0};
  std::unique_ptr<MachineReader> reader_;  // null: disabled
  Rows rows_;
  std::vector<std::string> absent_;  // reported
};

}  // namespace persia::agent

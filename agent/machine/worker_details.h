// Values of the workers' processes that cost too much for each collection: proportional memory, swap, context switches, and the
// limit on descriptors.
//
// Proportional memory (/proc/<pid>/smaps_rollup) takes 12 us for each MiB of small pages on the machine of tests/bench, a
// second for 100 GiB. It is read once a minute, and altogether for at most 1 % of the time of one processor: the values of
// large processes are older. Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kernel/proc_reader.h"
#include "model/process_id.h"

namespace persia::agent {

struct WorkerDetail {
  std::optional<uint64_t> proportional_bytes;
  std::optional<uint64_t> swapped_bytes;
  std::optional<uint64_t> voluntary_switches;
  std::optional<uint64_t> involuntary_switches;
  std::optional<uint64_t> max_fds;
};

class WorkerDetails {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Values = std::map<ProcessId, WorkerDetail>;

  static constexpr std::chrono::seconds kMemoryInterval{60};
  static constexpr double kMemoryShare = 0.01;

  // `clock` measures what a reading costs.
  explicit WorkerDetails(ProcReader& proc, std::function<TimePoint()> clock = std::chrono::steady_clock::now)
      : proc_(proc), clock_(std::move(clock)) {}

  // Reads the values of these processes; forgets all others. Processes that /proc does not have are left out.
  void Read(std::span<const ProcessId> processes, TimePoint now);
  [[nodiscard]] const Values& values() const { return values_; }

 private:
  void ReadMemory(std::span<const ProcessId> processes, TimePoint now);

  ProcReader& proc_;
  const std::function<TimePoint()> clock_;
  Values values_;
  std::map<ProcessId, TimePoint> memory_read_;
  std::optional<TimePoint> last_read_;
  std::chrono::duration<double> memory_budget_{0.1};  // below 0: spent in advance
};

}  // namespace persia::agent

// The thread `machine`, which reads the sources of this folder at an interval.
//
//   MachineReader reader(ReadOf({.state_directory = "/var/lib/persia"}), 10s);
//   reader.Watch(processes);
//   if (const auto result = reader.Newest()) ...
//
// No call waits for a reading, because a file of the kernel may block: that of an adapter whose firmware hangs, or of a process
// that holds the lock of its memory map. The destructor waits for at most a second; then the thread goes on with its own
// memory, and ends after the reading. Thread safety: the collector thread alone.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "kernel/background_call.h"
#include "machine/machine_sources.h"

namespace persia::agent {

class MachineReader {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // One reading. It is called in the thread alone, and destroyed with it.
  using Read = std::function<MachineResult(std::span<const ProcessId> processes, TimePoint now)>;

  // The first reading is immediate.
  MachineReader(Read read, std::chrono::milliseconds interval);
  ~MachineReader();
  MachineReader(const MachineReader&) = delete;
  MachineReader& operator=(const MachineReader&) = delete;

  // The workers that run. If one is new, the next reading is immediate.
  void Watch(std::vector<ProcessId> processes);
  void SetInterval(std::chrono::milliseconds interval);
  // Null before the first one.
  [[nodiscard]] std::shared_ptr<const MachineResult> Newest() const;

 private:
  struct Shared {
    Mutex mutex;
    CondVar changed;
    bool stopping PERSIA_GUARDED_BY(mutex) = false;
    bool wanted PERSIA_GUARDED_BY(mutex) = false;
    std::chrono::milliseconds interval PERSIA_GUARDED_BY(mutex){0};
    std::vector<ProcessId> processes PERSIA_GUARDED_BY(mutex);
    std::shared_ptr<const MachineResult> newest PERSIA_GUARDED_BY(mutex);
  };

  static std::optional<std::vector<ProcessId>> Await(Shared& shared, TimePoint last);
  static void Run(Shared& shared, const Read& read);

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  BackgroundCall thread_{"machine"};
};

// Reads all sources.
MachineReader::Read ReadOf(MachineSources::Options options);

}  // namespace persia::agent

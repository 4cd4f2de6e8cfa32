// Which process of the job uses a device: its rank, or none. Never a wrong one.
//
//   GpuRanks ranks;
//   std::vector<std::optional<size_t>> of = ranks.Assign(sample, processes);    // by device: an index into `processes`
//
// A device belongs to a rank if
//
//   1. the driver lists a process of this rank, and of no other. The driver's pids are those of the initial pid namespace. In
//      another namespace the same number is another process, so an agent there ignores the list. A pid counts if a living
//      worker in the agent's namespace has it, with the start time in its segment, and if it started before the sample.
//   2. otherwise, the masks of the workers (gpu_mask.h) allow the device to one rank alone. If the mask of any living worker is
//      not certain, or contradicts the driver's list, no mask counts.
//
// A background thread reads the environment of each worker once. To read it, the kernel takes the lock of the worker's memory
// map, which a process that hangs in the kernel may hold. Assign waits for the thread for at most `patience`. No mask counts
// until all environments are read.
//
// A GPU that is divided into MIG devices has no rank; its MIG devices have. A lost device keeps its rank while the process
// lives.
//
// Thread safety: the collector thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "gpu/gpu_sample.h"
#include "kernel/background_call.h"
#include "kernel/proc_reader.h"
#include "model/process.h"

namespace persia::agent {

class GpuRanks {
 public:
  // The inode of the initial pid namespace, PROC_PID_INIT_INO of the kernel.
  static constexpr uint64_t kInitialPidNamespace = 0xEFFF'FFFC;

  // `initial`: the number of the initial pid namespace; for tests, as are the others.
  explicit GpuRanks(std::filesystem::path proc = "/proc", uint64_t initial = kInitialPidNamespace,
                    std::chrono::milliseconds patience = std::chrono::milliseconds(100));

  std::vector<std::optional<size_t>> Assign(const GpuSample& sample, std::span<const Process> processes);

 private:
  // A living worker that /proc shows.
  struct Worker {
    size_t index;
    bool started_before = false;  // the sample
    bool same_devices = false;
    const std::string* environment = nullptr;  // null: not readable, or not read yet
  };
  struct Seen {
    std::optional<std::string> environment;
    bool same_devices = false;
  };
  using SeenProcesses = std::map<ProcessId, Seen>;
  struct News {
    Mutex mutex;
    SeenProcesses seen PERSIA_GUARDED_BY(mutex);
  };
  using Users = std::vector<std::vector<size_t>>;  // by device: indexes into the processes, one a rank

  std::vector<Worker> FindWorkers(const GpuSample& sample, std::span<const Process> processes, bool& all);
  Users ByPids(const GpuSample& sample, std::span<const Process> processes, std::span<const Worker> workers) const;
  // Nothing: the masks are not certain.
  std::optional<Users> ByMasks(const GpuSample& sample, std::span<const Process> processes, std::span<const Worker> workers,
                               const Users& by_pids) const;
  void LookAt(std::vector<ProcessId> processes);

  const std::filesystem::path proc_path_;
  ProcReader proc_;
  const std::optional<uint64_t> own_namespace_;
  const bool knows_pids_;  // the driver's pids are those of the agent's namespace
  const std::chrono::milliseconds patience_;
  BackgroundCall look_{"gpu ranks"};
  const std::shared_ptr<News> news_ = std::make_shared<News>();  // of that thread
  SeenProcesses seen_;
  std::map<std::string, ProcessId> last_;  // by device, of the last Assign
};

}  // namespace persia::agent

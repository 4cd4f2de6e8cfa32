// The GPUs of the host, by rank: their metrics, and their errors as events of type "persia.agent" and lines in the log.
//
//   GpuWatch gpus({.agent = agent_identity, .run_id = run_id});
//   gpus.Use(GpuMode::kAuto, 5s);                    // at the start, and after a reload
//   gpus.Look(processes);                            // at each collection
//   if (auto snapshot = gpus.snapshot()) ...         // null: the host has no GPU and had none
//   std::vector<JobEvent> events = gpus.TakeEvents();
//
// Without the driver's library there is no thread, no process and no metric. Use and Look wait for no process
// (gpu_ranks.h). Thread safety: the collector thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu_metrics.h"
#include "gpu/gpu_ranks.h"
#include "gpu/gpu_reader.h"
#include "gpu/gpu_xids.h"
#include "gpu/nvml_library.h"
#include "model/events.h"
#include "model/process.h"

namespace persia::agent {

class GpuWatch {
 public:
  struct Options {
    Identity agent;
    uint64_t initial_pid_namespace = GpuRanks::kInitialPidNamespace;  // for tests
    GpuXidCounts::Options xids = {};
    std::function<std::string()> find_library = [] { return FindNvml(); };
    // For tests: other readers than the agent's own program.
    std::function<GpuReader::Options(const std::string& library, std::chrono::milliseconds interval)> reader = {};
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };

  explicit GpuWatch(Options options);

  // `on`: whether GPUs are read, if there are any. After a change, a reader starts once the process of the one before has
  // ended: a Look starts it.
  void Use(bool on, std::chrono::milliseconds interval);
  void Look(std::span<const Process> processes);
  [[nodiscard]] std::shared_ptr<const Snapshot> snapshot() const { return snapshot_; }
  [[nodiscard]] std::vector<JobEvent> TakeEvents() { return std::exchange(events_, {}); }
  // Waits until the counts of errors are on disk.
  void Flush(std::chrono::milliseconds patience) { xids_.Flush(patience); }

 private:
  struct Owner {
    Identity identity;
    uint32_t pid = 0;  // of the process; 0: no rank

    friend bool operator==(const Owner&, const Owner&) = default;
  };
  using Owners = std::map<std::string, Owner>;  // by device

  void StartReader();
  [[nodiscard]] Owner OwnerAt(const GpuXid& xid, const Owners& now) const;
  void TakeXids(const std::vector<GpuXid>& xids, const Owners& now);
  void ReportLost(const GpuSample& sample, const Owners& owners);
  JobEvent& Report(const char* name, const std::string& gpu, const Owner& owner, const std::string& text);
  // "GPU 3 (GPU-4711, trainer rep_3)"
  [[nodiscard]] std::string NameOf(const std::string& gpu, const Owner& owner) const;

  const Options options_;
  const Identity no_rank_;
  std::unique_ptr<GpuRanks> ranks_;  // null before the first sample: it has buffers
  GpuXidCounts xids_;
  GpuMetrics metrics_;
  std::string library_;                  // empty: none is wanted, or there is no library
  std::unique_ptr<GpuReader> stopping_;  // it was asked to stop; null: it has ended
  std::unique_ptr<GpuReader> reader_;    // null: there is no library, or stopping_ has not ended
  std::chrono::milliseconds interval_{0};
  uint64_t former_restarts_ = 0;  // of readers before this one
  Owners last_;                   // of the last Look
  // The last rank of each device, and when it was last seen, in Unix milliseconds.
  std::map<std::string, std::pair<Owner, uint64_t>> former_;
  std::map<std::string, std::string> uuids_;  // by device
  std::set<std::string> lost_;
  std::vector<JobEvent> events_;
  std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace persia::agent

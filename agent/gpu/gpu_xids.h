// The errors of GPUs that the driver reports with a number, the XID: what they mean, and their counts over a run.
//
//   GpuXidCounts counts({.file = file, .run_id = run_id});
//   counts.Add({rank, "3", 79});
//   for (const auto& [key, count] : counts.Shown()) ...
//
// The counts outlive the agent. A count is shown once it is on disk, so that no later agent shows a lower one. If the disk
// fails, the count is shown nevertheless. If the file of the agent before cannot be read, no count is shown and the file is not
// written until it can be. Thread safety: the collector thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "files/journal_writer.h"
#include "model/snapshot.h"

namespace persia::agent {

// "fatal": the GPU works no more, or not reliably: drain the host, reset or replace the GPU. "memory": its memory has errors
// that it could contain or repair: watch it. "application": usually an error of the program. "other".
std::string_view XidClass(uint64_t xid);
// What the number means; empty: see NVIDIA's list.
std::string_view XidText(uint64_t xid);

struct GpuXidKey {
  Identity identity;  // of the rank, or of the devices without one
  std::string gpu;
  uint64_t xid = 0;

  friend auto operator<=>(const GpuXidKey&, const GpuXidKey&) = default;
};

class GpuXidCounts {
 public:
  using Counts = std::map<GpuXidKey, uint64_t>;
  struct Options {
    std::shared_ptr<JournalFile> file = nullptr;  // null: the counts are only in memory
    std::string run_id = {};                      // counts of other runs are not read
    bool threaded = true;                         // of JournalWriter
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };
  static constexpr std::chrono::seconds kReadRetry{30};
  // Kinds of errors. A driver that reports more is broken, and further kinds are not counted.
  static constexpr size_t kMaxKeys = 1000;

  // Reads the counts of this run.
  explicit GpuXidCounts(Options options);

  void Add(const GpuXidKey& key);
  // Those that may be shown.
  const Counts& Shown();
  void Flush(std::chrono::milliseconds patience);

 private:
  void Read();
  void Save();

  const Options options_;
  StateLog log_{"gpu.state"};
  bool is_read_ = false;  // the file; or there is none
  std::chrono::steady_clock::time_point tried_;
  std::optional<JournalWriter> writer_;  // since the first error: it has a thread
  Counts counts_;
  Counts shown_;
  bool is_shown_ = true;  // shown_ is counts_
  uint64_t write_ = 0;    // of counts_
};

}  // namespace persia::agent

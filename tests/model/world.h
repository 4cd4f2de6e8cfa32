// The parts of a model that outlive its agents: processes with their segments, the directory, and the disk of the state.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ledger/memory_journal_file.h"
#include "segment/segment_builder.h"
#include "workers/segment_directory.h"

namespace persia::agent::model {

inline constexpr uint64_t kSmallSegment = 1 << 20;
inline constexpr uint64_t kLargeSegment = 1 << 22;

// Identities: role worker, replica 0; replica 1; replica 1 with a label of the process.
inline constexpr uint32_t kIdentities = 3;

// The counts of a process: my_app_batches, my_app_rows{feat="a"}, my_app_rows{feat="b"} in halves, observations of
// my_app_sizes, each 0.5. It registers the series of `b` when it first counts there, in a
// chunk of its own.
inline constexpr size_t kCounts = 4;
inline constexpr size_t kLateCount = 2;

// The policies of its gauges my_app_0 to my_app_4, which it sets all together.
inline constexpr GaugePolicy kPolicies[] = {GaugePolicy::kLast, GaugePolicy::kSum, GaugePolicy::kMin, GaugePolicy::kMax,
                                            GaugePolicy::kAvg};

// It removes the series my_app_rows{feat="a"}, and has it again.
inline constexpr size_t kRemovedCount = 1;

struct Values {
  std::array<uint64_t, kCounts> counts = {};
  std::optional<double> gauge = {};
  bool removed = false;
};

// A new segment of some kind, to copy. The offsets are of cells in it.
struct SegmentKind {
  std::string image;
  std::array<uint64_t, kCounts> counts = {};
  std::array<uint64_t, std::size(kPolicies)> gauges = {};
  uint64_t clock = 0;
  uint64_t removed = 0;  // of the mark of a series
  uint64_t descriptors_with_late = 0;
  uint64_t chunks_with_late = 0;
};

// Thrown by an operation on files: the agent was killed there.
struct Killed {};

struct Process {
  std::string name;                    // of its file
  std::shared_ptr<std::string> bytes;  // of its segment
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  std::vector<Values> log = {{}};  // its values after each change of them
  uint32_t identity = 0;
  bool large = false;
  bool in_directory = true;
  bool removed = false;  // by an agent
  bool broken = false;   // its file cannot be opened
  bool died = false;     // it has ended without a mark of a normal exit
  std::chrono::milliseconds ended{0};
  FileId file = {};
  const SegmentKind* kind = nullptr;

  void Count(size_t what, uint64_t by);
  void Set(double value);
  // Removes the series, or has it again.
  void Remove();
  // Enters a phase, or leaves it.
  void Toggle(std::chrono::milliseconds now);
  // The seconds that it was in the phase, with those of now if `whole`.
  [[nodiscard]] double InPhase(bool whole, std::chrono::milliseconds now) const;
  // By a normal exit, or by a signal.
  void End(bool normally, std::chrono::milliseconds now);
};

struct World {
  std::deque<Process> processes;
  testing::MemoryDisk disk;
  bool disk_full = false;
  bool state_unreadable = false;
  bool no_descriptors = false;          // the directory cannot be listed
  bool no_descriptors_in_open = false;  // no file can be opened
  bool read_only = false;               // no segment can be removed
  // Called before each operation on files, with its number within a collection. May throw Killed.
  std::function<void(uint32_t operation)> before_operation = [](uint32_t) {};
  uint32_t operations = 0;
  // 0: an append of the state during which the agent is killed leaves nothing. Else a power cut leaves some of its pages, which
  // this number selects; the others are zero, or cut off.
  uint32_t tear = 0;

  Process& Start(uint32_t identity, bool large, const std::string& run_id);
  // Null: no file has this name.
  Process* Find(const std::string& name);
  void Operation() { before_operation(operations++); }
  // Cuts the state off, or flips a bit of it.
  void DamageState(uint32_t where, bool cut);

 private:
  std::map<std::tuple<uint32_t, bool, std::string>, SegmentKind> kinds_;
};

// The directory as an agent sees it.
class ModelDirectory : public SegmentDirectory {
 public:
  explicit ModelDirectory(World& world) : world_(world) {}

  Listing List() override;
  std::unique_ptr<SegmentReader> Open(const std::string& name, const SegmentAccess& access, SegmentProblem& problem) override;
  Removal Remove(const std::string& name, const FileId& file) override;
  bool SyncRemovals() override;
  [[nodiscard]] const std::string& path() const override { return path_; }

 private:
  World& world_;
  const std::string path_ = "/dev/shm/model";
};

// The state's file as an agent sees it.
std::shared_ptr<JournalFile> StateOf(World& world);

}  // namespace persia::agent::model

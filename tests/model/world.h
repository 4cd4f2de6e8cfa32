// What outlives the agents of a model: processes with their segments, the directory, and the disk of the state.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ledger/memory_journal_file.h"
#include "segment/segment_builder.h"
#include "workers/segment_directory.h"

namespace persia::agent::model {

inline constexpr uint64_t kSmallSegment = 1 << 20;
inline constexpr uint64_t kLargeSegment = 1 << 22;

// Thrown by an operation on files: the agent was killed there.
struct Killed {};

struct Process {
  std::string name;                    // of its file
  std::shared_ptr<std::string> bytes;  // of its segment
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  uint64_t counted = 0;
  bool in_directory = true;
  bool removed = false;  // by an agent
  bool broken = false;   // its file cannot be opened
  FileId file = {};

  void Count(uint64_t by);
};

struct World {
  std::deque<Process> processes;
  testing::MemoryDisk disk;
  bool disk_full = false;
  bool state_unreadable = false;
  bool no_descriptors = false;          // the directory cannot be listed
  bool no_descriptors_in_open = false;  // no file can be opened
  // Called before each operation on files, with its number within a collection. May throw Killed.
  std::function<void(uint32_t operation)> before_operation = [](uint32_t) {};
  uint32_t operations = 0;

  Process& Start(bool large, const std::string& run_id);
  // Null: no file has this name.
  Process* Find(const std::string& name);
  void Operation() { before_operation(operations++); }

 private:
  std::map<std::pair<bool, std::string>, std::string> kinds_;  // new segments, to copy
};

// The directory as an agent sees it.
class ModelDirectory : public SegmentDirectory {
 public:
  explicit ModelDirectory(World& world) : world_(world) {}

  Listing List() override;
  std::unique_ptr<SegmentReader> Open(const std::string& name, const SegmentAccess& access, SegmentProblem& problem) override;
  Removal Remove(const std::string& name, const FileId& file) override;
  [[nodiscard]] const std::string& path() const override { return path_; }

 private:
  World& world_;
  const std::string path_ = "/dev/shm/model";
};

// The state's file as an agent sees it.
std::shared_ptr<JournalFile> StateOf(World& world);

}  // namespace persia::agent::model

// Reads one process's segment: its identity, families, series, values and events.
//
//   SegmentProblem problem;
//   auto reader = SegmentReader::Open(directory_fd, "17-0123456789abcdef.seg", access, problem);
//   if (reader == nullptr || !reader->Read(tick, now, problem)) ...
//
// A segment is hostile input. Read copies the published data into private memory and uses only that copy, so that nothing
// changes between a check and a use; each offset, size and count is checked. Values are added over the process's threads into
// flat arrays, and a series has indexes into them. After a failed Read, the results of the last successful one stay.
// Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/foreign_memory.h"
#include "model/events.h"
#include "model/process_id.h"
#include "segment/event_ring.h"
#include "segment/phase_clocks.h"
#include "segment/segment_file.h"
#include "segment/segment_records.h"
#include "segment_format.h"

namespace persia::agent {

// The series from `first` on were registered after the read at `unix_ns`: their counts began at 0 then, or later.
struct LaterSeries {
  size_t first = 0;
  uint64_t unix_ns = 0;
};

class SegmentReader {
 public:
  // Null: see `problem`.
  static std::unique_ptr<SegmentReader> Open(int directory_fd, const char* name, const SegmentAccess& access,
                                             SegmentProblem& problem);
  static std::unique_ptr<SegmentReader> FromDescriptor(int fd, const SegmentAccess& access, SegmentProblem& problem);

  static std::unique_ptr<SegmentReader> FromFile(std::unique_ptr<SegmentFile> file);

  // Reads new families and series, and all values. `tick` is the caller's number of this read, from 1 on, and `now` its time.
  // A clock that runs is counted until `clocks_until`, as by PhaseClocks::Read. REQUIRES: the writer was alive then.
  // The segment of another user, or of a process that had ended when it was opened, is refused with the reason "memory" if
  // there is none for it (base/foreign_memory.h).
  bool Read(uint64_t tick, std::chrono::system_clock::time_point now, SegmentProblem& problem, uint64_t clocks_until = 0);

  // Whether the writing process is alive. False after Release.
  [[nodiscard]] bool WriterLives() const { return file_ != nullptr && file_->WriterLives(); }
  // Closes the file; the values stay. For a segment that was read after its writer ended.
  void Release() { file_.reset(); }
  [[nodiscard]] bool released() const { return file_ == nullptr; }

  // Appends the events that the process recorded since the last call, without its identity. `writer_lives`: as asked before the
  // last Read. REQUIRES: not released.
  void ReadEvents(bool writer_lives, std::vector<JobEvent>& out);
  [[nodiscard]] EventRing& events() { return events_; }
  [[nodiscard]] const EventRing& events() const { return events_; }

  // As of the last successful Read.
  [[nodiscard]] const SegmentIdentity& identity() const { return identity_; }
  [[nodiscard]] const SegmentWriterInfo& writer() const { return writer_; }
  [[nodiscard]] std::span<const SegmentFamily> families() const { return {families_.data(), family_count_}; }
  [[nodiscard]] std::span<const SegmentSeries> series() const { return {series_.data(), series_count_}; }
  [[nodiscard]] const SegmentValues& values() const { return values_; }
  // By SegmentSeries::common: the tick of the Read that last found the value changed.
  [[nodiscard]] std::span<const uint64_t> changed_at() const { return changed_at_; }
  // Series that were not there at the first Read, in their order.
  [[nodiscard]] std::span<const LaterSeries> later_series() const { return later_series_; }
  // Records of unknown types, kinds and policies, records that exceed a limit, and series of such families.
  [[nodiscard]] uint64_t records_skipped() const { return skipped_; }
  // Sentences on the first records that exceed a limit.
  [[nodiscard]] std::span<const std::string> over_limit() const { return over_limit_; }
  // Rises when identity, families or series change, and when a series is removed or exposed again.
  [[nodiscard]] uint64_t generation() const { return generation_; }

  // The records that families() and series() point into. Valid until the next Read.
  [[nodiscard]] std::span<const std::byte> records() const { return std::as_bytes(std::span(records_)); }
  // The time and the tick of the Read that last found a value changed; no time if none has. The first Read finds values, but
  // no change.
  [[nodiscard]] std::chrono::system_clock::time_point last_change() const { return last_change_; }
  [[nodiscard]] uint64_t last_change_tick() const { return last_change_tick_; }
  // How many Reads after the first have found a value changed.
  [[nodiscard]] uint64_t changes() const { return changes_; }
  [[nodiscard]] const PhaseClocks& clocks() const { return clocks_; }
  // None: it does not number its steps, or not by whole numbers from 0 on.
  [[nodiscard]] std::optional<double> step() const { return StepIn(step_); }
  // The first one that it trained.
  [[nodiscard]] std::optional<double> first_step() const { return StepIn(first_step_); }
  // Whether it was forked by a process that exports with the same role and replica.
  [[nodiscard]] bool forked() const { return forked_; }
  // A persia::metrics::segment::ExitMark. Final in a Read that began after the writer had ended.
  [[nodiscard]] uint64_t exit_mark() const { return exit_mark_; }
  // How full the segment is, from 0 to 1: its descriptors or its chunks, whichever is fuller.
  [[nodiscard]] double UsedRatio() const;

  // Only the fixed part of the header, which does not change.
  [[nodiscard]] const persia::metrics::segment::Header& header() const { return *header_; }
  // The writing process.
  [[nodiscard]] ProcessId process() const { return {header().pid, header().start_ticks, header().pid_namespace}; }
  // The segment's random id, as 32 hexadecimal digits.
  [[nodiscard]] const std::string& id() const { return id_; }

 private:
  // The index in `reals` or `commons` that a cell's value goes to.
  struct CellIndex {
    uint32_t cell;
    uint32_t index;
  };
  // A chunk's worth of slots, used by at least one series.
  struct Range {
    std::vector<CellIndex> reals;
    std::vector<CellIndex> commons;
    std::vector<bool> used;  // by cell: belongs to a series
  };
  struct Chunk {
    uint32_t lane;
    uint32_t range;  // its number in the file
  };

  explicit SegmentReader(std::unique_ptr<SegmentFile> file);

  bool ReadFile(uint64_t tick, std::chrono::system_clock::time_point now, SegmentProblem& problem, uint64_t clocks_until);
  bool ReadStructure(SegmentProblem& problem);
  bool ReadRemovals(uint64_t removals, SegmentProblem& problem);
  bool ReadDescriptors(uint64_t used, RecordBatch& batch, SegmentProblem& problem);
  bool ReadDirectory(uint64_t used, SegmentProblem& problem);
  bool PlaceSeries(const SegmentSeriesRecord& record, SegmentProblem& problem);
  bool ReadValues(SegmentProblem& problem);
  [[nodiscard]] std::optional<double> StepIn(std::optional<uint32_t> common) const;
  void AddReals(const uint64_t* cells, const Range& range);
  void RecordChanges(uint64_t tick, std::chrono::system_clock::time_point now);
  void RecordLaterSeries(std::chrono::system_clock::time_point now);

  const HeaderCopy header_;
  const std::string id_;
  const bool is_foreign_;  // not of a process of this user that was alive when it was opened
  std::unique_ptr<SegmentFile> file_;
  ForeignShare memory_;

  // The structure parsed so far; the part parsed after the last successful Read is not visible to the caller. An error in it is
  // permanent, since the writer never rewrites it.
  std::optional<SegmentProblem> permanent_problem_;
  std::vector<uint64_t> records_;  // the descriptors' private copy
  std::vector<SegmentFamily> families_;
  std::vector<SegmentSeries> series_;
  std::vector<Chunk> chunks_;
  std::unordered_set<uint64_t> chunk_keys_;               // lane and range, each pair once
  std::unordered_map<uint32_t, uint32_t> common_chunks_;  // of the common lane, by range: the number in the file
  std::unordered_map<uint32_t, uint32_t> range_indexes_;  // by range: index into ranges_
  std::vector<Range> ranges_;
  PhaseClocks clocks_;
  // In SegmentValues::commons.
  std::optional<uint32_t> step_;
  std::optional<uint32_t> first_step_;
  bool forked_ = false;
  uint32_t real_count_ = 0;
  uint32_t common_count_ = 0;
  SegmentIdentity parsed_identity_;
  SegmentWriterInfo parsed_writer_;
  uint64_t parsed_skipped_ = 0;
  uint64_t parsed_removals_ = 0;
  std::vector<std::string> over_limit_;

  SegmentIdentity identity_;
  SegmentWriterInfo writer_;
  size_t family_count_ = 0;
  size_t series_count_ = 0;
  uint64_t skipped_ = 0;
  uint64_t removals_ = 0;
  uint64_t generation_ = 0;
  SegmentValues values_;
  SegmentValues next_;  // filled by a Read, then swapped with values_
  std::vector<uint64_t> changed_at_;
  std::chrono::system_clock::time_point last_change_;
  uint64_t last_change_tick_ = 0;
  uint64_t changes_ = 0;
  uint64_t exit_mark_ = 0;
  std::vector<LaterSeries> later_series_;
  std::optional<std::chrono::system_clock::time_point> read_at_;    // of the last successful Read
  std::optional<std::chrono::system_clock::time_point> former_at_;  // of the last one with an earlier time
  EventRing events_;
};

}  // namespace persia::agent

// One process's segment: what it holds, and the values of it.
//
//   SegmentProblem problem;
//   auto reader = SegmentReader::Open(directory_fd, "17-0123456789abcdef.seg", access, problem);
//   if (reader == nullptr || !reader->Read(tick, now, problem)) ...
//
// A Read copies what is published into private memory and looks at that copy alone, so that nothing changes between a check and
// a use: a segment is hostile input. Each offset, size and count is checked. Values are added up over a process's threads into
// flat arrays; a series names its places in them. A Read that fails leaves everything as the last good one made it.
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

#include "model/job_event.h"
#include "segment_format.h"
#include "source/event_ring.h"
#include "source/merge_input.h"
#include "source/segment_file.h"
#include "source/segment_records.h"
#include "source/segment_values.h"

namespace persia::agent {

class SegmentReader {
 public:
  // Null: see `problem`.
  static std::unique_ptr<SegmentReader> Open(int directory_fd, const char* name, const SegmentAccess& access,
                                             SegmentProblem& problem);
  static std::unique_ptr<SegmentReader> FromDescriptor(int fd, const SegmentAccess& access, SegmentProblem& problem);

  // Reads what is new, and all values. `tick` is the caller's count of reads, from 1 on, and `now` the time of this one.
  bool Read(uint64_t tick, std::chrono::system_clock::time_point now, SegmentProblem& problem);

  // Whether the process that writes the segment has not ended. False after Release.
  [[nodiscard]] bool WriterLives() const { return file_ != nullptr && file_->WriterLives(); }
  // Lets go of the file; the values stay. For a segment whose writer has ended and that was read since.
  void Release() { file_.reset(); }
  [[nodiscard]] bool released() const { return file_ == nullptr; }

  // Appends what the process recorded since the last call, with whose it is but for the identity. REQUIRES: not released.
  void ReadEvents(std::vector<JobEvent>& out);
  [[nodiscard]] EventRing& events() { return events_; }
  [[nodiscard]] const EventRing& events() const { return events_; }

  // As of the last good Read.
  [[nodiscard]] const SegmentIdentity& identity() const { return identity_; }
  [[nodiscard]] const SegmentWriterInfo& writer() const { return writer_; }
  [[nodiscard]] std::span<const SegmentFamily> families() const { return {families_.data(), shown_families_}; }
  [[nodiscard]] std::span<const SegmentSeries> series() const { return {series_.data(), shown_series_}; }
  [[nodiscard]] const SegmentValues& values() const { return values_; }
  // By SegmentSeries::common: the tick of the Read that found the value changed.
  [[nodiscard]] std::span<const uint64_t> changed_at() const { return changed_at_; }
  // Records of unknown types, kinds and policies, and series of those.
  [[nodiscard]] uint64_t records_skipped() const { return skipped_; }
  // Rises when identity, families or series change.
  [[nodiscard]] uint64_t generation() const { return generation_; }

  // For a merge; `ended` and `ordinal` are the caller's to set. Good until the next Read.
  [[nodiscard]] MergeInput Input() const;
  // When a value was last found changed: the time that was given to that Read.
  [[nodiscard]] std::chrono::system_clock::time_point last_change() const { return last_change_; }

  // The header's fixed part, which does not change.
  [[nodiscard]] const persia::metrics::segment::Header& header() const { return *header_; }
  // The segment's random id, as 32 hexadecimal digits.
  [[nodiscard]] const std::string& id() const { return id_; }

 private:
  // A cell of a range, and where its value goes.
  struct Place {
    uint32_t cell;
    uint32_t index;
  };
  // The slots [number * kCellsPerChunk, ...) that at least one series lies in.
  struct Range {
    std::vector<Place> reals;
    std::vector<Place> commons;
    std::vector<bool> taken;  // cells of series
  };
  struct Chunk {
    uint32_t lane;
    uint32_t range;  // the file's number
  };

  explicit SegmentReader(std::unique_ptr<SegmentFile> file);

  bool ReadStructure(SegmentProblem& problem);
  bool ReadDescriptors(uint64_t used, RecordBatch& batch, SegmentProblem& problem);
  bool ReadDirectory(uint64_t used, SegmentProblem& problem);
  bool PlaceSeries(const SegmentSeriesRecord& record, SegmentProblem& problem);
  bool ReadValues(SegmentProblem& problem);
  void AddReals(const uint64_t* cells, const Range& range);
  void NoteChanges(uint64_t tick, std::chrono::system_clock::time_point now);
  [[nodiscard]] std::span<const std::byte> Records() const { return std::as_bytes(std::span(records_)); }

  const HeaderCopy header_;
  const std::string id_;
  std::unique_ptr<SegmentFile> file_;

  // The structure as far as it was parsed. A contradiction in it is for ever, since nothing of it is rewritten; what was parsed
  // after the last good Read is not shown.
  std::optional<SegmentProblem> broken_;
  std::vector<uint64_t> records_;  // the descriptors' private copy
  std::vector<SegmentFamily> families_;
  std::vector<SegmentSeries> series_;
  std::vector<Chunk> chunks_;
  std::unordered_set<uint64_t> chunk_keys_;               // lane and range, each pair once
  std::unordered_set<uint32_t> common_ranges_;            // that have a chunk of the common lane
  std::unordered_map<uint32_t, uint32_t> range_indexes_;  // by range: index into ranges_
  std::vector<Range> ranges_;
  uint32_t real_count_ = 0;
  uint32_t common_count_ = 0;
  SegmentIdentity parsed_identity_;
  SegmentWriterInfo parsed_writer_;
  uint64_t parsed_skipped_ = 0;

  SegmentIdentity identity_;
  SegmentWriterInfo writer_;
  size_t shown_families_ = 0;
  size_t shown_series_ = 0;
  uint64_t skipped_ = 0;
  uint64_t generation_ = 0;
  SegmentValues values_;
  SegmentValues next_;  // being filled; then the former values
  std::vector<uint64_t> changed_at_;
  std::chrono::system_clock::time_point last_change_;
  EventRing events_;
};

}  // namespace persia::agent

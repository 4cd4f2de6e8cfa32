// Reads the event records of a segment, each once. The ring's grammar is in lib/segment_format.md.
//
// If a record is still being written, reading stops there and continues at the next read. If it is incomplete then, it counts
// as lost: its writer may have been killed. After the end of the process, it counts as lost immediately. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/events.h"
#include "segment/segment_file.h"

namespace persia::agent {

class EventRing {
 public:
  // Skips the records before `ticket`: an earlier agent has read them.
  void StartAt(uint64_t ticket) { next_ = ticket; }
  // Appends the new records, without identity and pid. `writer_lives`: as asked before this call.
  void Read(const SegmentFile& file, bool writer_lives, std::vector<JobEvent>& out);
  // The ticket of the next record.
  [[nodiscard]] uint64_t next() const { return next_; }
  // Total of records that were overwritten before they were read, or are malformed.
  [[nodiscard]] uint64_t lost() const { return lost_; }

 private:
  uint64_t next_ = 0;
  std::optional<uint64_t> incomplete_;  // the ticket at which the last read stopped
  uint64_t lost_ = 0;
};

// Parses one record, given without its sequence. Nothing if it is malformed.
std::optional<JobEvent> ParseEvent(std::span<const uint64_t> words);

}  // namespace persia::agent

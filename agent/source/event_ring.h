// Reads the event records of a segment, each once. The ring's grammar is in lib/segment_format.md.
//
// A record that is being written when it is looked at is waited for until the next read, and given up then: its writer may have
// been killed in the middle of it. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/job_event.h"
#include "source/segment_file.h"

namespace persia::agent {

class EventRing {
 public:
  // The records before were read by somebody else.
  void StartAt(uint64_t ticket) { next_ = ticket; }
  // Appends the records that are new. What they have but identity and pid is filled in.
  void Read(const SegmentFile& file, std::vector<JobEvent>& out);
  // The ticket of the next record.
  [[nodiscard]] uint64_t next() const { return next_; }
  // Records that were overwritten before they were read, or that cannot be understood; a total.
  [[nodiscard]] uint64_t lost() const { return lost_; }

 private:
  uint64_t next_ = 0;
  std::optional<uint64_t> waited_for_;
  uint64_t lost_ = 0;
};

// One record's bytes, without the sequence. Nothing: they contradict the grammar.
std::optional<JobEvent> ParseEvent(std::span<const uint64_t> words);

}  // namespace persia::agent

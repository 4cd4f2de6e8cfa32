// Lays a segment out in its memory: header, descriptors, directory, ring, chunks.
//
// The grammar is in segment_format.h and ../segment_format.md. What a reader may see is published by one release store after
// it is complete; nothing published is ever moved or rewritten. Not thread-safe: the registry's mutex guards it, but for the
// event ring and the dropped counts, which any thread may write.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "identity.h"
#include "segment_format.h"
#include "segment_memory.h"

namespace persia::metrics {

// What a family record says.
struct FamilyRecord {
  segment::Kind kind;
  uint8_t gauge_policy;
  std::span<const double> bounds;
  std::string_view group;
  std::string_view name;
  std::string_view help;
  std::string_view unit;
};

class SegmentWriter {
 public:
  // Lays out an empty segment in private memory. `requested_bytes`: the size limit; 0 for the default of 16 MiB. False if there
  // is no address space for even that.
  bool Create(uint64_t requested_bytes);

  // Moves the segment to a file in the directory `directory_fd` of `path`, and names it there. On failure the segment stays
  // where it was, and `*error` tells why.
  bool Export(int directory_fd, const std::string& path, const Identity& identity, std::string* error);

  // Appends a record. False: no room.
  bool AddIdentity(const Identity& identity);
  bool AddWriter();
  bool AddFamily(const FamilyRecord& family);
  bool AddSeries(uint32_t family, uint32_t slot, const LabelSet& labels);

  // A zeroed chunk for the cells of `range` in `lane`; null: no room.
  std::atomic<uint64_t>* AddChunk(uint32_t lane, uint32_t range);

  // Makes the memory of the ring exist. Null: no room, or none foreseen.
  segment::EventSlot* EnsureRing();

  // Any thread.
  void CountDropped(segment::Drop why) { header_->dropped[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed); }
  // Any thread. REQUIRES: EnsureRing() gave one.
  segment::EventSlot& Slot(uint64_t ticket) { return ring_[ticket % ring_slots_]; }
  uint64_t NextTicket() { return header_->events_recorded.fetch_add(1, std::memory_order_relaxed); }

  void ForgetAfterFork();

  // Why the last request for room failed.
  [[nodiscard]] segment::Drop full_reason() const { return full_reason_; }
  [[nodiscard]] bool created() const { return header_ != nullptr; }
  [[nodiscard]] std::string path() const { return memory_.path(); }
  [[nodiscard]] const std::string& directory() const { return memory_.directory(); }

 private:
  // Makes the region [offset, offset + capacity) usable up to `*allocated` >= `wanted` bytes, in steps.
  bool EnsureAllocated(uint64_t offset, uint64_t capacity, uint64_t wanted, uint64_t step, uint64_t* allocated);
  bool AppendRecord(segment::RecordType type, const std::string& body);

  SegmentMemory memory_;
  segment::Header* header_ = nullptr;
  segment::EventSlot* ring_ = nullptr;
  uint64_t ring_slots_ = 0;
  uint64_t descriptors_allocated_ = 0;
  uint64_t directory_allocated_ = 0;
  uint64_t chunks_allocated_ = 0;
  segment::Drop full_reason_ = segment::Drop::kSegmentFull;
};

}  // namespace persia::metrics

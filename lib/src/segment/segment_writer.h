// Writes a segment: header, descriptors, directory, ring, chunks.
//
// The grammar is in segment_format.h and lib/segment_format.md. A release store publishes data once it is complete; published
// data is never moved, and of a record only the mark of a removed series is rewritten. The layout is known before there is a
// file, so that the registry assigns no slot for which the segment has no space: space is first reserved in the layout, and
// allocated in the file when it is written.
//
// Not thread-safe: the registry's mutex guards it, except for the dropped counts, which any thread may write.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "identity.h"
#include "segment_file.h"
#include "segment_format.h"

namespace persia::metrics {
inline namespace abi_1 {

// The contents of a family record.
struct FamilyRecord {
  segment::Kind kind;
  uint8_t gauge_policy;
  std::span<const double> bounds;
  std::string_view group;
  std::string_view name;
  std::string_view help;
  std::string_view unit;
  uint16_t max_buckets = 0;  // of a native histogram
};

// The contents of a series record.
struct SeriesRecord {
  uint32_t family;  // its number, in the order of the family records
  uint32_t slot;
  const LabelSet& labels;
  bool removed;
};

class SegmentWriter {
 public:
  // Decides the layout. `requested_bytes` is the size limit; 0 means 16 MiB.
  void Plan(uint64_t requested_bytes);

  // Whether the segment has space for `bytes` of family and series records and `chunks`, beside what is reserved.
  [[nodiscard]] bool Fits(uint64_t bytes, uint64_t chunks) const;
  void Reserve(uint64_t bytes, uint64_t chunks);
  static uint64_t BytesOf(const FamilyRecord& family);
  static uint64_t BytesOf(const SeriesRecord& series);

  // Makes the file, with the header and the identity, in the directory `path`, which is open as `directory_fd`. On failure
  // nothing changes, and `*error` says why. Throws std::bad_alloc; then call Discard. REQUIRES: Plan was called.
  bool Create(int directory_fd, const std::string& path, const Identity& identity, std::string* error);
  void Discard() { file_.Discard(); }

  // Write a record. False: the file cannot grow.
  bool AddIdentity(const Identity& identity);
  // Allocates the space of further records. False: the file cannot grow.
  bool AllocateRecords(uint64_t bytes);
  // REQUIRE: their space is reserved.
  bool AddFamily(const FamilyRecord& family);
  // `*at` becomes the place of the record, for SetRemoved.
  bool AddSeries(const SeriesRecord& series, uint64_t* at);
  // Marks a series as removed, or as exposed again. Needs no space.
  void SetRemoved(uint64_t at, bool removed);
  // A zeroed chunk for the cells of `range` in `lane`. Null: the file cannot grow. REQUIRES: its space is reserved.
  std::atomic<uint64_t>* AddChunk(uint32_t lane, uint32_t range);
  // The ring. Null: the file cannot grow.
  segment::EventSlot* AddRing();
  [[nodiscard]] std::atomic<uint64_t>* events_recorded() { return &header()->events_recorded; }
  [[nodiscard]] uint64_t ring_slots() const { return layout_.ring_slots; }

  // False: there is no file yet. Any thread.
  bool CountDropped(segment::Drop why, uint64_t count = 1);

  // Forgets the file. `chunks` stay reserved: those of the common lane, which the child makes again.
  void ForgetAfterFork(uint64_t chunks);

  // Why the file could not grow.
  [[nodiscard]] segment::Drop refusal() const { return refusal_; }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const std::string& directory() const { return file_.directory(); }

 private:
  // The constant part of the header.
  struct Layout {
    uint64_t max_bytes;
    uint64_t descriptors_capacity;
    uint64_t directory_offset;
    uint64_t directory_capacity;
    uint64_t ring_offset;
    uint64_t ring_slots;
    uint64_t chunks_offset;
    uint64_t chunks_capacity;
  };

  [[nodiscard]] segment::Header* header() const { return reinterpret_cast<segment::Header*>(file_.base()); }
  bool GrowAtFirst();
  void WriteHeader();
  bool AllocateChunks(uint64_t count);
  // Grows the file in steps, until the region at `offset` has `wanted` of its `capacity` bytes.
  bool EnsureAllocated(uint64_t offset, uint64_t capacity, uint64_t wanted, uint64_t step, uint64_t* allocated);
  // These call `write(out)`, which puts the record's fields. The first also reserves the space.
  template <class Write>
  bool AppendExtra(segment::RecordType type, const Write& write);
  template <class Write>
  bool AppendRecord(segment::RecordType type, const Write& write);

  Layout layout_{};
  uint64_t descriptors_reserved_ = 0;
  uint64_t chunks_reserved_ = 0;
  SegmentFile file_;
  std::atomic<segment::Header*> counts_ = nullptr;  // once the file has its name: it is not unmapped any more
  uint64_t descriptors_allocated_ = 0;
  uint64_t directory_allocated_ = 0;
  uint64_t chunks_allocated_ = 0;
  segment::Drop refusal_ = segment::Drop::kFilesystemFull;
};

// The reason why there is no space, and what to do about it.
std::string_view TextOf(segment::Drop why);

}  // namespace abi_1
}  // namespace persia::metrics

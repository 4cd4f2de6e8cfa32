// Writes segments: valid ones, hostile ones, and those of versions that this library does not write.
//
//   SegmentBuilder segment;
//   segment.Identity({.role = "trainer"});
//   segment.Counter("my_app", "batches", {}, 7);
//   segment.WriteTo(path);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/snapshot.h"
#include "segment/segment_records.h"
#include "segment_format.h"

namespace persia::agent::testing {

namespace segment = persia::metrics::segment;

// The optional fields of a family record.
struct FamilyText {
  std::string help = {};
  std::string unit = {};
};

// The offsets of a segment's regions.
struct SegmentPlaces {
  uint64_t max_bytes = 1 << 20;
  uint64_t descriptors_offset = 4096;
  uint64_t descriptors_capacity = 16384;
  uint64_t directory_offset = 20480;
  uint64_t directory_capacity = 64;
  uint64_t chunks_offset = 24576;
};

class SegmentBuilder {
 public:
  // A segment without records. Each has a unique id, and was born one second after the one before.
  explicit SegmentBuilder(const SegmentPlaces& places = {});

  // `forked`: by a process of the same identity.
  void Identity(const SegmentIdentity& identity, bool forked = false);
  void Writer(const SegmentWriterInfo& writer);
  // Returns the family's index.
  uint32_t Family(segment::Kind kind, std::string_view group, std::string_view name, std::span<const double> bounds = {},
                  GaugePolicy policy = GaugePolicy::kLast, const FamilyText& text = {});
  // Returns the series' slot. Its cells are 0, or unset for a gauge.
  uint32_t Series(uint32_t family, const Labels& labels = {});

  // Marks the series at `slot` as removed, or as exposed again.
  void SetRemoved(uint32_t slot, bool removed = true);
  // The offset of that mark in the file.
  [[nodiscard]] size_t RemovedAt(uint32_t slot) const { return removed_at_.at(slot); }

  // The next series begins a chunk.
  void BeginChunk() {
    next_slot_ = (next_slot_ + segment::kCellsPerChunk - 1) / segment::kCellsPerChunk * segment::kCellsPerChunk;
  }

  // Adds a family of one series with its values, and returns the slot.
  uint32_t Counter(std::string_view group, std::string_view name, const Labels& labels, uint64_t whole, double fraction = 0);
  uint32_t Gauge(std::string_view group, std::string_view name, const Labels& labels, double value,
                 GaugePolicy policy = GaugePolicy::kLast);
  uint32_t UnsetGauge(std::string_view group, std::string_view name, GaugePolicy policy = GaugePolicy::kLast);
  uint32_t Histogram(std::string_view group, std::string_view name, const Labels& labels, std::span<const double> bounds,
                     double sum, std::span<const uint64_t> buckets);
  // `buckets`: counts of positive values, by bucket index.
  uint32_t Stream(std::string_view group, std::string_view name, const Labels& labels, double last,
                  const std::map<uint32_t, uint64_t>& buckets = {}, double positive_sum = 0, double negative_sum = 0,
                  uint64_t negatives = 0, uint64_t zeros = 0);
  uint32_t Event(std::string_view type, std::string_view name, uint64_t last_ms, uint64_t count, double interval_sum,
                 std::span<const double> bounds, std::span<const uint64_t> buckets);

  // Sets a cell. Adds the lane's chunk if it is missing.
  void Set(uint32_t slot, uint64_t value, uint32_t lane = 0);
  void SetDouble(uint32_t slot, double value, uint32_t lane = 0);

  // Appends a record unchanged, padded to 8 bytes.
  void Record(uint16_t type, const std::string& body);
  // A string as encoded in records.
  static std::string String(std::string_view text);
  template <class T>
  static std::string Plain(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }

  // The header, which a test may change.
  segment::Header& header() { return *reinterpret_cast<segment::Header*>(image_.data()); }
  // The whole file, which a test may change.
  [[nodiscard]] std::string& image() { return image_; }
  [[nodiscard]] uint64_t descriptors_used() { return header().descriptors_used.load(); }

  // Overwrites the file's bytes, or creates it.
  void WriteTo(const std::string& path) const;

  [[nodiscard]] const SegmentPlaces& places() const { return places_; }

 private:
  // The chunk's offset in the file.
  size_t ChunkAt(uint32_t lane, uint32_t range);

  const SegmentPlaces places_;
  std::string image_;
  std::vector<std::pair<segment::Kind, size_t>> families_;  // with the number of bounds
  std::map<std::pair<uint32_t, uint32_t>, size_t> chunks_;  // by lane and range: the chunk's index
  std::map<uint32_t, size_t> removed_at_;                   // by slot: the offset of its mark
  uint32_t next_slot_ = segment::kCellsPerChunk;
};

}  // namespace persia::agent::testing

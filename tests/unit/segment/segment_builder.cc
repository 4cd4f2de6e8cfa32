#include "segment/segment_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace persia::agent::testing {

using segment::kCellsPerChunk;
using segment::Kind;

SegmentBuilder::SegmentBuilder(const SegmentPlaces& places) : places_(places), image_(places.chunks_offset, '\0') {
  static uint64_t made = 0;
  ++made;
  segment::Header& header = this->header();
  std::memcpy(header.magic, segment::kMagic, sizeof header.magic);
  header.major = segment::kMajor;
  header.minor = segment::kMinor;
  header.header_bytes = sizeof header;
  std::memcpy(header.segment_id, &made, sizeof made);
  header.max_bytes = places_.max_bytes;
  header.pid = 17;
  header.birth_unix_ns = 1'700'000'000'000'000'000 + made * 1'000'000'000;
  header.descriptors_offset = places_.descriptors_offset;
  header.descriptors_capacity = places_.descriptors_capacity;
  header.directory_offset = places_.directory_offset;
  header.directory_capacity = places_.directory_capacity;
  header.ring_offset = places_.chunks_offset;
  header.ring_slots = 0;
  header.chunks_offset = places_.chunks_offset;
}

std::string SegmentBuilder::String(std::string_view text) {
  return Plain(static_cast<uint32_t>(text.size())) + std::string(text);
}

void SegmentBuilder::Record(uint16_t type, const std::string& body) {
  std::string record = Plain(segment::RecordHeader{static_cast<uint32_t>((8 + body.size() + 7) / 8 * 8), type, 0}) + body;
  record.resize((record.size() + 7) / 8 * 8);
  const uint64_t used = descriptors_used();
  if (used + record.size() > places_.descriptors_capacity) {
    throw std::length_error("a segment of the builder holds " + std::to_string(places_.descriptors_capacity) +
                            " bytes of descriptors");
  }
  image_.replace(places_.descriptors_offset + used, record.size(), record);
  header().descriptors_used = used + record.size();
}

void SegmentBuilder::Identity(const SegmentIdentity& identity, bool forked) {
  std::string body = Plain(segment::IdentityFixed{
      identity.replica, identity.restart_count, static_cast<uint32_t>(identity.labels.size()), forked ? segment::kForked : 0});
  body += String(identity.job) + String(identity.run_id) + String(identity.role);
  for (const auto& [name, value] : identity.labels) {
    body += String(name) + String(value);
  }
  Record(static_cast<uint16_t>(segment::RecordType::kIdentity), body);
}

void SegmentBuilder::Writer(const SegmentWriterInfo& writer) {
  Record(static_cast<uint16_t>(segment::RecordType::kWriter), String(writer.language) + String(writer.library_version));
}

uint32_t SegmentBuilder::Family(Kind kind, std::string_view group, std::string_view name, std::span<const double> bounds,
                                GaugePolicy policy, const FamilyText& text) {
  std::string body = Plain(
      segment::FamilyFixed{static_cast<uint8_t>(kind), static_cast<uint8_t>(policy), 0, static_cast<uint32_t>(bounds.size())});
  for (const double bound : bounds) {
    body += Plain(bound);
  }
  body += String(group) + String(name) + String(text.help) + String(text.unit);
  Record(static_cast<uint16_t>(segment::RecordType::kFamily), body);
  families_.emplace_back(kind, bounds.size());
  return static_cast<uint32_t>(families_.size() - 1);
}

uint32_t SegmentBuilder::Series(uint32_t family, const Labels& labels) {
  const auto& [kind, bounds] = families_.at(family);
  const uint32_t cells = std::max(segment::CellsOf(kind, static_cast<uint32_t>(bounds)), 1U);
  if (next_slot_ % kCellsPerChunk + cells > kCellsPerChunk) {
    next_slot_ = (next_slot_ / kCellsPerChunk + 1) * kCellsPerChunk;
  }
  const uint32_t slot = next_slot_;
  next_slot_ += cells;
  Set(slot, kind == Kind::kGauge || kind == Kind::kStream ? segment::kUnset : 0);
  std::string body = Plain(segment::SeriesFixed{family, slot, static_cast<uint32_t>(labels.size()), 0});
  for (const auto& [name, value] : labels) {
    body += String(name) + String(value);
  }
  removed_at_[slot] =
      places_.descriptors_offset + descriptors_used() + sizeof(segment::RecordHeader) + offsetof(segment::SeriesFixed, removed);
  Record(static_cast<uint16_t>(segment::RecordType::kSeries), body);
  return slot;
}

void SegmentBuilder::SetRemoved(uint32_t slot, bool removed) {
  const uint32_t mark = removed ? 1 : 0;
  std::memcpy(image_.data() + RemovedAt(slot), &mark, sizeof mark);
  ++header().removals;
}

uint32_t SegmentBuilder::Counter(std::string_view group, std::string_view name, const Labels& labels, uint64_t whole,
                                 double fraction) {
  const uint32_t slot = Series(Family(Kind::kCounter, group, name), labels);
  Set(slot, whole);
  SetDouble(slot + 1, fraction);
  return slot;
}

uint32_t SegmentBuilder::Gauge(std::string_view group, std::string_view name, const Labels& labels, double value,
                               GaugePolicy policy) {
  const uint32_t slot = Series(Family(Kind::kGauge, group, name, {}, policy), labels);
  SetDouble(slot, value);
  return slot;
}

uint32_t SegmentBuilder::UnsetGauge(std::string_view group, std::string_view name, GaugePolicy policy) {
  return Series(Family(Kind::kGauge, group, name, {}, policy));
}

uint32_t SegmentBuilder::Histogram(std::string_view group, std::string_view name, const Labels& labels,
                                   std::span<const double> bounds, double sum, std::span<const uint64_t> buckets) {
  const uint32_t slot = Series(Family(Kind::kHistogram, group, name, bounds), labels);
  SetDouble(slot, sum);
  for (uint32_t i = 0; i < buckets.size(); ++i) {
    Set(slot + 1 + i, buckets[i]);
  }
  return slot;
}

uint32_t SegmentBuilder::Stream(std::string_view group, std::string_view name, const Labels& labels, double last,
                                const std::map<uint32_t, uint64_t>& buckets, double positive_sum, double negative_sum,
                                uint64_t negatives, uint64_t zeros) {
  const uint32_t slot = Series(Family(Kind::kStream, group, name), labels);
  SetDouble(slot, last);
  SetDouble(slot + segment::kStreamPositiveSum, positive_sum);
  SetDouble(slot + segment::kStreamNegativeSum, negative_sum);
  Set(slot + segment::kStreamNegatives, negatives);
  Set(slot + segment::kStreamZeros, zeros);
  for (const auto& [bucket, count] : buckets) {
    Set(slot + segment::kStreamFirstBucket + bucket, count);
  }
  return slot;
}

uint32_t SegmentBuilder::Event(std::string_view type, std::string_view name, uint64_t last_ms, uint64_t count,
                               double interval_sum, std::span<const double> bounds, std::span<const uint64_t> buckets) {
  const uint32_t slot = Series(Family(Kind::kEvent, type, name, bounds));
  Set(slot, last_ms);
  Set(slot + 1, count);
  SetDouble(slot + 2, interval_sum);
  for (uint32_t i = 0; i < buckets.size(); ++i) {
    Set(slot + 3 + i, buckets[i]);
  }
  return slot;
}

size_t SegmentBuilder::ChunkAt(uint32_t lane, uint32_t range) {
  const auto [found, added] = chunks_.try_emplace({lane, range}, chunks_.size());
  if (added) {
    if (found->second >= places_.directory_capacity) {
      throw std::length_error("a segment of the builder holds " + std::to_string(places_.directory_capacity) + " chunks");
    }
    image_.resize(places_.chunks_offset + (found->second + 1) * segment::kChunkBytes);
    const segment::ChunkEntry entry{lane, range};
    std::memcpy(image_.data() + places_.directory_offset + found->second * sizeof entry, &entry, sizeof entry);
    header().chunks_used = found->second + 1;
  }
  return places_.chunks_offset + found->second * segment::kChunkBytes;
}

void SegmentBuilder::Set(uint32_t slot, uint64_t value, uint32_t lane) {
  const size_t at = ChunkAt(lane, slot / kCellsPerChunk) + slot % kCellsPerChunk * sizeof value;
  std::memcpy(image_.data() + at, &value, sizeof value);
}

void SegmentBuilder::SetDouble(uint32_t slot, double value, uint32_t lane) { Set(slot, std::bit_cast<uint64_t>(value), lane); }

void SegmentBuilder::WriteTo(const std::string& path) const {
  std::ofstream(path, std::ios::binary | std::ios::app).close();
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.write(image_.data(), static_cast<std::streamsize>(image_.size()));
  file.close();
  if (!file) {
    throw std::runtime_error("cannot write " + path);
  }
}

}  // namespace persia::agent::testing

// A slot: sequence (2t + 1 while ticket t is written, 2t + 2 once it is complete), then the record: unix_ms (U64), bytes (U32),
// entries, left_out (U16), type, name (String), then `entries` times: key (String), type (U8), value.
#include "segment/event_ring.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "files/bytes.h"
#include "segment_format.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Header;
using segment::MetadataType;

constexpr size_t kSlotWords = segment::kEventSlotBytes / sizeof(uint64_t);

std::optional<JobEvent::Value> ReadValue(ByteReader& reader) {
  switch (static_cast<MetadataType>(reader.U8())) {
    case MetadataType::kNull:
      return std::monostate();
    case MetadataType::kBool:
      return reader.U8() != 0;
    case MetadataType::kInt:
      return static_cast<int64_t>(reader.U64());
    case MetadataType::kDouble:
      return reader.F64();
    case MetadataType::kString:
      return std::string(reader.String());
  }
  return std::nullopt;
}

}  // namespace

std::optional<JobEvent> ParseEvent(std::span<const uint64_t> words) {
  segment::EventFixed fixed;
  static_assert(sizeof fixed == 16);
  if (words.size_bytes() < sizeof fixed) return std::nullopt;
  std::memcpy(&fixed, words.data(), sizeof fixed);
  if (fixed.bytes < sizeof fixed || fixed.bytes > words.size_bytes()) return std::nullopt;
  ByteReader reader({reinterpret_cast<const char*>(words.data()) + sizeof fixed, fixed.bytes - sizeof fixed});
  JobEvent event;
  event.unix_ms = fixed.unix_ms;
  event.left_out = fixed.left_out;
  event.type = reader.String();
  event.name = reader.String();
  for (uint16_t i = 0; i < fixed.entries && reader.ok(); ++i) {
    std::string key(reader.String());
    auto value = ReadValue(reader);
    if (!value) return std::nullopt;
    event.metadata.emplace_back(std::move(key), *std::move(value));
  }
  return reader.done() ? std::optional(std::move(event)) : std::nullopt;
}

void EventRing::Read(const SegmentFile& file, bool writer_lives, std::vector<JobEvent>& out) {
  const Header& header = *file.header();
  uint64_t recorded = 0;
  if (header.ring_slots == 0 || !file.LoadAcquire(offsetof(Header, events_recorded), recorded) || recorded <= next_) return;
  if (!file.HoldsPages(header.ring_slots * segment::kEventSlotBytes)) return;
  if (recorded - next_ > header.ring_slots) {
    lost_ += recorded - next_ - header.ring_slots;
    next_ = recorded - header.ring_slots;
  }
  std::array<uint64_t, kSlotWords> slot;
  for (; next_ < recorded; ++next_) {
    const uint64_t offset = header.ring_offset + next_ % header.ring_slots * segment::kEventSlotBytes;
    const uint64_t complete = 2 * next_ + 2;
    uint64_t sequence_after = 0;
    if (!file.CopyInOrder(offset, slot)) return;
    if (writer_lives && slot[0] < complete && incomplete_ != next_) {
      incomplete_ = next_;  // later records wait too, so that events stay in order
      return;
    }
    // A writer changes the sequence before it reuses the slot.
    const bool unchanged = slot[0] == complete && file.LoadAcquire(offset, sequence_after) && sequence_after == complete;
    auto event = unchanged ? ParseEvent(std::span(slot).subspan(1)) : std::nullopt;
    if (event)
      out.push_back(*std::move(event));
    else
      ++lost_;
  }
}

}  // namespace persia::agent

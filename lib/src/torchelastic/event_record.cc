#include "event_record.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <variant>

#include "cells.h"
#include "registry.h"
#include "utf8.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace events {
namespace {

using segment::EventFixed;
using segment::EventSlot;
using segment::Kind;
using segment::MetadataType;

// From a millisecond to a day: the intervals of steps, epochs and restarts.
constexpr std::array<double, 14> kIntervalBounds = {0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400};

// A record of the ring, filled until nothing more fits.
class RecordBuffer {
 public:
  RecordBuffer() { at_ = sizeof(EventFixed); }

  // Appends the length and the text, or nothing. False: they do not fit.
  bool AppendString(std::string_view text) {
    const auto size = static_cast<uint32_t>(text.size());
    return text.size() <= sizeof(bytes_) && AppendBytes({{&size, sizeof size}, {text.data(), text.size()}});
  }
  // Appends a text of more than `longest` bytes as that many, with kCut at their end.
  bool AppendEntry(const MetadataEntry& entry, size_t longest) {
    const size_t before = at_;
    const auto append = [&](const auto& value) { return AppendValue(value, longest); };
    if (AppendString(entry.first) && std::visit(append, entry.second)) return true;
    at_ = before;
    return false;
  }
  // The most bytes of each text with which all entries fit; kLeastText, if they do not even then.
  [[nodiscard]] size_t LongestText(std::span<const MetadataEntry> metadata) const {
    const size_t space = sizeof(bytes_) - at_;
    const auto fit = [&](size_t longest) {
      size_t wanted = 0;
      for (const MetadataEntry& entry : metadata)
        if (SizeOf(entry, kLeastText) <= space) wanted += SizeOf(entry, longest);
      return wanted <= space;
    };
    if (fit(space)) return space;
    size_t least = kLeastText;
    for (size_t more = std::bit_floor(space); more > 0; more /= 2)
      if (fit(least + more)) least += more;
    return least;
  }

  void Store(EventFixed fixed, EventSlot* slot) {
    fixed.bytes = static_cast<uint32_t>(at_);
    std::memcpy(bytes_, &fixed, sizeof fixed);
    for (size_t i = 0; i * 8 < at_; ++i) {
      uint64_t word;
      std::memcpy(&word, bytes_ + i * 8, 8);
      // Pairs with the reader's acquire: a reader that loads a word of the new record sees the odd sequence when it checks
      // again.
      slot->words[i].store(word, std::memory_order_release);
    }
  }

 private:
  struct Part {
    const void* data;
    size_t size;
  };

  static constexpr size_t kLeastText = 64;
  static constexpr std::string_view kCut = "...";

  static size_t SizeOf(const MetadataEntry& entry, size_t longest) {
    const auto* const text = std::get_if<std::string_view>(&entry.second);
    const size_t plain = entry.second.index() < 2 ? entry.second.index() : sizeof(uint64_t);  // null has none, a boolean one
    const size_t value = text == nullptr ? plain : sizeof(uint32_t) + std::min(text->size(), longest);
    return sizeof(uint32_t) + entry.first.size() + sizeof(MetadataType) + value;
  }

  bool AppendBytes(std::initializer_list<Part> parts) {
    size_t wanted = 0;
    for (const Part& part : parts) wanted += part.size;
    if (wanted > sizeof(bytes_) - at_) return false;
    for (const Part& part : parts) {
      if (part.size > 0) {
        std::memcpy(bytes_ + at_, part.data, part.size);
        at_ += part.size;
      }
    }
    return true;
  }

  template <class T>
  bool AppendValue(const T& value, size_t longest) {
    if constexpr (std::is_same_v<T, std::monostate>) {
      return AppendType(MetadataType::kNull);
    } else if constexpr (std::is_same_v<T, bool>) {
      const uint8_t byte = value ? 1 : 0;
      return AppendType(MetadataType::kBool) && AppendBytes({{&byte, 1}});
    } else if constexpr (std::is_same_v<T, std::string_view>) {
      return AppendType(MetadataType::kString) && AppendText(value, longest);
    } else {
      return AppendType(std::is_same_v<T, double> ? MetadataType::kDouble : MetadataType::kInt) &&
             AppendBytes({{&value, sizeof value}});
    }
  }
  bool AppendText(std::string_view text, size_t longest) {
    if (text.size() <= longest) return AppendString(text);
    const std::string_view kept = FirstBytes(text, longest - kCut.size());
    const auto size = static_cast<uint32_t>(kept.size() + kCut.size());
    return AppendBytes({{&size, sizeof size}, {kept.data(), kept.size()}, {kCut.data(), kCut.size()}});
  }
  bool AppendType(MetadataType type) { return AppendBytes({{&type, sizeof type}}); }

  size_t at_;
  alignas(8) std::byte bytes_[sizeof(EventSlot::words)] = {};
};

// Does not wait: if another writer holds the slot, or has already written a later record to it, this record is dropped.
void WriteSlot(Registry& registry, RecordBuffer& record, const EventFixed& fixed) {
  uint64_t ticket = 0;
  EventSlot* slot = registry.NextEventSlot(&ticket);
  if (slot == nullptr) return;
  uint64_t sequence = slot->sequence.load(std::memory_order_relaxed);
  const bool free = sequence % 2 == 0 && sequence <= 2 * ticket;
  // Acquire pairs with the release below: words of this record are stored after those of the slot's last one.
  if (!free || !slot->sequence.compare_exchange_strong(sequence, 2 * ticket + 1, std::memory_order_acquire))
    return registry.CountDropped(segment::Drop::kEventOverrun);
  record.Store(fixed, slot);
  // Pairs with the reader's acquire.
  slot->sequence.store(2 * ticket + 2, std::memory_order_release);
}

void AddToCounts(uint32_t slot, uint64_t now_ms) {
  const uint64_t before = CommonCell(slot)->exchange(now_ms, std::memory_order_relaxed);
  AddWhole(slot + 1, 1);
  if (before != 0 && before != segment::kUnset) {  // the latter is the first one in a test's scope
    // A clock that was set back gives an interval of 0.
    const double seconds = now_ms > before ? static_cast<double>(now_ms - before) / 1000 : 0;
    AddDouble(slot + 2, seconds);
    const auto bucket = std::ranges::lower_bound(kIntervalBounds, seconds) - kIntervalBounds.begin();
    AddWhole(slot + 3 + static_cast<uint32_t>(bucket), 1);
  }
}

}  // namespace

uint64_t NowInMilliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

uint64_t Count(std::string_view type, std::string_view name) noexcept { return Registry::Get().EventCount(type, name); }

bool CountEvent(std::string_view name, std::string_view type, uint64_t unix_ms) noexcept {
  Registry& registry = Registry::Get();
  const uint32_t slot =
      registry.FindOrAddSeries(registry.FindOrAddFamily({Kind::kEvent, type, name, {}, {}, 0, kIntervalBounds}), {});
  if (slot == internal::kScratchSlot) return false;
  AddToCounts(slot, unix_ms);
  return true;
}

void AppendToRing(std::string_view name, std::string_view type, std::span<const MetadataEntry> metadata, uint64_t unix_ms,
                  size_t more) noexcept {
  Registry& registry = Registry::Get();
  RecordBuffer record;
  EventFixed fixed{unix_ms, 0, 0, 0};
  // These fit: CountEvent refuses a name or a type of more than 256 bytes.
  record.AppendString(type);
  record.AppendString(name);
  const size_t longest = record.LongestText(metadata);
  bool shortened = false;
  for (size_t i = 0; i < metadata.size(); ++i) {
    const MetadataEntry& entry = metadata[i];
    const auto later = metadata.subspan(i + 1);
    const bool is_replaced = std::ranges::find(later, entry.first, &MetadataEntry::first) != later.end();
    if (!is_replaced && record.AppendEntry(entry, longest)) {
      const auto* const text = std::get_if<std::string_view>(&entry.second);
      shortened = shortened || (text != nullptr && text->size() > longest);
      ++fixed.entries;
    } else {
      ++more;
    }
  }
  fixed.left_out = static_cast<uint16_t>(std::min<size_t>(more, UINT16_MAX));
  if (fixed.left_out > 0 || shortened) registry.CountDropped(segment::Drop::kEventTruncated);
  WriteSlot(registry, record, fixed);
}

}  // namespace events
}  // namespace abi_1
}  // namespace persia::metrics

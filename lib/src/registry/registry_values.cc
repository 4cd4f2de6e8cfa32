// Reads the values of the process's own metrics, as segment_format.md describes.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "clock.h"
#include "persia/metrics/internal/bridge.h"
#include "persia/metrics/internal/lane.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

namespace internal {
namespace {

using segment::Kind;

static_assert(static_cast<uint8_t>(ValueKind::kCounter) == static_cast<uint8_t>(Kind::kCounter));
static_assert(static_cast<uint8_t>(ValueKind::kGauge) == static_cast<uint8_t>(Kind::kGauge));
static_assert(static_cast<uint8_t>(ValueKind::kHistogram) == static_cast<uint8_t>(Kind::kHistogram));
static_assert(static_cast<uint8_t>(ValueKind::kStream) == static_cast<uint8_t>(Kind::kStream));
static_assert(static_cast<uint8_t>(ValueKind::kEvent) == static_cast<uint8_t>(Kind::kEvent));

}  // namespace
}  // namespace internal

using internal::Cell;
using internal::ReadChunk;
using internal::SeriesNode;
using segment::Kind;

namespace {

// The chunk in the process's common lane; if it waits, that in the waiting lane. Read in this order, since MoveChunk first puts
// the chunk into the common lane, and then takes it out of the waiting lane.
Cell* CommonChunkOf(uint32_t slot) {
  if (Cell* waiting = ReadChunk(internal::waiting_lane, slot, std::memory_order_acquire)) return waiting;
  return ReadChunk(internal::common_lane, slot, std::memory_order_acquire);
}

// Relaxed: no other memory is ordered by a cell.
uint64_t BitsIn(Cell* chunk, uint32_t slot) { return internal::CellIn(chunk, slot).load(std::memory_order_relaxed); }

// To be read before the lanes. Acquire: pairs with the release in StartFromZero, so that the lanes hold at least the base.
uint64_t BaseAt(uint32_t slot) {
  Cell* chunk = ReadChunk(internal::base_lane, slot, std::memory_order_acquire);
  return chunk == nullptr ? 0 : internal::CellIn(chunk, slot).load(std::memory_order_acquire);
}

}  // namespace

template <class Take>
void Registry::ForEachLane(uint32_t slot, const Take& take) const noexcept {
  if (slot >> internal::kChunkBits == 0) return;  // the scratch page
  if (Cell* chunk = CommonChunkOf(slot)) take(chunk);
  // Pairs with the release in AcquireLane.
  for (const Lane* lane = all_lanes_.load(std::memory_order_acquire); lane != nullptr; lane = lane->next)
    if (Cell* chunk = ReadChunk(lane->table, slot, std::memory_order_acquire)) take(chunk);
}

uint64_t Registry::RawWholeAt(uint32_t slot) const noexcept {
  uint64_t sum = 0;
  ForEachLane(slot, [&](Cell* chunk) { sum += BitsIn(chunk, slot); });
  return sum;
}

double Registry::RawDoubleAt(uint32_t slot) const noexcept {
  double sum = 0;
  ForEachLane(slot, [&](Cell* chunk) { sum += internal::DoubleOf(BitsIn(chunk, slot)); });
  return sum;
}

double Registry::CounterAt(uint32_t slot) const noexcept {
  const uint64_t whole_base = BaseAt(slot);
  const double fraction_base = internal::DoubleOf(BaseAt(slot + 1));
  uint64_t whole = 0;
  double fraction = 0;
  ForEachLane(slot, [&](Cell* chunk) {
    whole += BitsIn(chunk, slot);
    fraction += internal::DoubleOf(BitsIn(chunk, slot + 1));
  });
  // Lanes that were added up in another order may differ in the last place.
  return static_cast<double>(whole - whole_base) + std::max(0.0, fraction - fraction_base);
}

double Registry::ClockAt(uint32_t slot) const noexcept {
  const uint64_t base = BaseAt(slot);
  const uint64_t now = MonotonicNs();  // before the clock's word, so that the result never falls
  const uint64_t ran = segment::ClockNs(CommonAt(slot, 0), now);
  return segment::SecondsOf(ran - std::min(base, ran));
}

uint64_t Registry::WholeAt(uint32_t slot) const noexcept {
  const uint64_t base = BaseAt(slot);
  return RawWholeAt(slot) - base;
}

double Registry::DoubleAt(uint32_t slot) const noexcept {
  const double base = internal::DoubleOf(BaseAt(slot));
  return RawDoubleAt(slot) - base;
}

uint64_t Registry::CommonAt(uint32_t slot, uint64_t unset) const noexcept {
  if (slot >> internal::kChunkBits == 0) return unset;
  Cell* chunk = CommonChunkOf(slot);
  return chunk == nullptr ? unset : BitsIn(chunk, slot);  // none in a forked child that has used no metric yet
}

StreamValue Registry::StreamAt(uint32_t slot) const noexcept {
  StreamValue value;
  const uint64_t bits = CommonAt(slot, segment::kUnset);
  if (bits == segment::kUnset) return value;
  value.last = internal::DoubleOf(bits);
  value.sum = DoubleAt(slot + segment::kStreamPositiveSum) + DoubleAt(slot + segment::kStreamNegativeSum);
  for (uint32_t cell = segment::kStreamNegatives; cell < segment::kStreamFirstBucket + segment::kStreamBuckets; ++cell)
    value.count += WholeAt(slot + cell);
  return value;
}

internal::SeriesValues Registry::Read(const SeriesNode& node) const {
  internal::SeriesValues values{.labels = &node.labels};
  switch (node.family->kind) {
    case Kind::kCounter:
      values.value = CounterAt(node.slot);
      break;
    case Kind::kClock:
      values.value = ClockAt(node.slot);
      break;
    case Kind::kGauge: {
      const uint64_t bits = CommonAt(node.slot, segment::kUnset);
      values.set = bits != segment::kUnset;
      values.value = values.set ? internal::DoubleOf(bits) : 0;
      break;
    }
    case Kind::kStream: {
      const StreamValue value = StreamAt(node.slot);
      values.set = value.last.has_value();
      values.value = value.last.value_or(0);
      values.count = value.count;
      values.sum = value.sum;
      break;
    }
    case Kind::kHistogram:
    case Kind::kNativeHistogram:
      for (uint32_t i = 0; i <= node.family->bound_count; ++i) {
        values.buckets.push_back(WholeAt(node.slot + 1 + i));
        values.count += values.buckets.back();
      }
      values.sum = DoubleAt(node.slot);
      break;
    case Kind::kEvent:
      values.value = static_cast<double>(WholeAt(node.slot + 1));
      break;
  }
  return values;
}

std::optional<double> Registry::ValueOf(std::string_view group, std::string_view name, LabelView labels) const noexcept {
  const SeriesNode* node = known_disabled() ? nullptr : FindSeries(group, name, false, labels);
  if (node == nullptr || node->removed.load(std::memory_order_relaxed)) return std::nullopt;
  switch (node->family->kind) {
    case Kind::kCounter:
      return CounterAt(node->slot);
    case Kind::kClock:
      return ClockAt(node->slot);
    case Kind::kGauge:
    case Kind::kStream: {
      const uint64_t bits = CommonAt(node->slot, segment::kUnset);
      return bits == segment::kUnset ? std::nullopt : std::optional(internal::DoubleOf(bits));
    }
    case Kind::kHistogram:
    case Kind::kNativeHistogram: {
      uint64_t count = 0;
      for (uint32_t i = 0; i <= node->family->bound_count; ++i) count += WholeAt(node->slot + 1 + i);
      return static_cast<double>(count);
    }
    case Kind::kEvent:
      break;
  }
  return std::nullopt;
}

uint64_t Registry::EventCount(std::string_view type, std::string_view name) const noexcept {
  const SeriesNode* node = FindSeries(type, name, true, {});
  return node == nullptr ? 0 : WholeAt(node->slot + 1);
}

std::vector<internal::FamilyValues> Registry::Values() {
  std::vector<internal::FamilyValues> out;
  MutexLock lock(mutex_);
  if (disabled_.load(std::memory_order_relaxed)) return out;
  for (const internal::FamilyNode* node : families_.nodes()) {
    // A native histogram as a classic one, with all its bounds; a clock as a counter.
    const bool native = node->kind == Kind::kNativeHistogram;
    const Kind kind = native ? Kind::kHistogram : node->kind == Kind::kClock ? Kind::kCounter : node->kind;
    out.push_back({static_cast<internal::ValueKind>(kind), node->group, node->name, node->help, node->unit,
                   static_cast<GaugeMerge>(node->gauge_policy), native, node->real_bounds()});
  }
  for (const SeriesNode* node : series_.nodes())
    if (!node->removed.load(std::memory_order_relaxed)) out[node->family->ordinal].series.push_back(Read(*node));
  return out;
}

}  // namespace abi_1
}  // namespace persia::metrics

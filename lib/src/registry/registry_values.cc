// Reads the values of the process's own metrics, as segment_format.md describes.
#include <atomic>
#include <bit>
#include <vector>

#include "persia/metrics/internal/bridge.h"
#include "persia/metrics/internal/lane.h"
#include "registry.h"

namespace persia::metrics {

namespace internal {
namespace {

using segment::Kind;

static_assert(static_cast<uint8_t>(ValueKind::kCounter) == static_cast<uint8_t>(Kind::kCounter));
static_assert(static_cast<uint8_t>(ValueKind::kGauge) == static_cast<uint8_t>(Kind::kGauge));
static_assert(static_cast<uint8_t>(ValueKind::kHistogram) == static_cast<uint8_t>(Kind::kHistogram));
static_assert(static_cast<uint8_t>(ValueKind::kStream) == static_cast<uint8_t>(Kind::kStream));
static_assert(static_cast<uint8_t>(ValueKind::kEvent) == static_cast<uint8_t>(Kind::kEvent));

// The tables of all lanes.
class Lanes {
 public:
  void Add(Table* table) { tables_.push_back(table); }

  // The common lane's cell, or `unset` if it does not exist: in a forked child that has used no metric yet.
  [[nodiscard]] uint64_t Common(uint32_t slot, uint64_t unset) const {
    Cell* chunk = ReadChunk(common_lane, slot, std::memory_order_acquire);
    if (chunk == nullptr) {
      chunk = ReadChunk(waiting_lane, slot, std::memory_order_acquire);
    }
    // Relaxed: no other memory is ordered by a cell.
    return chunk == nullptr ? unset : CellIn(chunk, slot).load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t Whole(uint32_t slot) const {
    uint64_t sum = 0;
    ForEach(slot, [&](uint64_t bits) { sum += bits; });
    return sum;
  }
  [[nodiscard]] double Double(uint32_t slot) const {
    double sum = 0;
    ForEach(slot, [&](uint64_t bits) { sum += std::bit_cast<double>(bits); });
    return sum;
  }

 private:
  template <class Take>
  void ForEach(uint32_t slot, const Take& take) const {
    for (Table* table : tables_) {
      if (Cell* chunk = ReadChunk(table, slot, std::memory_order_acquire)) {
        take(CellIn(chunk, slot).load(std::memory_order_relaxed));
      }
    }
  }

  std::vector<Table*> tables_;
};

SeriesValues Read(const SeriesNode& node, const Lanes& lanes) {
  SeriesValues values{.labels = &node.labels};
  switch (node.family->kind) {
    case Kind::kCounter:
      values.value = static_cast<double>(lanes.Whole(node.slot)) + lanes.Double(node.slot + 1);
      break;
    case Kind::kGauge:
    case Kind::kStream: {
      const uint64_t bits = lanes.Common(node.slot, segment::kUnset);
      values.set = bits != segment::kUnset;
      values.value = values.set ? std::bit_cast<double>(bits) : 0;
      break;
    }
    case Kind::kHistogram:
    case Kind::kNativeHistogram:
      values.sum = lanes.Double(node.slot);
      for (uint32_t i = 0; i <= node.family->bound_count; ++i) {
        values.buckets.push_back(lanes.Whole(node.slot + 1 + i));
      }
      break;
    case Kind::kEvent:
      values.value = static_cast<double>(lanes.Whole(node.slot + 1));
      break;
  }
  return values;
}

}  // namespace
}  // namespace internal

std::vector<internal::FamilyValues> Registry::Values() {
  std::vector<internal::FamilyValues> out;
  // Under the lock, so that no lane or chunk is added while a sum is read.
  MutexLock lock(mutex_);
  if (disabled_.load(std::memory_order_relaxed)) return out;
  internal::Lanes lanes;
  lanes.Add(internal::common_lane);
  lanes.Add(internal::waiting_lane);
  for (const Lane* lane = all_lanes_; lane != nullptr; lane = lane->next) {
    lanes.Add(lane->table);
  }
  for (const internal::FamilyNode* node : families_.nodes()) {
    // A native histogram as a classic one, with all its bounds.
    const auto kind = node->kind == segment::Kind::kNativeHistogram ? segment::Kind::kHistogram : node->kind;
    out.push_back({static_cast<internal::ValueKind>(kind), node->group, node->name, node->help, node->real_bounds()});
  }
  for (const internal::SeriesNode* node : series_.nodes()) {
    out[node->family->ordinal].series.push_back(internal::Read(*node, lanes));
  }
  return out;
}

}  // namespace persia::metrics

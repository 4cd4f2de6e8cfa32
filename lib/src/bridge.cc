// Reading the process's own cells as segment_format.md says, and adding to a histogram bucket by bucket.
#include "persia/metrics/internal/bridge.h"

#include <algorithm>
#include <bit>

#include "cells.h"
#include "log.h"
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

// The tables of all lanes; the common one comes first.
class Lanes {
 public:
  void Add(Table* table) { tables_.push_back(table); }

  // The bits of the common lane's cell. Null chunks: a forked child that has not touched a metric yet.
  [[nodiscard]] uint64_t Common(uint32_t slot, uint64_t untouched) const {
    Cell* chunk = ReadChunk(tables_.front(), slot, std::memory_order_acquire);
    // Relaxed: a cell orders nothing but itself.
    return chunk == nullptr ? untouched : CellIn(chunk, slot).load(std::memory_order_relaxed);
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

std::vector<FamilyValues> ReadValues() { return Registry::Get().Values(); }

BucketedHistogram::BucketedHistogram(std::string_view group, std::string_view name, std::span<const double> bounds,
                                     const Description& about) noexcept {
  FamilyNode* family = Registry::Get().FindOrAddFamily({Kind::kHistogram, group, name, about, 0, bounds});
  slot_ = Registry::Get().FindOrAddChild(family, about.labels);
  // None of one that was refused: so many might not fit into the scratch page.
  buckets_ = family == nullptr ? 0 : family->bound_count + 1;
}

void BucketedHistogram::Add(std::span<const uint64_t> counts, double sum) noexcept {
  if (sum != 0 && buckets_ > 0) {
    AddDouble(slot_, sum);
  }
  for (uint32_t i = 0; i < std::min<size_t>(counts.size(), buckets_); ++i) {
    if (counts[i] > 0) {
      AddWhole(slot_ + 1 + i, counts[i]);
    }
  }
}

void SayOnce(std::atomic<bool>& said, std::string_view text) noexcept { LogLineOnce(said, text); }

}  // namespace internal

std::vector<internal::FamilyValues> Registry::Values() {
  std::vector<internal::FamilyValues> out;
  // Under the lock, so that no chunk is claimed between two lanes of one sum, and no lane is missed.
  MutexLock lock(mutex_);
  if (disabled_.load(std::memory_order_relaxed)) {
    return out;
  }
  internal::Lanes lanes;
  lanes.Add(internal::common_lane);
  for (const Lane* lane = all_lanes_; lane != nullptr; lane = lane->next) {
    lanes.Add(lane->table);
  }
  for (const internal::FamilyNode* node : families_.nodes()) {
    out.push_back({static_cast<internal::ValueKind>(node->kind), node->group, node->name, node->help, node->real_bounds()});
  }
  for (const internal::SeriesNode* node : series_.nodes()) {
    out[node->family->ordinal].series.push_back(internal::Read(*node, lanes));
  }
  return out;
}

}  // namespace persia::metrics

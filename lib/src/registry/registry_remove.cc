// Removes series, and exposes them again when they are requested again.
//
// A removed series keeps its slot, its cells and its record, in which a mark says that it is removed. So a removal needs no
// space, a handle from before it writes to the cells of its own series, and only a request with the same labels uses the slot
// again. No cell of a lane is written, since each has one writer: this process subtracts a base from them. The agent does not,
// since what it exposes must not fall (lib/segment_format.md).
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "lane_cells.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

using internal::Cell;
using internal::CellIn;
using internal::FamilyNode;
using internal::SeriesNode;
using segment::Kind;

size_t Registry::IndexOf(uint32_t slot) const noexcept {
  const auto& nodes = series_.nodes();
  const auto at = std::ranges::lower_bound(nodes, slot, {}, &SeriesNode::slot);
  return static_cast<size_t>(at - nodes.begin());
}

uint32_t Registry::NextSlotOf(const FamilyNode* family, uint32_t slot) noexcept {
  MutexLock lock(mutex_);
  const auto& nodes = series_.nodes();
  for (size_t i = IndexOf(slot + 1); i < nodes.size(); ++i) {
    if (nodes[i]->family == family && !nodes[i]->removed.load(std::memory_order_relaxed)) return nodes[i]->slot;
  }
  return internal::kScratchSlot;
}

bool Registry::Remove(uint32_t slot) noexcept try {
  MutexLock lock(mutex_);
  if (!Open()) return false;
  const auto& nodes = series_.nodes();
  const size_t index = IndexOf(slot);
  if (index == nodes.size() || nodes[index]->slot != slot) return false;
  SeriesNode* node = nodes[index];
  if (node->removed.load(std::memory_order_relaxed)) return false;
  if (!StartFromZero(*node)) {
    Report(*node->family, segment::Drop::kOutOfMemory, "has a series that is not removed: ");
    return false;
  }
  SetRemoved(node, true);
  return true;
} catch (const std::bad_alloc&) {
  CountDropped(segment::Drop::kOutOfMemory);
  return false;
}

bool Registry::Restore(SeriesNode* node) noexcept {
  if (!node->removed.load(std::memory_order_relaxed)) return true;
  // Again, since handles from before the removal may have counted since.
  if (!StartFromZero(*node)) {
    Report(*node->family, segment::Drop::kOutOfMemory, "has a series that counts nothing: ");
    return false;
  }
  SetRemoved(node, false);
  return true;
}

void Registry::SetRemoved(SeriesNode* node, bool removed) noexcept {
  node->removed.store(removed, std::memory_order_relaxed);
  if (node->labels.empty()) {
    node->family->unlabelled_slot.store(removed ? internal::kScratchSlot : node->slot, std::memory_order_release);
  }
  if (IndexOf(node->slot) < series_published_) {
    writer_.SetRemoved(node->record_at, removed);
  }
}

bool Registry::StartFromZero(const SeriesNode& node) noexcept {
  const uint32_t range = node.slot >> internal::kChunkBits;
  Cell* base = internal::base_lane[range];
  if (base == nullptr) {
    base = static_cast<Cell*>(private_.NewPage());
    if (base == nullptr) return false;
    internal::SetChunk(internal::base_lane, range, base);
  }
  ForEachLaneCell(*node.family, [&](uint32_t offset, bool is_double) {
    const uint32_t slot = node.slot + offset;
    // Release: pairs with the acquire of a thread that reads the base, and then the lanes.
    CellIn(base, slot)
        .store(is_double ? std::bit_cast<uint64_t>(RawDoubleAt(nullptr, slot)) : RawWholeAt(nullptr, slot),
               std::memory_order_release);
  });
  const bool has_last = node.family->kind == Kind::kGauge || node.family->kind == Kind::kStream;
  if (has_last && HasCommonChunk(range)) {  // none in a forked child that found no memory
    MutexLock lock(waiting_mutex_);         // so that the cell does not move
    SetFirstValue(node);
  }
  return true;
}

}  // namespace abi_1
}  // namespace persia::metrics

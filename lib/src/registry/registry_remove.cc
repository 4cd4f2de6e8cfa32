// Removes series, and exposes them again when they are requested again; the scopes of tests (persia/metrics/testing.h).
//
// A removed series keeps its slot, its cells and its record, in which a mark says that it is removed. So a removal needs no
// space, a handle from before it writes to the cells of its own series, and only a request with the same labels uses the slot
// again. No cell of a lane is written, since each has one writer: this process subtracts a base from them. The agent does not,
// since what it exposes must not fall (lib/segment_format.md).
//
// A scope sets the bases of all series, and at its end those from before. A base is never above what the lanes hold, also if
// scopes of several threads overlap: it is a sum that was read from them.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "clock.h"
#include "lane_cells.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

using internal::Cell;
using internal::CellIn;
using internal::FamilyNode;
using internal::SeriesNode;
using segment::Kind;

namespace {

// Calls `take(slot, cell)` for each cell of the series' base, if it has one.
template <class Take>
void ForEachBaseCell(const SeriesNode& node, const Take& take) {
  Cell* base = internal::base_lane[node.slot >> internal::kChunkBits];
  if (base == nullptr) return;
  const uint32_t first = HasLast(node.family->kind) ? 1 : 0;
  for (uint32_t offset = first; offset < segment::CellsOf(node.family->kind, node.family->bound_count); ++offset)
    take(node.slot + offset, CellIn(base, node.slot + offset));
}

}  // namespace

size_t Registry::IndexOf(uint32_t slot) const noexcept {
  const auto& nodes = series_.nodes();
  const auto at = std::ranges::lower_bound(nodes, slot, {}, &SeriesNode::slot);
  return static_cast<size_t>(at - nodes.begin());
}

uint32_t Registry::NextSlotOf(const FamilyNode* family, uint32_t slot) noexcept {
  MutexLock lock(mutex_);
  const auto& nodes = series_.nodes();
  for (size_t i = IndexOf(slot + 1); i < nodes.size(); ++i)
    if (nodes[i]->family == family && !nodes[i]->removed.load(std::memory_order_relaxed)) return nodes[i]->slot;
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
  if (node->labels.empty())
    node->family->unlabelled_slot.store(removed ? internal::kScratchSlot : node->slot, std::memory_order_release);
  if (IndexOf(node->slot) < series_published_) writer_.SetRemoved(node->record_at, removed);
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
        .store(is_double ? std::bit_cast<uint64_t>(RawDoubleAt(slot)) : RawWholeAt(slot), std::memory_order_release);
  });
  if (node.family->kind == Kind::kClock)
    CellIn(base, node.slot).store(segment::ClockNs(CommonAt(node.slot, 0), MonotonicNs()), std::memory_order_release);
  SetLast(node, segment::kUnset);
  return true;
}

void Registry::SetLast(const SeriesNode& node, uint64_t bits) noexcept {
  if (!HasLast(node.family->kind)) return;
  if (!HasCommonChunk(node.slot >> internal::kChunkBits)) return;  // in a forked child that found no memory
  MutexLock lock(waiting_mutex_);                                  // so that the cell does not move
  SetFirstCell(node, bits);
}

TestScope* Registry::BeginScope() noexcept {
  auto scope = std::make_unique<TestScope>();
  MutexLock lock(mutex_);
  if (!Open()) return scope.release();
  scope->cells.resize(next_slot_);
  for (const SeriesNode* node : series_.nodes()) {
    ForEachBaseCell(*node, [&](uint32_t slot, Cell& base) { scope->cells[slot] = base.load(std::memory_order_relaxed); });
    if (HasLast(node->family->kind)) scope->cells[node->slot] = CommonAt(node->slot, segment::kUnset);
    if (!StartFromZero(*node)) std::abort();  // a test must not go on with the counts of others
  }
  return scope.release();
}

void Registry::EndScope(TestScope* scope) noexcept {
  const std::unique_ptr<const TestScope> ended(scope);
  if (scope->pid != getpid()) return;  // a forked child started from zero
  MutexLock lock(mutex_);
  for (const SeriesNode* node : series_.nodes()) {
    const bool is_new = node->slot >= scope->cells.size();
    const uint64_t former = is_new ? segment::kUnset : scope->cells[node->slot];
    if (former != segment::kUnset || node->family->kind == Kind::kGauge)  // a stream that has counts has a last value
      SetLast(*node, former);
    if (!is_new)
      ForEachBaseCell(*node, [&](uint32_t slot, Cell& base) { base.store(scope->cells[slot], std::memory_order_release); });
  }
}

}  // namespace abi_1
}  // namespace persia::metrics

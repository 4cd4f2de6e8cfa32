// Adds to a series' cells: in the calling thread's lane if it has one, else in the common lane.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "persia/metrics/internal/lane.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

// The cell in the calling thread's lane, which is claimed if necessary. Null: the thread has no lane.
inline internal::Cell* OwnCell(uint32_t slot) noexcept {
  internal::Cell* chunk = internal::ChunkOf(internal::tls_lane, slot);
  if (chunk == nullptr) chunk = Registry::Get().ClaimChunk(slot);
  return chunk == nullptr ? nullptr : &internal::CellIn(chunk, slot);
}

// Access to the cell in the common lane. If the series waits to be exported, holds a lock, so that the cell does not move.
class CommonCell {
 public:
  explicit CommonCell(uint32_t slot) noexcept {
    // Pairs with the release in SetChunk: a thread that reads the pointer sees the chunk's contents.
    internal::Cell* chunk = internal::ReadChunk(internal::common_lane, slot, std::memory_order_acquire);
    if (chunk == nullptr) [[unlikely]]
      chunk = Registry::Get().CommonChunk(slot, &locked_);
    cell_ = &internal::CellIn(chunk, slot);
  }
  ~CommonCell() {
    if (locked_) [[unlikely]]
      Registry::Get().UnlockWaiting();
  }
  CommonCell(const CommonCell&) = delete;
  CommonCell& operator=(const CommonCell&) = delete;

  internal::Cell* operator->() const { return cell_; }
  // A later cell of the same series.
  internal::Cell& operator[](uint32_t offset) const { return cell_[offset]; }

 private:
  internal::Cell* cell_;
  bool locked_ = false;
};

// Replaces a shared double by `change(its bits)`.
template <class Change>
void UpdateShared(const CommonCell& cell, const Change& change) noexcept {
  // Relaxed: no other memory is ordered by a cell.
  uint64_t bits = cell->load(std::memory_order_relaxed);
  while (!cell->compare_exchange_weak(bits, std::bit_cast<uint64_t>(change(bits)), std::memory_order_relaxed)) {
  }
}

inline void AddWhole(uint32_t slot, uint64_t by) noexcept {
  if (internal::Cell* cell = OwnCell(slot))
    internal::AddTo(*cell, by);
  else
    CommonCell(slot)->fetch_add(by, std::memory_order_relaxed);
}

inline void AddDouble(uint32_t slot, double by) noexcept {
  if (internal::Cell* cell = OwnCell(slot))
    internal::AddDoubleTo(*cell, by);
  else
    UpdateShared(
        CommonCell(slot), [by](uint64_t bits) { return std::bit_cast<double>(bits) + by; });
}

}  // namespace abi_1
}  // namespace persia::metrics

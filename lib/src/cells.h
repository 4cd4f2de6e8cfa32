// Adding to a series' cells wherever the calling thread may: in its lane, else in the common lane.
#pragma once

#include <bit>
#include <cstdint>

#include "persia/metrics/internal/lane.h"
#include "registry.h"

namespace persia::metrics {

// The cell of the calling thread's own lane, claimed if need be; null if it has none.
inline internal::Cell* OwnCell(uint32_t slot) noexcept {
  internal::Cell* chunk = internal::ChunkOf(internal::tls_lane, slot);
  if (chunk == nullptr) {
    chunk = Registry::Get().ClaimChunk(slot);
  }
  return chunk == nullptr ? nullptr : &internal::CellIn(chunk, slot);
}

// The cell that the process shares.
inline internal::Cell& CommonCell(uint32_t slot) noexcept {
  // Acquire, with the release in EnsureCommonChunk: whoever sees the chunk sees what is in it.
  internal::Cell* chunk = internal::ReadChunk(internal::common_lane, slot, std::memory_order_acquire);
  if (chunk == nullptr) [[unlikely]] {
    chunk = Registry::Get().CommonChunk(slot);
  }
  return internal::CellIn(chunk, slot);
}

// Replaces a shared double by `change(its bits)`.
template <class Change>
void UpdateShared(internal::Cell& cell, const Change& change) noexcept {
  // Relaxed: a cell orders nothing but itself.
  uint64_t bits = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(bits, std::bit_cast<uint64_t>(change(bits)), std::memory_order_relaxed)) {
  }
}

inline void AddWhole(uint32_t slot, uint64_t by) noexcept {
  if (internal::Cell* cell = OwnCell(slot)) {
    internal::AddTo(*cell, by);
  } else {
    CommonCell(slot).fetch_add(by, std::memory_order_relaxed);
  }
}

inline void AddDouble(uint32_t slot, double by) noexcept {
  if (internal::Cell* cell = OwnCell(slot)) {
    const auto sum = std::bit_cast<double>(cell->load(std::memory_order_relaxed)) + by;
    cell->store(std::bit_cast<uint64_t>(sum), std::memory_order_relaxed);
  } else {
    UpdateShared(CommonCell(slot), [by](uint64_t bits) { return std::bit_cast<double>(bits) + by; });
  }
}

}  // namespace persia::metrics

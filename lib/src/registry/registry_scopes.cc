// The scopes of tests: counts that only the threads of a scope see (persia/metrics/testing.h).
//
// A thread that enters a scope gets a lane of the scope instead of its own one. The registry does not know this lane, so
// nothing reads it outside of the scope, and no agent sees it. Gauges, streams and events also write to the common lane: while
// there are scopes, its table is empty for the hot path (registry.h), and Registry::CommonChunk chooses the chunk.
//
// A thread in no scope may still write to a chunk that it has read from the table before. That is the process's chunk, which is
// right. A thread that enters a scope sees the empty table, since it has begun the scope, or has been given it by another
// thread.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

using internal::Cell;
using internal::ReadChunk;
using internal::SetChunk;
using internal::Table;

namespace {

constexpr size_t kChunkBytes = internal::kChunkCells * sizeof(Cell);

Cell* MapChunk() {
  void* memory = mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Cell*>(memory);
}

}  // namespace

const TestScope* Registry::CurrentScope() noexcept {
  const Lane* lane = OwnLane();
  return lane == nullptr ? nullptr : lane->scope;
}

TestScope* Registry::BeginScope() noexcept try {
  auto scope = std::make_unique<TestScope>();
  scope->common = NewLane(0);
  if (scope->common == nullptr) return nullptr;
  MutexLock lock(mutex_);
  if (scopes_++ == 0) {
    HideCommonLane();
  }
  return scope.release();
} catch (const std::bad_alloc&) {
  return nullptr;
}

void Registry::EndScope(TestScope* scope) noexcept {
  MutexLock lock(mutex_);
  // A forked child has no scopes.
  if (scope->pid == getpid() && --scopes_ == 0) {
    ShowCommonLane();
  }
  Unmap(scope->common);
  for (Lane* lane = scope->lanes.load(std::memory_order_acquire); lane != nullptr;) {
    Lane* next = lane->next;
    Unmap(lane);
    lane = next;
  }
  delete scope;
}

bool Registry::EnterScope(TestScope& scope) noexcept {
  Lane* lane = NewLane(0);
  if (lane == nullptr) return false;
  lane->scope = &scope;
  lane->former = internal::tls_lane;
  lane->next = scope.lanes.load(std::memory_order_relaxed);
  // Release: pairs with the acquire in ForEachLane.
  while (!scope.lanes.compare_exchange_weak(lane->next, lane, std::memory_order_release, std::memory_order_relaxed)) {
  }
  internal::tls_lane = lane->table;
  return true;
}

void Registry::LeaveScope() noexcept {
  const Lane* lane = OwnLane();
  if (lane != nullptr && lane->scope != nullptr) {  // else it was left by a fork
    internal::tls_lane = lane->former;
  }
}

void Registry::HideCommonLane() noexcept {
  MutexLock lock(waiting_mutex_);
  const uint32_t ranges = std::min((next_slot_ >> internal::kChunkBits) + 1, internal::kMaxRanges);
  for (uint32_t range = 0; range < ranges; ++range) {
    SetChunk(internal::hidden_lane, range, internal::common_lane[range]);
  }
  internal::process_lane.table.store(internal::hidden_lane, std::memory_order_release);
  for (uint32_t range = 1; range < ranges; ++range) {  // not that of handles that count nothing
    SetChunk(internal::common_lane, range, nullptr);
  }
}

void Registry::ShowCommonLane() noexcept {
  MutexLock lock(waiting_mutex_);
  const uint32_t ranges = std::min((next_slot_ >> internal::kChunkBits) + 1, internal::kMaxRanges);
  for (uint32_t range = 1; range < ranges; ++range) {
    SetChunk(internal::common_lane, range, internal::hidden_lane[range]);
  }
  internal::process_lane.table.store(internal::common_lane, std::memory_order_release);
  for (uint32_t range = 1; range < ranges; ++range) {
    SetChunk(internal::hidden_lane, range, nullptr);
  }
}

Cell* Registry::OwnChunkIn(Lane& lane, uint32_t slot) noexcept {
  OpenIfUnopened();  // metrics may be disabled
  Cell* chunk = internal::ChunkOf(lane.table, slot);
  if (chunk == nullptr) {
    chunk = known_disabled() ? nullptr : MapChunk();
    if (chunk == nullptr) {
      chunk = internal::ChunkOf(lane.table, internal::kScratchSlot);
    }
    SetChunk(lane.table, slot >> internal::kChunkBits, chunk);
  }
  return chunk;
}

Cell* Registry::CommonChunkIn(TestScope& scope, uint32_t slot) noexcept {
  Table* table = scope.common->table;
  if (Cell* chunk = ReadChunk(table, slot, std::memory_order_acquire)) return chunk;
  MutexLock lock(mutex_);
  Cell* chunk = ReadChunk(table, slot, std::memory_order_relaxed);
  if (chunk == nullptr) {
    chunk = known_disabled() ? nullptr : MapChunk();
    if (chunk == nullptr) return internal::common_scratch;
    // Also cells of other kinds than gauges and streams, since series may be added later: no counter uses them.
    std::for_each(chunk, chunk + internal::kChunkCells,
                  [](Cell& cell) { cell.store(segment::kUnset, std::memory_order_relaxed); });
    SetChunk(table, slot >> internal::kChunkBits, chunk);
  }
  return chunk;
}

void Registry::Unmap(Lane* lane) noexcept {
  const Cell* scratch = internal::ChunkOf(lane->table, internal::kScratchSlot);
  const uint32_t ranges = std::min((next_slot_ >> internal::kChunkBits) + 1, internal::kMaxRanges);
  for (uint32_t range = 1; range < ranges; ++range) {
    if (Cell* chunk = lane->table[range]; chunk != nullptr && chunk != scratch) {
      munmap(static_cast<void*>(chunk), kChunkBytes);
    }
  }
  munmap(lane->memory, lane->bytes);
}

}  // namespace abi_1
}  // namespace persia::metrics

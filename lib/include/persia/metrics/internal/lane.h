// The hot path: how a handle finds the memory that it writes to.
//
// A series owns consecutive 8-byte cells. The first one is named by a slot number, which is the same in every thread and, after
// a fork, in the child. A table maps slot >> kChunkBits to a chunk of kChunkCells cells. Each thread has its own table, its
// lane. One more, the common lane, belongs to the process.
//
// Invariants:
//   1. A lane's cell has one writer, the thread that holds the lane. So an increment is a relaxed load and a relaxed store:
//      no other store can occur between them. Relaxed is enough, since no other memory is ordered by a cell.
//   2. Only its own thread adds a chunk to a lane's table, so this thread reads it relaxed; other threads read it by ReadChunk.
//      Init, when it first requests an export, takes the chunks out again. `tls_lane` is never null. In a new thread, and in a
//      forked child, it points to a table of null chunks, which sends the first use to the slow path; the slow path claims a
//      lane. At the thread's end it points to another table of null chunks, which sends every later use to the slow path; that
//      one then uses the common lane.
//   3. The common lane's cells of a series exist before its handle does. They are changed by atomic operations only. The table
//      may have null chunks at any time (registry.h: series that wait), which send each use to the slow path.
//   4. Range 0 belongs to no segment. Handles that count nothing (refused, disabled, default-constructed) hold slot 0, and
//      write to a page that is never read. So the hot path does not test whether metrics are enabled.
//
// Not for users: names in namespace internal may change in any release. What is inlined into a program knows this layout, which
// the inline namespace names (lib/README.md, "Binary compatibility"): a change of the layout gives it the next number.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "persia/metrics/export.h"
#include "persia/metrics/internal/bits.h"

#if defined(__SANITIZE_THREAD__)
#define PERSIA_METRICS_UNDER_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERSIA_METRICS_UNDER_TSAN
#endif
#endif

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

inline constexpr unsigned kChunkBits = 9;
inline constexpr uint32_t kChunkCells = 1U << kChunkBits;  // 512 cells of 8 bytes: a page
inline constexpr uint32_t kMaxRanges = 16384;              // entries of a table

// A slot of range 0: see invariant 4.
inline constexpr uint32_t kScratchSlot = 0;

// A cell holds an integer or the bits of a double, depending on the series' kind.
using Cell = std::atomic<uint64_t>;
using Table = Cell*;  // an entry of a table: a chunk; null: not claimed

// The calling thread's lane. Initial-exec makes an access one load, in the shared library too, where it would be a call. A
// single pointer, since a library that dlopen loads gets little static TLS. `__thread`, since `thread_local` without C++20's
// constinit costs a call at each access.
extern PERSIA_METRICS_API __thread Table* tls_lane __attribute__((tls_model("initial-exec")));

// A table begins this many entries after the begin of a page. If the lower 12 bits of a load's address equal those of a
// preceding store, the processor delays the load (4K aliasing, which makes an increment up to 70 % slower). A table is loaded
// right after a cell is stored, so its first entries must not have the page offsets of the first cells, which a small job uses
// most.
inline constexpr uint32_t kTableShift = 384;

// The common lane's table. Gauges live there: a gauge has one cell per process.
extern PERSIA_METRICS_API Table common_lane_page[kTableShift + kMaxRanges];
inline constexpr Table* common_lane = common_lane_page + kTableShift;

// The chunk of `slot` in the calling thread's own lane. Relaxed: see invariant 2.
inline Cell* ChunkOf(const Table* table, uint32_t slot) noexcept {
  return __atomic_load_n(&table[slot >> kChunkBits], __ATOMIC_RELAXED);
}

// The chunk of `slot` in any lane. `order` is relaxed or acquire. A built-in, since std::atomic_ref forbids the owner's plain
// reads.
inline Cell* ReadChunk(Table* table, uint32_t slot, std::memory_order order) noexcept {
  return __atomic_load_n(&table[slot >> kChunkBits], order == std::memory_order_relaxed ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE);
}

inline Cell& CellIn(Cell* chunk, uint32_t slot) noexcept { return chunk[slot & (kChunkCells - 1)]; }

// Adds to a cell. REQUIRES: no other thread writes to it.
inline void AddTo(Cell& cell, uint64_t by) noexcept {
#if defined(__x86_64__) && !defined(PERSIA_METRICS_UNDER_TSAN)
  // One instruction instead of four. It needs no lock prefix: see invariant 1.
  asm("addq %1, %0" : "+m"(cell) : "er"(by) : "cc");
#else
  cell.store(cell.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
#endif
}

// The same for a cell that holds a double.
inline void AddDoubleTo(Cell& cell, double by) noexcept {
#if !defined(PERSIA_METRICS_UNDER_TSAN)
  // One load and one store, as those of the atomic. But g++ passes an atomic's bits through an integer register: two moves in a
  // chain for which the next addition to the same cell waits.
  using Shared __attribute__((may_alias)) = volatile double;
  Shared& sum = reinterpret_cast<Shared&>(cell);
  sum = sum + by;
#else
  cell.store(BitsOf(DoubleOf(cell.load(std::memory_order_relaxed)) + by), std::memory_order_relaxed);
#endif
}

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

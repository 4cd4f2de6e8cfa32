// The hot path: how a handle finds the memory that it writes to.
//
// A series owns a run of 8-byte cells, named by a slot number that is the same in every thread and, after a fork, in the
// child. A table maps slot >> kChunkBits to a chunk of kChunkCells cells. Each thread has a table of its own, its lane; one
// more, the common lane, belongs to the process.
//
// Invariants:
//   1. A lane's cell has one writer, the thread that holds the lane. So a relaxed load and a relaxed store make an
//      increment: no other store can come between. Relaxed is enough, since a cell orders nothing but itself.
//   2. Only its own thread changes a lane's table, so that it reads it as plain memory; others read it by ReadChunk. `tls_lane`
//      is never null. It starts at, and in a forked child returns to, a table of null chunks, which sends the
//      first touch to the slow path; that claims a lane. At the thread's end it is pointed at another table of null chunks,
//      which sends every later touch to the slow path, and that to the common lane.
//   3. The common lane's cells of a series exist before its handle does; they are changed by atomic read-modify-write only.
//   4. Range 0 belongs to no segment. Handles that count nothing (refused, disabled, default-made) hold slot 0, and write
//      to a page that nobody reads: this is why nothing here asks whether metrics are on.
//
// Not for users: what stands in namespace internal may change in any release.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "persia/metrics/export.h"

#if defined(__SANITIZE_THREAD__)
#define PERSIA_METRICS_UNDER_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERSIA_METRICS_UNDER_TSAN
#endif
#endif

namespace persia::metrics::internal {

inline constexpr unsigned kChunkBits = 9;
inline constexpr uint32_t kChunkCells = 1U << kChunkBits;  // 512 cells of 8 bytes: a page
inline constexpr uint32_t kMaxRanges = 16384;              // chunks that one lane can have

// A slot of range 0: see invariant 4.
inline constexpr uint32_t kScratchSlot = 0;

// A cell holds a whole number or the bits of a double; the series' kind tells which.
using Cell = std::atomic<uint64_t>;
using Table = Cell*;  // one entry of a table, each of a chunk; null: not claimed

// The calling thread's lane. Initial-exec: one load from the thread pointer instead of a call, also in the shared library.
// One pointer and no more, since static TLS is scarce for a library that is loaded by dlopen.
extern PERSIA_METRICS_API constinit thread_local Table* tls_lane __attribute__((tls_model("initial-exec")));

// So far behind a page's begin a table begins. A processor takes a load for one of what was just stored if the lower 12 bits of
// both addresses are the same, and waits (0.70 ns for 0.45 an increment, 9 for 3 a stream): so the entry of a chunk must not
// stand in its page where a small job's hot cells stand in theirs.
inline constexpr uint32_t kTableShift = 384;

// The common lane's table. Gauges live there: a gauge has one cell per process.
extern PERSIA_METRICS_API Table common_lane_page[kTableShift + kMaxRanges];
inline constexpr Table* common_lane = common_lane_page + kTableShift;

// Of a lane of the calling thread's own.
inline Cell* ChunkOf(const Table* table, uint32_t slot) noexcept { return table[slot >> kChunkBits]; }

// Of any lane, the common one too. `order`: relaxed or acquire. Built-ins, since an owner's plain read beside a
// std::atomic_ref is not allowed.
inline Cell* ReadChunk(Table* table, uint32_t slot, std::memory_order order) noexcept {
  return __atomic_load_n(&table[slot >> kChunkBits], order == std::memory_order_relaxed ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE);
}

inline Cell& CellIn(Cell* chunk, uint32_t slot) noexcept { return chunk[slot & (kChunkCells - 1)]; }

// Adds to a cell. REQUIRES: no other thread writes to it.
inline void AddTo(Cell& cell, uint64_t by) noexcept {
#if defined(__x86_64__) && !defined(PERSIA_METRICS_UNDER_TSAN)
  // One instruction, for the four that compilers make of the load and the store. It does not lock: see invariant 1.
  asm("addq %1, %0" : "+m"(cell) : "er"(by) : "cc");
#else
  cell.store(cell.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
#endif
}

}  // namespace persia::metrics::internal

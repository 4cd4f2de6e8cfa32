// How threads come by their lanes, what becomes of a lane when its thread ends, and what a fork does to all of it.

#include <pthread.h>
#include <sys/mman.h>

#include <new>

#include "registry.h"

namespace persia::metrics {
namespace internal {
namespace {

// Null chunks: every touch takes the slow path. A thread starts here, and one that has ended stands one place further, which is
// how the two are told apart. Never written, but not const: that would be 128 KiB of zeros in the file.
Table null_table[kMaxRanges + 1];
// Range 0 of the common lane, which nobody reads.
alignas(4096) Cell common_scratch[kChunkCells];

Table* const kUnclaimed = null_table;
Table* const kEnded = null_table + 1;

pthread_key_t thread_end_key;

}  // namespace

constinit thread_local Table* tls_lane __attribute__((tls_model("initial-exec"))) = null_table;
alignas(4096) Table common_lane_page[kTableShift + kMaxRanges];

}  // namespace internal

using internal::Cell;
using internal::Table;

namespace {

// Release: pairs with the acquire of who reads another thread's lane, or the common one. Gauge::Set reads relaxed: its handle,
// which was given to it after this, is the older news.
void SetChunk(Table* table, uint32_t range, Cell* chunk) { __atomic_store_n(&table[range], chunk, __ATOMIC_RELEASE); }

}  // namespace

Registry::Registry() noexcept : thread_ends_are_seen_(ListenForThreadEnds()) {
  pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild);
}

// A key's destructor rather than a thread_local object's: it needs no static TLS, and it runs after the destructors of all
// thread_local objects, so that what they count goes into the lane.
bool Registry::ListenForThreadEnds() noexcept { return pthread_key_create(&internal::thread_end_key, &OnThreadEnd) == 0; }

Cell* Registry::ClaimChunk(uint32_t slot) noexcept {
  Table* table = internal::tls_lane;
  if (table == internal::kEnded || !thread_ends_are_seen_) {
    return nullptr;
  }
  if (chunks_refused_.load(std::memory_order_relaxed) > 0 &&
      chunks_refused_.fetch_add(1, std::memory_order_relaxed) % kRetryEvery != 0) {
    return nullptr;
  }
  MutexLock lock(mutex_);
  if (table == internal::kUnclaimed) {
    Lane* lane = AcquireLane();
    if (lane == nullptr) {
      return nullptr;
    }
    if (pthread_setspecific(internal::thread_end_key, lane) != 0) {
      lane->next_free = free_lanes_;
      free_lanes_ = lane;
      return nullptr;
    }
    table = internal::tls_lane = lane->table;
  }
  if (Cell* chunk = internal::ChunkOf(table, slot)) {
    return chunk;  // scratch, or claimed by the lane's former thread
  }
  const auto* lane = static_cast<const Lane*>(pthread_getspecific(internal::thread_end_key));
  const uint32_t range = slot >> internal::kChunkBits;
  // A forked child opens its segment at its first touch.
  Cell* chunk = Open() ? writer_.AddChunk(lane->id, range) : internal::ChunkOf(table, internal::kScratchSlot);
  if (chunk == nullptr) {
    chunks_refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  chunks_refused_.store(0, std::memory_order_relaxed);
  SetChunk(table, range, chunk);
  return chunk;
}

Cell* Registry::CommonChunk(uint32_t slot) noexcept {
  if (Cell* chunk = internal::ReadChunk(internal::common_lane, slot, std::memory_order_acquire)) {
    return chunk;
  }
  MutexLock lock(mutex_);
  EnsureCommonChunk(0);
  if (slot != internal::kScratchSlot) {
    Open();
  }
  Cell* chunk = internal::ChunkOf(internal::common_lane, slot);
  // A forked child that could not make its segment whole: what it counts is not exported.
  return chunk != nullptr ? chunk : internal::common_scratch;
}

bool Registry::EnsureCommonChunk(uint32_t range) {
  SetChunk(internal::common_lane, 0, internal::common_scratch);
  if (internal::common_lane[range] == nullptr) {
    Cell* chunk = writer_.AddChunk(0, range);
    if (chunk == nullptr) {
      return false;
    }
    SetChunk(internal::common_lane, range, chunk);
  }
  return true;
}

Registry::Lane* Registry::AcquireLane() {
  if (free_lanes_ != nullptr) {
    Lane* lane = free_lanes_;
    free_lanes_ = lane->next_free;
    return lane;
  }
  // Touched are three pages of it: the table's first, the one with the struct, and scratch.
  constexpr size_t kTableAt = internal::kTableShift * sizeof(Table);
  constexpr size_t kLaneAt = kTableAt + internal::kMaxRanges * sizeof(Table);
  constexpr size_t kScratchAt = (kLaneAt + sizeof(Lane) + 4095) / 4096 * 4096;
  constexpr size_t kBytes = kScratchAt + internal::kChunkCells * sizeof(Cell);
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  auto* bytes = static_cast<std::byte*>(memory);
  auto* table = reinterpret_cast<Table*>(bytes + kTableAt);
  SetChunk(table, 0, reinterpret_cast<Cell*>(bytes + kScratchAt));
  all_lanes_ = new (bytes + kLaneAt) Lane{table, next_lane_++, nullptr, all_lanes_, memory, kBytes};
  return all_lanes_;
}

// The lane keeps its values, and the next thread goes on adding to them: sums commute, so there is nothing to fold.
void Registry::ReleaseLane(Lane* lane) {
  MutexLock lock(mutex_);
  lane->next_free = free_lanes_;
  free_lanes_ = lane;
}

void Registry::OnThreadEnd(void* lane) {
  internal::tls_lane = internal::kEnded;
  Get().ReleaseLane(static_cast<Lane*>(lane));
}

void Registry::BeforeFork() { Get().mutex_.Lock(); }

void Registry::AfterForkInParent() { Get().mutex_.Unlock(); }

void Registry::AfterForkInChild() {
  Registry& registry = Get();
  registry.ResetAfterFork();
  registry.mutex_.Unlock();
}

// The child has one thread, no segment (the parent's is not mapped here), and the handles, which hold slots and not addresses.
void Registry::ResetAfterFork() {
  if (internal::tls_lane != internal::kEnded) {
    internal::tls_lane = internal::kUnclaimed;
    pthread_setspecific(internal::thread_end_key, nullptr);
  }
  for (uint32_t range = 0; range <= next_slot_ >> internal::kChunkBits && range < internal::kMaxRanges; ++range) {
    SetChunk(internal::common_lane, range, nullptr);
  }
  while (all_lanes_ != nullptr) {
    Lane* lane = all_lanes_;
    all_lanes_ = lane->next;
    munmap(lane->memory, lane->bytes);
  }
  free_lanes_ = nullptr;
  next_lane_ = 1;
  writer_.ForgetAfterFork();
  ring_.store(nullptr, std::memory_order_relaxed);
  open_.store(false, std::memory_order_relaxed);
  series_refused_.store(0, std::memory_order_relaxed);
  chunks_refused_.store(0, std::memory_order_relaxed);
  state_ = State::kUnopened;
}

}  // namespace persia::metrics

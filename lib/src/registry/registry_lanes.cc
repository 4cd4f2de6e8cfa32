// Threads claim and release lanes; a fork resets the child's.

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>

#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {
namespace {

// Null chunks, which send every use to the slow path. A new thread points to the first entry, an ended one to the second, so
// the slow path can distinguish them. Never written, but not const: that would put 128 KiB of zeros in the file.
Table null_table[kMaxRanges + 1];
Table* const kUnclaimed = null_table;
Table* const kEnded = null_table + 1;

pthread_key_t thread_end_key;

}  // namespace

__thread Table* tls_lane __attribute__((tls_model("initial-exec"))) = null_table;
alignas(4096) Table common_lane_page[kTableShift + kMaxRanges];
Table waiting_lane[kMaxRanges];
Table base_lane[kMaxRanges];
alignas(4096) Cell common_scratch[kChunkCells];

}  // namespace internal

using internal::Cell;
using internal::ReadChunk;
using internal::SetChunk;
using internal::Table;

namespace {

alignas(Registry) std::byte storage[sizeof(Registry)];

// Threads hold pointers into the module that contains the library, so it is never unloaded. A shared library is linked with
// `-z nodelete`; this is for the static library in a plugin. A program that is linked statically as a whole cannot be unloaded
// and may lack these functions, so they are weak; the linker warns about `dlopen` in it even so, so that is found by its name.
#pragma weak dladdr1
#pragma weak dlsym

void PinThisModule() {
  if (&dladdr1 == nullptr || &dlsym == nullptr) return;
  Dl_info info;
  void* found = nullptr;
  if (dladdr1(&storage, &info, &found, RTLD_DL_LINKMAP) == 0) return;
  const char* name = static_cast<const link_map*>(found)->l_name;
  auto* open = reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_DEFAULT, "dlopen"));
  if (*name != '\0' && open != nullptr)  // the main program's is empty
    open(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void LockBeforeFork() PERSIA_THREAD_ATTRIBUTE(no_thread_safety_analysis) {
  for (Mutex& mutex : internal::fork_locks) mutex.Lock();
}

void UnlockAfterFork() PERSIA_THREAD_ATTRIBUTE(no_thread_safety_analysis) {
  for (Mutex& mutex : internal::fork_locks) mutex.Unlock();
}

}  // namespace

// When the library is loaded, before any other of its functions can run: a function-local static would be made under a lock
// that a fork by another thread leaves locked in the child.
[[gnu::constructor(101)]] void OnLoad() { Registry::MakeAtLoad(); }

void Registry::MakeAtLoad() noexcept {
  new (storage) Registry();
  pthread_atfork(&LockBeforeFork, &UnlockAfterFork, &AfterForkInChild);
  PinThisModule();
}

Registry& Registry::Get() noexcept { return *std::launder(reinterpret_cast<Registry*>(storage)); }

// A pthread key instead of a thread_local object: it needs no static TLS, and its destructor runs after those of all
// thread_local objects, so that these still record in the lane.
Registry::Registry() noexcept
    : thread_ends_are_seen_(pthread_key_create(&internal::thread_end_key, &OnThreadEnd) == 0),
      mutex_(MutexOf(ForkLock::kRegistry)),
      waiting_mutex_(MutexOf(ForkLock::kWaitingCells)) {
  SetChunk(internal::common_lane, internal::kScratchSlot, internal::common_scratch);
}

Cell* Registry::ClaimChunk(uint32_t slot) noexcept try {
  Table* table = internal::tls_lane;
  if (table == internal::kEnded || !thread_ends_are_seen_ || IsShort()) return nullptr;
  MutexLock lock(mutex_);
  if (table == internal::kUnclaimed) {
    Lane* lane = AcquireLane();
    if (lane == nullptr) {
      TryLater();
      return nullptr;
    }
    if (pthread_setspecific(internal::thread_end_key, lane) != 0) {
      lane->next_free = free_lanes_;
      free_lanes_ = lane;
      return nullptr;
    }
    table = internal::tls_lane = lane->table;
  }
  if (Cell* chunk = internal::ChunkOf(table, slot)) return chunk;  // the scratch page, or claimed by the lane's former thread
  // A forked child opens its segment at its first use of a metric.
  const bool enabled = Open();
  const auto* lane = static_cast<const Lane*>(pthread_getspecific(internal::thread_end_key));
  const uint32_t range = slot >> internal::kChunkBits;
  Cell* chunk = enabled ? NewLaneChunk(lane->id, range) : internal::ChunkOf(table, internal::kScratchSlot);
  if (chunk != nullptr) SetChunk(table, range, chunk);
  return chunk;
} catch (const std::bad_alloc&) {
  return nullptr;
}

Cell* Registry::CommonChunk(uint32_t slot, bool* locked) noexcept {
  const uint32_t range = slot >> internal::kChunkBits;
  OpenIfUnopened();
  IsShort();
  waiting_mutex_.Lock();
  Cell* chunk = ReadChunk(internal::common_lane, slot, std::memory_order_acquire);  // it may just have moved there
  if (chunk == nullptr && known_disabled()) SetChunk(internal::common_lane, range, chunk = internal::common_scratch);
  if (chunk == nullptr) {
    chunk = ReadChunk(internal::waiting_lane, slot, std::memory_order_acquire);
    *locked = chunk != nullptr;
  }
  if (!*locked) waiting_mutex_.Unlock();
  // Null if a forked child found no memory: its values are not exported.
  return chunk != nullptr ? chunk : internal::common_scratch;
}

Registry::Lane* Registry::NewLane(uint32_t id) noexcept {
  // Only three pages are touched at first: the begin of the table, the Lane, and the scratch page.
  constexpr size_t kTableAt = internal::kTableShift * sizeof(Table);
  constexpr size_t kLaneAt = kTableAt + internal::kMaxRanges * sizeof(Table);
  constexpr size_t kScratchAt = (kLaneAt + sizeof(Lane) + 4095) / 4096 * 4096;
  constexpr size_t kBytes = kScratchAt + internal::kChunkCells * sizeof(Cell);
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* bytes = static_cast<std::byte*>(memory);
  auto* table = reinterpret_cast<Table*>(bytes + kTableAt);
  SetChunk(table, 0, reinterpret_cast<Cell*>(bytes + kScratchAt));
  return new (bytes + kLaneAt) Lane{table, id, nullptr, nullptr, memory, kBytes};
}

Registry::Lane* Registry::AcquireLane() {
  if (free_lanes_ != nullptr) {
    Lane* lane = free_lanes_;
    free_lanes_ = lane->next_free;
    return lane;
  }
  Lane* lane = NewLane(next_lane_);
  if (lane == nullptr) return nullptr;
  ++next_lane_;
  lane->next = all_lanes_.load(std::memory_order_relaxed);
  // Pairs with the acquire in ForEachLane: a thread that reads the pointer sees the lane.
  all_lanes_.store(lane, std::memory_order_release);
  return lane;
}

// The lane keeps its values, and its next thread adds to them: a sum does not depend on the order.
void Registry::ReleaseLane(Lane* lane) {
  MutexLock lock(mutex_);
  lane->next_free = free_lanes_;
  free_lanes_ = lane;
}

void Registry::OnThreadEnd(void* lane) {
  internal::tls_lane = internal::kEnded;
  Get().ReleaseLane(static_cast<Lane*>(lane));
}

void Registry::AfterForkInChild() {
  Get().ResetAfterFork();
  UnlockAfterFork();
}

// The child has one thread and no segment, since the parent's is not mapped here. Its handles stay valid: they hold slots, not
// addresses.
void Registry::ResetAfterFork() {
  if (internal::tls_lane != internal::kEnded) {
    internal::tls_lane = internal::kUnclaimed;
    pthread_setspecific(internal::thread_end_key, nullptr);
  }
  identity_.forked = identity_.forked || state_ == State::kExporting;
  uint32_t chunks = 0;
  for (uint32_t range = 1; range <= next_slot_ >> internal::kChunkBits && range < internal::kMaxRanges; ++range) {
    chunks += HasCommonChunk(range) ? 1 : 0;
    SetChunk(internal::common_lane, range, nullptr);
    SetChunk(internal::waiting_lane, range, nullptr);
    SetChunk(internal::base_lane, range, nullptr);
  }
  for (Lane* lane = all_lanes_.exchange(nullptr, std::memory_order_relaxed); lane != nullptr;) {
    Lane* next = lane->next;
    munmap(lane->memory, lane->bytes);
    lane = next;
  }
  free_lanes_ = nullptr;
  next_lane_ = 1;
  private_.ForgetAfterFork();
  writer_.ForgetAfterFork(chunks);
  if (private_ring_.slots != nullptr) munmap(private_ring_.slots, writer_.ring_slots() * sizeof(segment::EventSlot));
  private_ring_ = {};
  ring_.store(nullptr, std::memory_order_relaxed);
  events_before_file_.store(0, std::memory_order_relaxed);
  for (auto& count : dropped_before_file_) count.store(0, std::memory_order_relaxed);
  families_published_ = series_published_ = 0;
  identity_waits_ = waits_ = false;
  retry_at_.store(0, std::memory_order_relaxed);
  open_.store(false, std::memory_order_relaxed);
  state_ = State::kUnopened;
}

}  // namespace abi_1
}  // namespace persia::metrics

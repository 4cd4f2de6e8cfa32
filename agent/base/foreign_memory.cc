#include "base/foreign_memory.h"

#include <malloc.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

namespace persia::agent {
namespace {

// Relaxed: a count, which orders nothing.
std::atomic<int64_t> limit{ForeignShare::kDefaultLimit};
std::atomic<int64_t> taken{0};  // by all shares

constinit thread_local ForeignShare* counting = nullptr;

constexpr size_t kStackBytes = 1 << 20;

}  // namespace

ForeignShare::~ForeignShare() { taken.fetch_sub(bytes_, std::memory_order_relaxed); }

void ForeignShare::Set(uint64_t bytes) {
  const int64_t before = std::exchange(bytes_, static_cast<int64_t>(bytes));
  taken.fetch_add(bytes_ - before, std::memory_order_relaxed);
}

void ForeignShare::SetLimit(uint64_t bytes) { limit.store(static_cast<int64_t>(bytes), std::memory_order_relaxed); }

uint64_t ForeignShare::Limit() { return static_cast<uint64_t>(limit.load(std::memory_order_relaxed)); }

bool ForeignShare::Count(int64_t bytes) noexcept {
  if (counting == nullptr) return true;
  bytes *= counting->weight_;
  counting->bytes_ += bytes;
  return taken.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit.load(std::memory_order_relaxed);
}

ForeignShare::Counting::Counting(ForeignShare* share) { counting = share; }
ForeignShare::Counting::~Counting() { counting = nullptr; }

Error ForeignShare::Refuse(std::string_view what, int64_t before) {
  counting = nullptr;
  taken.fetch_sub(bytes_ - before, std::memory_order_relaxed);
  bytes_ = before;
  return {std::string(what) + " does not fit into the memory for what others have written, " + std::to_string(Limit()) +
          " bytes; remove it, or raise max_foreign_bytes"};
}

void SetUpHeap() {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // and no longer one that grows
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

void ReturnFreeMemory() { malloc_trim(0); }

}  // namespace persia::agent

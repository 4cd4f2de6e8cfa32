#include "failing_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> armed = false;
std::atomic<bool> has_failed = false;
std::atomic<long> calls_left = 0;

void* Allocate(size_t size) {
  if (armed.load(std::memory_order_relaxed) && calls_left.fetch_sub(1, std::memory_order_relaxed) == 0) {
    armed = false;
    has_failed = true;
    throw std::bad_alloc();
  }
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

// The array and nothrow forms call these.
void* operator new(size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace persia::metrics::tests {

void FailAllocationAfter(long calls) {
  calls_left = calls;
  armed = calls >= 0;
}

bool AllocationHasFailed() { return has_failed; }

}  // namespace persia::metrics::tests

#include "out_of_memory.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace persia::metrics::tests {

thread_local int allocations_left = kAnyNumberOfAllocations;

}  // namespace persia::metrics::tests

void* operator new(size_t bytes) {
  int& left = persia::metrics::tests::allocations_left;
  if (left == 0) {
    throw std::bad_alloc();
  }
  left -= left > 0 ? 1 : 0;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) {
    return memory;
  }
  throw std::bad_alloc();
}

// By itself, since a sanitizer has its own otherwise, whose memory is not free's to take.
void* operator new(size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

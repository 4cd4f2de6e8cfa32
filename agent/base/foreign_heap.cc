// Replaces operator new and delete, so that ForeignShare counts what its calls allocate. Linked to the agent alone: programs of
// tests replace them, too.
//
// The forms for arrays call these. Those for over-aligned types do not: the agent has none. The one that does not throw is a
// sanitizer's own otherwise, whose memory is not free's to take.
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/foreign_memory.h"

namespace {

bool Count(void* memory, int64_t sign) {
  return persia::agent::ForeignShare::Count(sign * static_cast<int64_t>(malloc_usable_size(memory)));
}

void Free(void* memory) noexcept {
  Count(memory, -1);
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) {
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory != nullptr && Count(memory, 1)) return memory;
  Free(memory);
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { Free(memory); }

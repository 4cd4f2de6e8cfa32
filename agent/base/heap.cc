#include "base/heap.h"

#include <malloc.h>

namespace persia::agent {

void SetUpHeap() {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // and no longer one that grows
}

void ReturnFreeMemory() { malloc_trim(0); }

}  // namespace persia::agent

#include "base/heap.h"

#include <malloc.h>
#include <pthread.h>

#include <cstddef>

namespace persia::agent {
namespace {

constexpr size_t kStackBytes = 1 << 20;

}  // namespace

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

// What the compiler calls in sources that are compiled with -fsanitize=thread, in place of the sanitizer's runtime: before each
// plain access, and for each atomic operation. The names and types are those of GCC and clang.

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "reader_memory.h"
#include "recorder.h"
#include "threads.h"

namespace persia::litmus {
namespace {

Recorder& recorder() { return Recorder::Get(); }

void Plain(const volatile void* address, size_t bytes, bool write) {
  if (!IsRecorded()) return;
  const Unrecorded own;
  recorder().Plain(address, bytes, write);
}

template <class T>
T LoadFrom(const volatile T* from, int order) {
  if (ReaderMemory* reader = ReaderMemory::Of(from)) return static_cast<T>(reader->Load(from, order));
  if (!IsRecorded()) return __atomic_load_n(from, __ATOMIC_SEQ_CST);
  const Unrecorded own;
  recorder().Before();
  return static_cast<T>(recorder().Load(from, sizeof(T), __atomic_load_n(from, __ATOMIC_SEQ_CST), order));
}

template <class T>
void StoreTo(volatile T* to, T value, int order) {
  if (IsRecorded()) {
    const Unrecorded own;
    recorder().Before();
    recorder().Store(to, sizeof(T), __atomic_load_n(to, __ATOMIC_SEQ_CST), value, order);
  }
  __atomic_store_n(to, value, __ATOMIC_SEQ_CST);
}

// Replaces the value by `change(value)`, and returns the former one.
template <class T, class Change>
T Update(volatile T* at, int order, const Change& change) {
  const bool is_recorded = IsRecorded();
  const Unrecorded own;
  if (is_recorded) recorder().Before();
  T before = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(at, &before, change(before), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  if (is_recorded) recorder().Update(at, sizeof(T), before, change(before), order);
  return before;
}

// A failed exchange loads the newest value. Older ones are not tried.
template <class T>
bool Exchange(volatile T* at, T* expected, T value, int order, int order_of_failure) {
  const bool is_recorded = IsRecorded();
  const Unrecorded own;
  if (is_recorded) recorder().Before();
  const T before = *expected;
  const bool done = __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  if (!is_recorded) return done;
  if (done) {
    recorder().Update(at, sizeof(T), before, value, order);
  } else {
    recorder().LoadNewest(at, sizeof(T), *expected, order_of_failure);
  }
  return done;
}

}  // namespace
}  // namespace persia::litmus

// NOLINTBEGIN(bugprone-reserved-identifier): the compiler's names.
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void* /*from*/) {}
void __tsan_func_exit() {}

#define PERSIA_PLAIN(bytes)                                                                          \
  void __tsan_read##bytes(void* address) { persia::litmus::Plain(address, bytes, false); }           \
  void __tsan_write##bytes(void* address) { persia::litmus::Plain(address, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* address) { persia::litmus::Plain(address, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* address) { persia::litmus::Plain(address, bytes, true); } \
  void __tsan_read_write##bytes(void* address) { persia::litmus::Plain(address, bytes, true); }      \
  void __tsan_unaligned_read_write##bytes(void* address) { persia::litmus::Plain(address, bytes, true); }
PERSIA_PLAIN(1)
PERSIA_PLAIN(2)
PERSIA_PLAIN(4)
PERSIA_PLAIN(8)
PERSIA_PLAIN(16)
#undef PERSIA_PLAIN

void __tsan_read_range(void* address, size_t bytes) { persia::litmus::Plain(address, bytes, false); }
void __tsan_write_range(void* address, size_t bytes) { persia::litmus::Plain(address, bytes, true); }
void __tsan_vptr_read(void** address) { persia::litmus::Plain(address, sizeof *address, false); }
void __tsan_vptr_update(void** address, void* /*value*/) { persia::litmus::Plain(address, sizeof *address, true); }

#define PERSIA_ATOMIC(bits)                                                                                                    \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* from, int order) {                                  \
    return persia::litmus::LoadFrom(from, order);                                                                              \
  }                                                                                                                            \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* to, uint##bits##_t value, int order) {                             \
    persia::litmus::StoreTo(to, value, order);                                                                                 \
  }                                                                                                                            \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* at, uint##bits##_t value, int order) {                \
    return persia::litmus::Update(at, order, [value](uint##bits##_t) { return value; });                                       \
  }                                                                                                                            \
  uint##bits##_t __tsan_atomic##bits##_fetch_add(volatile uint##bits##_t* at, uint##bits##_t by, int order) {                  \
    return persia::litmus::Update(at, order, [by](uint##bits##_t v) { return static_cast<uint##bits##_t>(v + by); });          \
  }                                                                                                                            \
  uint##bits##_t __tsan_atomic##bits##_fetch_sub(volatile uint##bits##_t* at, uint##bits##_t by, int order) {                  \
    return persia::litmus::Update(at, order, [by](uint##bits##_t v) { return static_cast<uint##bits##_t>(v - by); });          \
  }                                                                                                                            \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t* at, uint##bits##_t* expected,                     \
                                                    uint##bits##_t value, int order, int failure) {                            \
    return persia::litmus::Exchange(at, expected, value, order, failure) ? 1 : 0;                                              \
  }                                                                                                                            \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile uint##bits##_t* at, uint##bits##_t* expected, uint##bits##_t value, \
                                                  int order, int failure) {                                                    \
    return persia::litmus::Exchange(at, expected, value, order, failure) ? 1 : 0;                                              \
  }                                                                                                                            \
  uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile uint##bits##_t* at, uint##bits##_t expected,              \
                                                            uint##bits##_t value, int order, int failure) {                    \
    persia::litmus::Exchange(at, &expected, value, order, failure);                                                            \
    return expected;                                                                                                           \
  }
PERSIA_ATOMIC(8)
PERSIA_ATOMIC(16)
PERSIA_ATOMIC(32)
PERSIA_ATOMIC(64)
#undef PERSIA_ATOMIC

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

// While a program is recorded, freed memory is not used again: what two objects at one address did would look like a race.
void operator delete(void* memory) noexcept {
  if (!persia::litmus::IsRecorded()) std::free(memory);
}
void operator delete(void* memory, size_t /*bytes*/) noexcept { operator delete(memory); }
void* operator new(size_t bytes) {
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

#include "segment_loads.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace persia::agent::model {
namespace {

constinit thread_local const std::function<void()>* before_load = nullptr;

void Tell() {
  if (before_load != nullptr) (*before_load)();
}

}  // namespace

SegmentLoads::SegmentLoads(std::function<void()> before) : before_(std::move(before)) { before_load = &before_; }

SegmentLoads::~SegmentLoads() { before_load = nullptr; }

// GuardedCopy and GuardedCopyInOrder, by the linker's names: the caller's goes here, and from here to the real one.
#define PERSIA_COPY(name, mangled)                                                       \
  bool Real##name(const std::byte* from, std::span<uint64_t> to) asm("__real_" mangled); \
  bool Wrap##name(const std::byte* from, std::span<uint64_t> to) asm("__wrap_" mangled); \
  bool Wrap##name(const std::byte* from, std::span<uint64_t> to) {                       \
    Tell();                                                                              \
    return Real##name(from, to);                                                         \
  }
PERSIA_COPY(Copy, "_ZN6persia5agent11GuardedCopyEPKSt4byteSt4spanImLm18446744073709551615EE")
PERSIA_COPY(CopyInOrder, "_ZN6persia5agent18GuardedCopyInOrderEPKSt4byteSt4spanImLm18446744073709551615EE")
#undef PERSIA_COPY

}  // namespace persia::agent::model

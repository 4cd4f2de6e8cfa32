#include "exit_mark.h"

#include <link.h>

#include <cstdlib>

#include "persia/metrics/internal/process.h"
#include "segment_format.h"

// Of the program or library that this code is linked into; null in a static program.
extern __attribute__((weak)) ElfW(Dyn) _DYNAMIC[];

namespace persia::metrics {
inline namespace abi_1 {
namespace {

// Relaxed: the page is mapped before the pointer is stored, and is never unmapped.
constinit std::atomic<std::atomic<uint64_t>*> exit_mark = nullptr;

// The lock that a reader finds released orders the mark for it: release is for readers of a living process.
void Mark(uint64_t value) {
  std::atomic<uint64_t>* const mark = exit_mark.load(std::memory_order_relaxed);
  if (mark != nullptr) mark->store(value, std::memory_order_release);
}

// Eight bits, as the parent gets them.
void MarkCode(int code) { Mark(segment::kExitCode + (static_cast<unsigned>(code) & 0xff)); }

#ifdef __GLIBC__
void OnExit(int code, void* /*unused*/) { MarkCode(code); }

// A handler of on_exit is called even if its library was unloaded, which must not happen then. Programs have DT_DEBUG.
bool IsNeverUnloaded() {
  if (&_DYNAMIC == nullptr) return true;
  for (const ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_DEBUG || (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE) != 0)) return true;
  return false;
}
#endif

bool Register() {
#ifdef __GLIBC__
  if (IsNeverUnloaded()) return on_exit(&OnExit, nullptr) == 0;
#endif
  return std::atexit([] { Mark(segment::kExitOfUnknownCode); }) == 0;
}

}  // namespace

void MarkExitIn(std::atomic<uint64_t>* mark) noexcept {
  exit_mark.store(mark, std::memory_order_relaxed);
  // A forked child has its parent's handlers.
  static const bool registered = Register();
  static_cast<void>(registered);  // else the process's end is not known to be normal
}

void ForgetExitMark() noexcept { exit_mark.store(nullptr, std::memory_order_relaxed); }

void internal::MarkExit(int code) noexcept { MarkCode(code); }

}  // namespace abi_1
}  // namespace persia::metrics

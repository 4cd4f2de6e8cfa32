// The library's mutexes, listed in the order in which a thread takes them: a thread that holds one takes only later ones.
//
// One set of fork handlers (registry_lanes.cc) takes all of them in this order before a fork, and unlocks them after it in
// parent and child. So no fork deadlocks, for any order of first uses of the library's parts, and a child finds no mutex
// locked.
#pragma once

#include <array>
#include <cstddef>

#include "thread_annotations.h"

namespace persia::metrics {
inline namespace abi_1 {

enum class ForkLock : size_t {
  kHandlesInC,
  kMetricHandlers,
  kEventHandlers,
  kEmit,
  kCallbacks,
  kInfo,
  kRegistry,
  kWaitingCells,
  kLog,
  kCount
};

namespace internal {
inline constinit std::array<Mutex, static_cast<size_t>(ForkLock::kCount)> fork_locks;
}

inline Mutex& MutexOf(ForkLock lock) { return internal::fork_locks[static_cast<size_t>(lock)]; }

}  // namespace abi_1
}  // namespace persia::metrics

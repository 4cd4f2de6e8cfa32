// The functions of gauges and counters, and the threads that call them.
//
// Thread safety: any function, from any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "persia/metrics/instruments.h"

namespace persia::metrics {
inline namespace abi_1 {

// What a function's value is applied to. `apply` takes each value, `withdraw` is called while there is none. Neither throws.
struct CallbackTarget {
  uint32_t slot;
  std::function<void(double)> apply;
  std::function<void()> withdraw;
};

// Calls `function` once a period from now on, instead of the target's former one. An empty function removes it. Returns when
// the former one does not run any more.
void SetCallback(CallbackTarget target, std::function<double()> function) noexcept;
// The same with an empty function, of a target whose value is not taken away.
void EndCallback(uint32_t slot) noexcept;

// Calls no function any more, and takes no new ones: at exit. Waits for a running one, at most a second.
void StopCallbacks() noexcept;

}  // namespace abi_1
}  // namespace persia::metrics

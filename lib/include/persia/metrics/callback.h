// The thread that calls the functions of gauges and counters (Gauge::SetFunction and Counter::SetFunction in instruments.h).
//
// The library starts it with the first function, and calls all functions one after another, once a period. It blocks all
// signals. A function that takes longer than a second is not waited for: its gauge has no value until it returns, which is
// logged once, and the other functions are called by another thread; at most eight functions can hang so. A function that
// throws has no value either. No function is called after exit() begins, except that exit() waits for a running one, at most a
// second. A forked child has no functions; it sets its own.
#pragma once

#include <chrono>

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {

// Sets the time between two calls of each function: 10 milliseconds to a day, by default 5 seconds. Thread safety: any thread.
PERSIA_METRICS_API void SetCallbackPeriod(std::chrono::milliseconds period) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics

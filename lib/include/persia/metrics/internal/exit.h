// For bindings to other languages. Not for users.
#pragma once

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

// Marks the process's segment as left by a normal exit with `code`. The library does so itself when exit() runs; this is for a
// process that ends by _exit on purpose. Without a segment it does nothing. Any thread.
PERSIA_METRICS_API void MarkExit(int code) noexcept;

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

// For the parts of the library that use only its public API. Not for users.
#pragma once

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

// Counts a measurement as dropped since memory ran out. Any thread.
PERSIA_METRICS_API void CountOutOfMemory() noexcept;

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

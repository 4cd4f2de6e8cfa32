// For bindings to other languages. Not for users.
#pragma once

#include <cstdint>

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

// The process has this rank in its group of several processes. It counts as docs/ranks.md describes. Any thread.
PERSIA_METRICS_API void SetProcessGroupRank(int32_t rank) noexcept;

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

// For bindings to other languages. Not for users.
#pragma once

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

// Sets the language in the segment's writer record; the default is "c++". `language` must stay valid until the process ends.
// REQUIRES: no metric was made yet.
PERSIA_METRICS_API void SetLanguage(const char* language) noexcept;

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

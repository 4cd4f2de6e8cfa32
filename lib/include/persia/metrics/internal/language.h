// For bindings to other languages. Not for users.
#pragma once

#include "persia/metrics/export.h"

namespace persia::metrics::internal {

// What the segment's writer record says of who writes it, "c++" unless a binding says otherwise. `language` must outlive the
// process's metrics. REQUIRES: no metric of this copy of the library was made yet.
PERSIA_METRICS_API void SetLanguage(const char* language) noexcept;

}  // namespace persia::metrics::internal

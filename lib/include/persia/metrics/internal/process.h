// The process as a whole: for bindings to other languages, and for the parts of the library that use only its public API. Not
// for users.
//
// Thread safety: any function, from any thread.
#pragma once

#include <cstdint>

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

// Marks the process's segment as left by a normal exit with `code`. The library does so itself when exit() runs; this is for a
// process that ends by _exit on purpose. Without a segment it does nothing.
PERSIA_METRICS_API void MarkExit(int code) noexcept;

// Sets the language in the segment's writer record; the default is "c++". `language` must stay valid until the process ends.
// REQUIRES: no metric was made yet.
PERSIA_METRICS_API void SetLanguage(const char* language) noexcept;

// The process has this rank in its group of several processes. It counts as docs/ranks.md describes.
PERSIA_METRICS_API void SetProcessGroupRank(int32_t rank) noexcept;

// Counts a measurement as dropped since memory ran out.
PERSIA_METRICS_API void CountOutOfMemory() noexcept;

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

// Where the library's own log lines go.
//
//   persia::metrics::SetLogHandler([](std::string_view line) { LOG(WARNING) << line; });
//
// By default each line is written to stderr. The library logs each problem once.
#pragma once

#include <functional>
#include <string_view>

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {

// Receives one line, without `persia-metrics: ` and the newline, in the thread that logs it.
using LogHandler = std::function<void(std::string_view line)>;

// Passes the library's log lines to `handler` instead of stderr. An empty `handler` restores stderr. A handler may be called by
// several threads at once, and while the library holds a lock: it must not use this library. If it throws, or memory runs out,
// the line is written to stderr. If memory runs out here, nothing changes.
// Thread safety: any thread. The former handler may still run in other threads when this returns.
PERSIA_METRICS_API void SetLogHandler(LogHandler handler) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics

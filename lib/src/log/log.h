// The library's log: at most one line for each problem, on stderr or to the program's handler (persia/metrics/log.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace persia::metrics {
inline namespace abi_1 {

// Logs the parts as one line. On stderr it is `persia-metrics: <parts>` and a newline, in one system call, without allocating;
// failures are ignored. REQUIRES: at most kMaxLogParts parts.
inline constexpr size_t kMaxLogParts = 14;
void LogLine(std::initializer_list<std::string_view> parts) noexcept;
inline void LogLine(std::string_view text) noexcept { LogLine({text}); }

// Writes the line if `logged` is not set, and sets it.
void LogLineOnce(std::atomic<bool>& logged, std::initializer_list<std::string_view> parts) noexcept;
inline void LogLineOnce(std::atomic<bool>& logged, std::string_view text) noexcept { LogLineOnce(logged, {text}); }

}  // namespace abi_1
}  // namespace persia::metrics

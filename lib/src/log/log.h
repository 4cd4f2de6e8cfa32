// The library's log: at most one line on stderr for each problem.
#pragma once

#include <atomic>
#include <initializer_list>
#include <string_view>

namespace persia::metrics {

// Writes `persia-metrics: <parts>` and a newline to stderr in one system call, without allocating. Failures are ignored.
// REQUIRES: at most kMaxLogParts parts.
inline constexpr size_t kMaxLogParts = 10;
void LogLine(std::initializer_list<std::string_view> parts) noexcept;
inline void LogLine(std::string_view text) noexcept { LogLine({text}); }

// Writes the line if `logged` is not set, and sets it.
void LogLineOnce(std::atomic<bool>& logged, std::initializer_list<std::string_view> parts) noexcept;
inline void LogLineOnce(std::atomic<bool>& logged, std::string_view text) noexcept { LogLineOnce(logged, {text}); }

}  // namespace persia::metrics

// What the library says on stderr: at most one line about one problem.
#pragma once

#include <atomic>
#include <string_view>

namespace persia::metrics {

// Writes `persia-metrics: <text>` and a newline to stderr in one system call; failures are ignored.
void LogLine(std::string_view text) noexcept;

// Writes the line if `said` was not set before, and sets it.
void LogLineOnce(std::atomic<bool>& said, std::string_view text) noexcept;

}  // namespace persia::metrics

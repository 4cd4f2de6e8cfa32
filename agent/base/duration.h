// Durations as people write them.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

// A duration as Go writes it ("1m20s", "500ms", "1.5h"), or a number of seconds ("10", "0.5"). Rounded up to whole
// milliseconds, so that only 0 becomes 0; at most ten years.
Result<std::chrono::milliseconds> ParseDuration(std::string_view text);

// A duration as Prometheus writes it: "1d12h", "1m30s", "500ms"; units of y, w, d, h, m, s, ms, each once, in this order. Only
// 0 needs none. At most ten years.
Result<std::chrono::milliseconds> ParsePrometheusDuration(std::string_view text);

}  // namespace persia::agent

// The lines that emit writes: JSON objects, each with its newline no larger than a pipe takes as a whole.
// Thread safety: a pure function, any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "persia/metrics/emit.h"

namespace persia::metrics::benchmarkai {

// `*too_long` gets the first name that fits into no line; it is left out.
std::vector<std::string> EmitLines(std::span<const Metric> metrics, size_t limit, std::string* too_long);

}  // namespace persia::metrics::benchmarkai

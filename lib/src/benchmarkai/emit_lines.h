// Formats metrics as the lines that `emit` writes: JSON objects, each of at most `limit` bytes with its newline.
// Thread safety: a pure function, any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "persia/metrics/emit.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace benchmarkai {

// A metric whose name does not fit into a line is left out; `*too_long` is set to the first such name.
std::vector<std::string> EmitLines(std::span<const Metric> metrics, size_t limit, std::string* too_long);

}  // namespace benchmarkai
}  // namespace abi_1
}  // namespace persia::metrics

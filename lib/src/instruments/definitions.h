// What instruments and families of one kind have in common: the definition of what they request. Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "persia/metrics/instruments.h"
#include "persia/metrics/labels.h"

namespace persia::metrics {
inline namespace abi_1 {

// The bounds of a native histogram: the zero threshold, then the upper bound of each bucket up to `most`; at most kMaxBounds.
// Empty if the options are wrong.
std::vector<double> NativeBounds(const NativeBuckets& buckets);

// The gauge of a time cost's last duration.
inline std::string LastName(std::string_view name) { return std::string(name) + "_sec"; }
inline Description AboutLast(const Description& about) {
  return {.help = about.help + " The last one.", .unit = about.unit, .labels = about.labels};
}

}  // namespace abi_1
}  // namespace persia::metrics

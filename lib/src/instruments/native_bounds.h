// The bounds of a native histogram's buckets.
#pragma once

#include <vector>

#include "persia/metrics/instruments.h"

namespace persia::metrics {
inline namespace abi_1 {

// The zero threshold, then the upper bound of each bucket up to `most`; at most kMaxBounds. Empty if the options are wrong.
std::vector<double> NativeBounds(const NativeBuckets& buckets);

}  // namespace abi_1
}  // namespace persia::metrics

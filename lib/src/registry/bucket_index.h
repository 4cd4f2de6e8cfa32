// Makes the index that finds a value's bucket.
#pragma once

#include <span>

#include "persia/metrics/internal/bucket_search.h"

namespace persia::metrics {
inline namespace abi_1 {

// REQUIRES: `bounds` are finite and ascending, are followed by +infinity in memory, and outlive the index.
internal::BucketIndex MakeBucketIndex(std::span<const double> bounds) noexcept;

// The same for the bounds of a native histogram. REQUIRES: also, they are consecutive bounds of one schema; at least two.
internal::BucketIndex MakeNativeBucketIndex(std::span<const double> bounds) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics

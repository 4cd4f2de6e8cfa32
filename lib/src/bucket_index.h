// Makes the index in which inlined calls look buckets up.
#pragma once

#include <span>

#include "persia/metrics/internal/bucket_search.h"

namespace persia::metrics {

// REQUIRES: `bounds` are finite and ascend, and behind the last of them stands +infinity; they outlive the index.
internal::BucketIndex MakeBucketIndex(std::span<const double> bounds) noexcept;

}  // namespace persia::metrics

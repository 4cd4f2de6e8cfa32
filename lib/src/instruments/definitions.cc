#include "definitions.h"

#include <algorithm>
#include <cmath>

#include "native_grid.h"
#include "segment_format.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

// Within the normal doubles, so that each bound is one of them.
constexpr double kLeast = 0x1p-1000;
constexpr double kMost = 0x1p1000;

// The bucket that takes a value, which may be a bound up to the last digits.
int IndexOf(int schema, double value) {
  constexpr double kTolerance = 1e-9;
  return static_cast<int>(std::ceil(std::ldexp(std::log2(value), schema) - kTolerance));
}

}  // namespace

std::vector<double> NativeBounds(const NativeBuckets& buckets) {
  const bool good =
      buckets.factor > 1 && buckets.zero_threshold >= kLeast && buckets.zero_threshold < buckets.most && buckets.most <= kMost;
  if (!good) return {};
  int schema = segment::NativeSchema(buckets.factor);
  int first = 0;
  int last = 0;
  for (;; --schema) {
    first = IndexOf(schema, buckets.zero_threshold);
    last = std::max(first + 1, IndexOf(schema, buckets.most));
    if (last - first < static_cast<int>(segment::kMaxBounds) || schema == segment::kNativeLeastSchema) break;
  }
  std::vector<double> bounds;
  for (int index = first; index <= last; ++index) bounds.push_back(segment::NativeBound(schema, index));
  return bounds;
}

}  // namespace abi_1
}  // namespace persia::metrics

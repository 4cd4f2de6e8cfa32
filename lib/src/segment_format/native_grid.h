// The exponential buckets of Prometheus' native histograms, for the library and the agent.
//
// Bucket k of schema s has the values in (2^((k - 1) / 2^s), 2^(k / 2^s)]. Thread safety: pure functions, any thread.
#pragma once

#include <cmath>

namespace persia::metrics::segment {

inline constexpr int kNativeLeastSchema = -4;
inline constexpr int kNativeMostSchema = 8;

// The coarsest schema whose buckets grow by at most `factor`, or the finest schema, as client_golang picks it.
// REQUIRES: factor > 1.
inline int NativeSchema(double factor) {
  const double schema = -std::floor(std::log2(std::log2(factor)));
  if (!(schema < kNativeMostSchema)) return kNativeMostSchema;
  return schema > kNativeLeastSchema ? static_cast<int>(schema) : kNativeLeastSchema;
}

// The upper bound of a bucket. Only by operations that are rounded in the same way everywhere, so that two processes have the
// same bounds. REQUIRES: the schema is in the range above.
inline double NativeBound(int schema, int index) {
  if (schema <= 0) return std::ldexp(1.0, index * (1 << -schema));
  const int octave = index >> schema;
  const int rest = index - octave * (1 << schema);
  double root = 2;
  double bound = 1;
  for (int bit = schema - 1; bit >= 0; --bit) {
    root = std::sqrt(root);
    if ((rest >> bit & 1) != 0) bound *= root;
  }
  return std::ldexp(bound, octave);
}

// The index of the bucket whose upper bound is nearest to `bound` by ratio. REQUIRES: `bound` is positive and finite.
inline int NearestNativeIndex(int schema, double bound) {
  return static_cast<int>(std::lround(std::ldexp(std::log2(bound), schema)));
}

}  // namespace persia::metrics::segment

#include "model/native_buckets.h"

#include <cmath>
#include <numeric>

namespace persia::agent {

int NativeShift(int schema, const Scale& scale) {
  return static_cast<int>(std::lround(std::ldexp(std::log2(scale.Apply(1)), schema)));
}

const double* ClassicCounts(const NativeBuckets& native, const double* counts, ClassicBuffer& buffer) {
  const double* from = counts;
  for (size_t i = 0; i <= native.cuts.size(); ++i) {
    const double* const end = counts + (i < native.cuts.size() ? native.cuts[i] : native.buckets + 1);
    buffer[i] = std::accumulate(from, end, 0.0);
    from = end;
  }
  return buffer.data();
}

}  // namespace persia::agent

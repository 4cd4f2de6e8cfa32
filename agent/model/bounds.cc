#include "model/bounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace persia::agent {
namespace {

// 2^0, 2^(1/4), 2^(1/2), 2^(3/4). Literals, since math libraries differ in the last bit of pow.
constexpr double kQuarters[] = {1.0, 0x1.306fe0a31b715p+0, 0x1.6a09e667f3bcdp+0, 0x1.ae89f995ad3adp+0};

int NearestBound(double value) {
  if (!(value > StreamBound(kFirstStreamBound))) return kFirstStreamBound;
  if (value >= StreamBound(kLastStreamBound)) return kLastStreamBound;
  const int guess = static_cast<int>(std::lround(std::log2(value) * 4));
  return std::clamp(guess, kFirstStreamBound, kLastStreamBound);
}

}  // namespace

double StreamBound(int k) {
  const int quarter = ((k % 4) + 4) % 4;
  return std::ldexp(kQuarters[quarter], (k - quarter) / 4);
}

std::vector<double> SnapToStreamBounds(std::span<const double> bounds) {
  std::vector<double> snapped;
  snapped.reserve(bounds.size());
  for (const double bound : bounds) snapped.push_back(StreamBound(NearestBound(bound)));
  std::sort(snapped.begin(), snapped.end());
  snapped.erase(std::unique(snapped.begin(), snapped.end()), snapped.end());
  return snapped;
}

std::vector<double> SnapToStreamBounds(std::span<const double> bounds, const Scale& scale) {
  std::vector<double> unscaled(bounds.begin(), bounds.end());
  for (double& bound : unscaled) bound = scale.Undo(bound);
  std::vector<double> snapped = SnapToStreamBounds(unscaled);
  for (double& bound : snapped) bound = scale.Apply(bound);
  return snapped;
}

std::vector<uint32_t> StreamCuts(std::span<const double> bounds, const Scale& scale) {
  std::vector<uint32_t> cuts;
  for (const double bound : bounds) {
    const double unscaled = std::max(scale.Undo(bound), StreamBound(kFirstStreamBound));
    const long nearest = std::lround(std::log2(unscaled) * 4);
    cuts.push_back(static_cast<uint32_t>(std::clamp<long>(nearest, kFirstStreamBound, kLastStreamBound) - kFirstStreamBound));
  }
  return cuts;
}

std::vector<double> DefaultStreamBounds() {
  std::vector<double> bounds;
  for (int power = -10; power <= 16; power += 2) bounds.push_back(std::ldexp(1.0, power));
  return bounds;
}

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

#include "merge/stream_totals.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "model/stream_bounds.h"

namespace persia::agent {

namespace segment = persia::metrics::segment;
static_assert(segment::kStreamLeast == kFirstStreamBound && segment::kStreamMost == kLastStreamBound);

void StreamTotals::Add(const uint64_t* cells) {
  negatives += cells[segment::kStreamNegatives];
  zeros += cells[segment::kStreamZeros];
  for (uint32_t i = 0; i < segment::kStreamBuckets; ++i) {
    buckets[i] += cells[segment::kStreamFirstBucket + i];
  }
}

uint64_t StreamTotals::Count() const { return std::accumulate(buckets.begin(), buckets.end(), negatives + zeros); }

void CountBetween(const StreamTotals& totals, std::span<const uint32_t> cuts, double* out) {
  uint64_t count = totals.negatives + totals.zeros;
  uint32_t bucket = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const uint32_t end = i < cuts.size() ? cuts[i] + 1 : segment::kStreamBuckets;
    for (; bucket < end; ++bucket) {
      count += totals.buckets[bucket];
    }
    out[i] = static_cast<double>(count);
    count = 0;
  }
}

void CountNative(const StreamTotals& totals, double* out) {
  out[0] = static_cast<double>(totals.negatives + totals.zeros + totals.buckets[0]);
  std::copy(totals.buckets.begin() + 1, totals.buckets.end(), out + 1);
}

double StreamQuantile(const StreamTotals& totals, double quantile, double negative_sum) {
  const uint64_t count = totals.Count();
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  const double rank = quantile * static_cast<double>(count);
  auto below = static_cast<double>(totals.negatives);
  if (totals.negatives > 0 && rank <= below) return negative_sum / below;
  below += static_cast<double>(totals.zeros);
  if (totals.zeros > 0 && rank <= below) return 0;
  uint32_t last = 0;
  for (uint32_t i = 0; i < segment::kStreamBuckets; ++i) {
    const auto inside = static_cast<double>(totals.buckets[i]);
    if (inside == 0) continue;
    last = i;
    if (rank <= below + inside) break;
    below += inside;
  }
  // Outside all boundaries, the nearest one.
  if (last == 0 || last == segment::kStreamBuckets - 1) return StreamBound(last == 0 ? kFirstStreamBound : kLastStreamBound);
  const double lower = StreamBound(kFirstStreamBound + static_cast<int>(last) - 1);
  const double share = std::clamp((rank - below) / static_cast<double>(totals.buckets[last]), 0.0, 1.0);
  return share < 1 ? lower * std::exp2(share / 4) : StreamBound(kFirstStreamBound + static_cast<int>(last));
}

}  // namespace persia::agent

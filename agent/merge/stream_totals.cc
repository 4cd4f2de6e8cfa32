#include "merge/stream_totals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "model/bounds.h"

namespace persia::agent {
namespace {

// Without the labels of the settings, so that a reload of these keeps the ages.
std::string Key(const FamilyLayout& family, const Layout& layout, const SeriesLayout& series) {
  std::string key = family.name;
  const auto append = [&key](const auto& labels) {
    for (const auto& [name, value] : labels) key.append(1, '\0').append(name).append(1, '\0').append(value);
    key += '\0';
  };
  Labels identity = layout.identities[series.identity].labels;
  std::erase_if(identity, [](const auto& label) {
    return label.first != "instance" && label.first != "ip_addr" && label.first != "role";
  });
  append(identity);
  append(series.labels);
  return key;
}

}  // namespace

namespace segment = persia::metrics::segment;
static_assert(segment::kStreamLeast == kFirstStreamBound && segment::kStreamMost == kLastStreamBound);

void StreamTotals::Add(const uint64_t* cells) {
  negatives += cells[segment::kStreamNegatives];
  zeros += cells[segment::kStreamZeros];
  for (uint32_t i = 0; i < segment::kStreamBuckets; ++i) buckets[i] += cells[segment::kStreamFirstBucket + i];
}

uint64_t StreamTotals::Count() const { return std::accumulate(buckets.begin(), buckets.end(), negatives + zeros); }

void CountBetween(const StreamTotals& totals, std::span<const uint32_t> cuts, double* out) {
  uint64_t count = totals.negatives + totals.zeros;
  uint32_t bucket = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const uint32_t end = i < cuts.size() ? cuts[i] + 1 : segment::kStreamBuckets;
    for (; bucket < end; ++bucket) count += totals.buckets[bucket];
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

void StreamAges::SetPlan(const ExposurePlan& plan) {
  expiring_.clear();
  for (auto& [key, age] : ages_) age.planned = false;
  for (size_t f = 0; f < plan.families.size(); ++f) {
    const PlannedFamily& family = plan.families[f];
    if (!family.ttl || family.ttl->count() == 0) continue;
    std::unordered_map<size_t, const SeriesLayout*> by_value;
    for (const SeriesLayout& series : plan.layout->families[f].series) by_value.emplace(series.first_value, &series);
    for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
      Age& age = ages_[Key(plan.layout->families[f], *plan.layout, *by_value.at(plan.first_value[i]))];
      age.planned = true;
      expiring_.push_back({i, *family.ttl, family.fill == Fill::kGauge, &age});
    }
  }
  std::erase_if(ages_, [](const auto& entry) { return !entry.second.planned; });
}

void StreamAges::HideExpired(const ExposurePlan& plan, std::span<const Measurements> inputs,
                             std::chrono::steady_clock::time_point now, std::vector<double>& values) {
  for (const ExpiringSeries& expiring : expiring_) {
    uint64_t count = 0;
    uint64_t last = 0;
    bool only_streams = true;  // a gauge of the program may share the name; it has no count
    for (const Part& part : plan.PartsOf(expiring.series)) {
      const SegmentValues& from = *inputs[part.segment].values;
      only_streams = only_streams && part.real != kNoIndex;
      if (!only_streams) break;
      StreamTotals totals;
      totals.Add(from.wholes.data() + (expiring.gauge ? part.real : part.cell));
      count += totals.Count();
      if (expiring.gauge) last = std::rotl(last, 1) ^ from.commons[part.cell];  // a stream does not count NaNs
    }
    if (!only_streams) continue;
    Age& age = *expiring.age;
    if (!age.seen || age.count != count || age.last != last)
      age = {.count = count, .last = last, .since = now, .seen = true, .planned = true};
    else if (now - age.since >= expiring.ttl)
      values[plan.first_value[expiring.series]] = kAbsentValue;
  }
}

}  // namespace persia::agent

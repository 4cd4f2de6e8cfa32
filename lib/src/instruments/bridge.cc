#include "persia/metrics/internal/bridge.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cells.h"
#include "log.h"
#include "persia/metrics/internal/process.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

std::vector<FamilyValues> ReadValues() { return Registry::Get().Values(); }

BucketedHistogram::BucketedHistogram(std::string_view group, std::string_view name, Span<const double> bounds,
                                     const Description& about) noexcept {
  FamilyNode* family =
      Registry::Get().FindOrAddFamily({segment::Kind::kHistogram, group, name, about.help, about.unit, 0, bounds});
  slot_ = Registry::Get().FindOrAddChild(family, about.labels);
  // None if it was refused: the scratch page may be too small for them.
  buckets_ = family == nullptr ? 0 : family->bound_count + 1;
}

void BucketedHistogram::Add(Span<const uint64_t> counts, double sum) noexcept {
  if (sum != 0 && buckets_ > 0) AddDouble(slot_, sum);
  for (uint32_t i = 0; i < std::min<size_t>(counts.size(), buckets_); ++i)
    if (counts[i] > 0) AddWhole(slot_ + 1 + i, counts[i]);
}

void BucketedHistogram::Observe(uint32_t bucket, double value) noexcept {
  if (bucket >= buckets_) return;
  AddDouble(slot_, value);
  AddWhole(slot_ + 1 + bucket, 1);
}

void CountOutOfMemory() noexcept { Registry::Get().CountDropped(segment::Drop::kOutOfMemory); }

void LogOnce(std::atomic<bool>& logged, std::string_view text) noexcept { LogLineOnce(logged, text); }

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics

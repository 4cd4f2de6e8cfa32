#include "persia/metrics/instruments.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cells.h"
#include "definitions.h"
#include "persia/metrics/stream.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using segment::Drop;
using segment::Kind;

// PersiaML's bounds, which are Prometheus's defaults, and finer ones below 5 ms for lookups.
constexpr std::array<double, 16> kSecondsBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                   0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};

// `next(i, last)` is the bound with index `i`.
template <class Next>
std::vector<double> MakeBounds(int count, const Next& next) noexcept try {
  std::vector<double> bounds;
  for (int i = 0; i < count; ++i) bounds.push_back(next(i, bounds.empty() ? 0 : bounds.back()));
  return bounds;
} catch (const std::bad_alloc&) {
  Registry::Get().CountDropped(Drop::kOutOfMemory);
  return {};
}

}  // namespace

std::vector<double> LinearBounds(double start, double width, int count) noexcept {
  return MakeBounds(
      count, [=](int i, double /*last*/) { return start + width * i; });
}

std::vector<double> ExponentialBounds(double start, double factor, int count) noexcept {
  return MakeBounds(
      count, [=](int i, double last) { return i == 0 ? start : last * factor; });
}

Span<const double> DefaultSecondsBounds() noexcept { return kSecondsBounds; }

Counter::Counter(std::string_view group, std::string_view name, const Description& about) noexcept
    : slot_(Registry::Get().FindOrAddChild(
          Registry::Get().FindOrAddFamily({Kind::kCounter, group, name, about.help, about.unit}), about.labels)) {}

void Counter::AddSlow(uint32_t slot, uint64_t by) noexcept { AddWhole(slot, by); }

void Counter::AddFraction(double by) noexcept {
  if (by >= 0 && std::isfinite(by))
    AddDouble(slot_ + 1, by);
  else
    Registry::Get().CountLost(Drop::kBadValue, slot_);
}

double Counter::Value() const noexcept { return Registry::Get().CounterAt(slot_); }

Gauge::Gauge(std::string_view group, std::string_view name, GaugeMerge merge, const Description& about) noexcept
    : slot_(Registry::Get().FindOrAddChild(
          Registry::Get().FindOrAddFamily({Kind::kGauge, group, name, about.help, about.unit, static_cast<uint8_t>(merge)}),
          about.labels)) {}

void Gauge::SetSlow(double value) noexcept {
  CommonCell(slot_)->store(std::bit_cast<uint64_t>(value), std::memory_order_relaxed);
}

void Gauge::Add(double by) noexcept {
  UpdateShared(
      CommonCell(slot_), [by](uint64_t bits) { return bits == segment::kUnset ? by : std::bit_cast<double>(bits) + by; });
}

void Gauge::Unset() noexcept { CommonCell(slot_)->store(segment::kUnset, std::memory_order_relaxed); }

std::optional<double> Gauge::Value() const noexcept {
  const uint64_t bits = Registry::Get().CommonAt(slot_, segment::kUnset);
  return bits == segment::kUnset ? std::nullopt : std::optional(internal::DoubleOf(bits));
}

Histogram::Histogram(std::string_view group, std::string_view name, Span<const double> bounds,
                     const Description& about) noexcept {
  internal::FamilyNode* family =
      Registry::Get().FindOrAddFamily({Kind::kHistogram, group, name, about.help, about.unit, 0, bounds});
  slot_ = Registry::Get().FindOrAddChild(family, about.labels);
  buckets_ = internal::BucketsOf(family);
}

Histogram::Histogram(std::string_view group, std::string_view name, const NativeBuckets& buckets,
                     const Description& about) noexcept {
  try {
    const std::vector<double> bounds = NativeBounds(buckets);
    internal::FamilyNode* family = Registry::Get().FindOrAddFamily(
        {Kind::kNativeHistogram, group, name, about.help, about.unit, 0, bounds, buckets.max_buckets});
    slot_ = Registry::Get().FindOrAddChild(family, about.labels);
    buckets_ = internal::BucketsOf(family);
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(Drop::kOutOfMemory);
  }
}

void Histogram::ObserveSlow(double value, uint64_t count) noexcept {
  if (internal::IsNan(value)) return Registry::Get().CountLost(Drop::kBadValue, slot_);
  if (count == 0) return;
  AddDouble(slot_, count == 1 ? value : value * static_cast<double>(count));
  AddWhole(slot_ + 1 + internal::BucketOf(*buckets_, value), count);
}

HistogramValue Histogram::Value() const noexcept {
  HistogramValue value;
  if (slot_ == internal::kScratchSlot) return value;
  const Registry& registry = Registry::Get();
  try {
    value.bounds.assign(buckets_->bounds, buckets_->bounds + buckets_->count);
    value.buckets.resize(value.bounds.size() + 1);
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(Drop::kOutOfMemory);
  }
  for (uint32_t i = 0; i <= buckets_->count; ++i) {
    const uint64_t bucket = registry.WholeAt(slot_ + 1 + i);
    value.count += bucket;
    if (i < value.buckets.size()) value.buckets[i] = bucket;
  }
  value.sum = registry.DoubleAt(slot_);
  return value;
}

TimeCost::TimeCost(std::string_view group, std::string_view name, Span<const double> bounds, const Description& about) noexcept
    : histogram_(group, name, bounds, about) {
  try {
    last_ = Gauge(group, LastName(name), AboutLast(about));
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(Drop::kOutOfMemory);
  }
}

// stream.h, a public header, repeats these offsets, since segment_format.h is not public.
static_assert(segment::kStreamPositiveSum == 1 && segment::kStreamNegativeSum == 2);
static_assert(segment::kStreamNegatives == 3 && segment::kStreamZeros == 4 && segment::kStreamFirstBucket == 5);

Stream::Stream(std::string_view group, std::string_view name, const Description& about) noexcept
    : slot_(Registry::Get().FindOrAddChild(
          Registry::Get().FindOrAddFamily({Kind::kStream, group, name, about.help, about.unit}), about.labels)) {}

void Stream::AddSlow(double value, uint64_t count) noexcept {
  if (count == 0) return;
  CommonCell(slot_)->store(internal::BitsOf(value), std::memory_order_relaxed);
  if (!internal::IsNan(value)) {
    AddDouble(slot_ + SumOf(value), count == 1 ? value : value * static_cast<double>(count));
    AddWhole(slot_ + CountOf(value), count);
  }
}

StreamValue Stream::Value() const noexcept { return Registry::Get().StreamAt(slot_); }

}  // namespace abi_1
}  // namespace persia::metrics

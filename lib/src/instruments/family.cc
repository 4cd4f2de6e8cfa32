#include "persia/metrics/family.h"

#include <memory>
#include <new>
#include <vector>

#include "native_bounds.h"
#include "registry.h"

namespace persia::metrics {

using segment::Kind;

namespace {

internal::FamilyNode* FindOrAdd(Kind kind, std::string_view group, std::string_view name, const Description& about,
                                GaugeMerge merge, std::span<const double> bounds) noexcept {
  return Registry::Get().FindOrAddFamily(
      {kind, group, name, about.help, about.unit, kind == Kind::kGauge ? static_cast<uint8_t>(merge) : uint8_t{0}, bounds});
}

internal::FamilyNode* FindOrAddNative(std::string_view group, std::string_view name, const Description& about,
                                      const NativeBuckets& buckets) noexcept try {
  const std::vector<double> bounds = NativeBounds(buckets);
  return Registry::Get().FindOrAddFamily(
      {Kind::kNativeHistogram, group, name, about.help, about.unit, 0, bounds, buckets.max_buckets});
} catch (const std::bad_alloc&) {
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  return nullptr;
}

// If memory runs out, `*node` becomes null: without its constant labels the family must not make series.
std::shared_ptr<const LabelSet> Copy(const LabelSet& labels, internal::FamilyNode** node) noexcept try {
  return labels.empty() ? nullptr : std::make_shared<const LabelSet>(labels);
} catch (const std::bad_alloc&) {
  *node = nullptr;
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  return nullptr;
}

}  // namespace

template <class Instrument>
Family<Instrument>::Family(std::string_view group, std::string_view name, const Description& about) noexcept
    requires(!std::same_as<Instrument, Histogram>)
    : node_(FindOrAdd(std::same_as<Instrument, Counter> ? Kind::kCounter : Kind::kGauge, group, name, about, {}, {})),
      const_labels_(Copy(about.labels, &node_)) {}

template <class Instrument>
Family<Instrument>::Family(std::string_view group, std::string_view name, const Description& about,
                           GaugeMerge merge) noexcept requires std::same_as<Instrument, Gauge>
    : node_(FindOrAdd(Kind::kGauge, group, name, about, merge, {})), const_labels_(Copy(about.labels, &node_)) {}

template <class Instrument>
Family<Instrument>::Family(std::string_view group, std::string_view name, std::span<const double> bounds,
                           const Description& about) noexcept requires std::same_as<Instrument, Histogram>
    : node_(FindOrAdd(Kind::kHistogram, group, name, about, {}, bounds)), const_labels_(Copy(about.labels, &node_)) {}

template <class Instrument>
Family<Instrument>::Family(std::string_view group, std::string_view name, const NativeBuckets& buckets,
                           const Description& about) noexcept requires std::same_as<Instrument, Histogram>
    : node_(FindOrAddNative(group, name, about, buckets)), const_labels_(Copy(about.labels, &node_)) {}

template <class Instrument>
Instrument Family<Instrument>::With(LabelView labels) noexcept try {
  Instrument child;
  if (const_labels_ == nullptr) {
    child.slot_ = Registry::Get().FindOrAddSeries(node_, labels);
  } else {
    std::vector<Label> all(labels.begin(), labels.end());
    for (const auto& [name, value] : *const_labels_) {
      all.push_back({name, value});
    }
    child.slot_ = Registry::Get().FindOrAddSeries(node_, all);
  }
  if constexpr (std::same_as<Instrument, Histogram>) {
    child.buckets_ = internal::BucketsOf(node_);
  }
  return child;
} catch (const std::bad_alloc&) {
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  return {};
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

}  // namespace persia::metrics

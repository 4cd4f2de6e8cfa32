#include "persia/metrics/family.h"

#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "definitions.h"
#include "registry.h"
#include "removal.h"

namespace persia::metrics {
inline namespace abi_1 {

using segment::Kind;

namespace {

// If memory runs out, `*node` becomes null: without its constant labels the family must not make series.
std::shared_ptr<const LabelSet> CopyLabels(const LabelSet& labels, internal::FamilyNode** node) noexcept try {
  return labels.empty() ? nullptr : std::make_shared<const LabelSet>(labels);
} catch (const std::bad_alloc&) {
  *node = nullptr;
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  return nullptr;
}

std::vector<Label> With(LabelView labels, const LabelSet& more) {
  std::vector<Label> all(labels.begin(), labels.end());
  for (const auto& [name, value] : more) all.push_back({name, value});
  return all;
}

}  // namespace

namespace internal {

FamilyBase::FamilyBase(Type type, std::string_view group, std::string_view name, GaugeMerge merge, Span<const double> bounds,
                       const Description& about) noexcept {
  Registry& registry = Registry::Get();
  FamilyRequest request{Kind::kCounter, group, name, about.help, about.unit};
  switch (type) {
    case Type::kCounter:
      break;
    case Type::kGauge:
      request.kind = Kind::kGauge;
      request.gauge_policy = static_cast<uint8_t>(merge);
      break;
    case Type::kHistogram:
    case Type::kTimeCost:
      request.kind = Kind::kHistogram;
      request.bounds = bounds;
      break;
    case Type::kStream:
      request.kind = Kind::kStream;
      break;
  }
  node_ = registry.FindOrAddFamily(request);
  if (type == Type::kTimeCost) {
    try {
      const Description of_last = AboutLast(about);
      last_ = registry.FindOrAddFamily({Kind::kGauge, group, LastName(name), of_last.help, of_last.unit});
    } catch (const std::bad_alloc&) {
      registry.CountDropped(segment::Drop::kOutOfMemory);
    }
  }
  const_labels_ = CopyLabels(about.labels, &node_);
}

FamilyBase::FamilyBase(std::string_view group, std::string_view name, const NativeBuckets& buckets,
                       const Description& about) noexcept {
  try {
    const std::vector<double> bounds = NativeBounds(buckets);
    node_ = Registry::Get().FindOrAddFamily(
        {Kind::kNativeHistogram, group, name, about.help, about.unit, 0, bounds, buckets.max_buckets});
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
  const_labels_ = CopyLabels(about.labels, &node_);
}

uint32_t FamilyBase::SlotOf(FamilyNode* node, LabelView labels) const noexcept try {
  if (const_labels_ == nullptr) return Registry::Get().FindOrAddSeries(node, labels);
  return Registry::Get().FindOrAddSeries(node, With(labels, *const_labels_));
} catch (const std::bad_alloc&) {
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  return kScratchSlot;
}

bool FamilyBase::RemoveSeries(LabelView labels) const noexcept try {
  const std::vector<Label> all = const_labels_ == nullptr ? std::vector<Label>() : With(labels, *const_labels_);
  bool removed = false;
  for (const FamilyNode* node : {node_, last_}) {
    const uint32_t slot = Registry::Get().FindSlot(node, const_labels_ == nullptr ? labels : LabelView(all));
    removed = RemoveSlot(slot) || removed;
  }
  return removed;
} catch (const std::bad_alloc&) {
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  return false;
}

void FamilyBase::ClearSeries() const noexcept {
  ClearFamily(node_);
  ClearFamily(last_);
}

}  // namespace internal

template <>
Counter Family<Counter>::With(LabelView labels) noexcept {
  Counter child;
  child.slot_ = SlotOf(node_, labels);
  return child;
}

template <>
Gauge Family<Gauge>::With(LabelView labels) noexcept {
  Gauge child;
  child.slot_ = SlotOf(node_, labels);
  return child;
}

template <>
Histogram Family<Histogram>::With(LabelView labels) noexcept {
  Histogram child;
  child.slot_ = SlotOf(node_, labels);
  child.buckets_ = internal::BucketsOf(node_);
  return child;
}

template <>
TimeCost Family<TimeCost>::With(LabelView labels) noexcept {
  TimeCost child;
  child.histogram_.slot_ = SlotOf(node_, labels);
  child.histogram_.buckets_ = internal::BucketsOf(node_);
  child.last_.slot_ = SlotOf(last_, labels);
  return child;
}

template <>
Stream Family<Stream>::With(LabelView labels) noexcept {
  Stream child;
  child.slot_ = SlotOf(node_, labels);
  return child;
}

}  // namespace abi_1
}  // namespace persia::metrics

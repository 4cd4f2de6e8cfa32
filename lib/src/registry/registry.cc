#include "registry.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <new>
#include <utility>

#include "bucket_index.h"
#include "cells.h"
#include "lane_cells.h"
#include "metric_log.h"
#include "text_hash.h"
#include "utf8.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using internal::FamilyNode;
using internal::kScratchSlot;
using internal::SeriesNode;
using segment::Drop;
using segment::Kind;

using segment::kMaxHelpBytes;
using segment::kMaxLabels;
using segment::kMaxLabelValueBytes;
using segment::kMaxNameBytes;
constexpr std::string_view kCountsNothing = "counts nothing: ";

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  return "\"" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "...\"" : "\"");
}

std::string NumberText(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// The error of the bounds; "" if there is none.
std::string BoundsError(Kind kind, std::span<const double> bounds) {
  if (kind == Kind::kNativeHistogram && bounds.empty())
    return "a native histogram needs a factor above 1, and a zero threshold above 0 and below the largest value";
  if (bounds.size() > segment::kMaxBounds)
    return std::to_string(bounds.size()) + " bounds; at most " + std::to_string(segment::kMaxBounds) + " are allowed";
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (!std::isfinite(bounds[i]))
      return "bound[" + std::to_string(i) + "] is not finite (the bucket up to +Inf is added automatically)";
    if (i > 0 && bounds[i] <= bounds[i - 1]) {
      return "bound[" + std::to_string(i) + "] is " + NumberText(bounds[i]) + ", not above the one before, " +
             NumberText(bounds[i - 1]);
    }
  }
  return "";
}

std::string LabelsError(std::span<const Label> sorted) {
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].name.empty() || sorted[i].name.size() > kMaxNameBytes)
      return "the label name " + Quoted(sorted[i].name) + " must have 1 to " + std::to_string(kMaxNameBytes) + " bytes";
    if (sorted[i].value.size() > kMaxLabelValueBytes) {
      return "the value of label " + Quoted(sorted[i].name) + " has more than " + std::to_string(kMaxLabelValueBytes) +
             " bytes";
    }
    if (i > 0 && sorted[i].name == sorted[i - 1].name) return "label " + Quoted(sorted[i].name) + " is given twice";
  }
  return "";
}

bool SameDefinition(const FamilyNode& node, const FamilyRequest& request) {
  return node.kind == request.kind && node.gauge_policy == request.gauge_policy && node.max_buckets == request.max_buckets &&
         std::ranges::equal(node.real_bounds(), request.bounds);
}

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "a counter";
    case Kind::kGauge:
      return "a gauge";
    case Kind::kHistogram:
      return "a histogram";
    case Kind::kStream:
      return "a stream";
    case Kind::kNativeHistogram:
      return "a native histogram";
    case Kind::kClock:
      return "a clock";
    case Kind::kEvent:
      return "an event";
  }
  return "a metric";
}

std::string_view BadValueText(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "a counter takes no NaN and no negative number; use a gauge";
    case Kind::kGauge:
      return "an enum takes one of its states only";
    default:
      return "a histogram takes no NaN";
  }
}

std::string BoundsText(std::span<const double> bounds) {
  constexpr size_t kShown = 10;
  std::string text;
  for (const double bound : bounds.first(std::min(bounds.size(), kShown)))
    text += (text.empty() ? "" : ", ") + NumberText(bound);
  return text + (bounds.size() > kShown ? ", ... (" + std::to_string(bounds.size()) + ")" : "");
}

// How the request differs. REQUIRES: !SameDefinition(node, request).
std::string Difference(const FamilyNode& node, const FamilyRequest& request) {
  constexpr std::array<std::string_view, 6> kPolicies = {"last", "sum", "min", "max", "avg", "each"};
  const auto policy = [&](uint8_t number) { return number < kPolicies.size() ? std::string(kPolicies[number]) : "unknown"; };
  const auto differs = [](std::string_view what, std::string_view first, std::string_view second) {
    return std::string(what).append(first).append(", and was requested again ").append(second);
  };
  if (node.kind != request.kind) return differs("is ", NameOf(node.kind), "as " + std::string(NameOf(request.kind)));
  if (node.gauge_policy != request.gauge_policy)
    return differs("has the merge policy ", policy(node.gauge_policy), "with " + policy(request.gauge_policy));
  if (node.max_buckets != request.max_buckets) {
    return differs("has at most ", std::to_string(node.max_buckets) + " buckets",
                   "with " + std::to_string(request.max_buckets));
  }
  return differs("has the bounds ", BoundsText(node.real_bounds()), "with " + BoundsText(request.bounds));
}

size_t HashOf(std::string_view group, std::string_view name) { return MixHash(MixHash(0, group), name); }

size_t HashOf(const FamilyNode& family, LabelView sorted) {
  size_t hash = MixHash(0, uint64_t{family.ordinal});
  for (const Label& label : sorted) hash = MixHash(MixHash(hash, label.name), label.value);
  return hash;
}

// Calls `use` with the labels, sorted by name. REQUIRES: at most kMaxLabels labels.
template <class Use>
auto WithSorted(LabelView labels, const Use& use) {
  const auto by_name = [](const Label& a, const Label& b) { return a.name < b.name; };
  if (std::is_sorted(labels.begin(), labels.end(), by_name)) return use(labels);
  std::array<Label, kMaxLabels> sorted;
  const auto end = std::copy(labels.begin(), labels.end(), sorted.begin());
  std::sort(sorted.begin(), end, by_name);
  return use(LabelView(sorted.data(), labels.size()));
}

}  // namespace

// Events have a separate namespace: torchelastic has metrics and events of the same name.
FamilyNode* Registry::FindFamily(std::string_view group, std::string_view name, bool event, size_t hash) const noexcept {
  return families_.Find(
      hash,
      [&](const FamilyNode& node) {
        return node.group == group && node.name == name && (node.kind == segment::Kind::kEvent) == event;
      });
}

SeriesNode* Registry::FindSorted(const FamilyNode* family, LabelView sorted, size_t hash) const noexcept {
  return series_.Find(
      hash,
      [&](const SeriesNode& node) {
        return node.family == family &&
               std::ranges::equal(
                   node.labels, sorted, [](const auto& a, const Label& b) { return a.first == b.name && a.second == b.value; });
      });
}

const SeriesNode* Registry::FindSeries(std::string_view group, std::string_view name, bool event,
                                       LabelView labels) const noexcept {
  return FindSeries(FindFamily(group, name, event, HashOf(group, name)), labels);
}

SeriesNode* Registry::FindSeries(const FamilyNode* family, LabelView labels) const noexcept {
  if (family == nullptr || labels.size() > kMaxLabels) return nullptr;
  return WithSorted(labels, [&](LabelView sorted) { return FindSorted(family, sorted, HashOf(*family, sorted)); });
}

FamilyNode* Registry::FindMetric(std::string_view group, std::string_view name) const noexcept {
  return FindFamily(group, name, /*event=*/false, HashOf(group, name));
}

uint32_t Registry::FindSlot(const FamilyNode* family, LabelView labels) const noexcept {
  const SeriesNode* node = FindSeries(family, labels);
  return node == nullptr || node->removed.load(std::memory_order_relaxed) ? kScratchSlot : node->slot;
}

FamilyNode* Registry::FindOrAddFamily(const FamilyRequest& request) noexcept try {
  const size_t hash = HashOf(request.group, request.name);
  const bool event = request.kind == segment::Kind::kEvent;
  FamilyNode* node = FindFamily(request.group, request.name, event, hash);
  if (node == nullptr) {
    // One line for each kind of mistake: a program may make it in every step.
    if (request.name.empty() || request.name.size() > kMaxNameBytes || request.group.size() > kMaxNameBytes) {
      LogMetricOnce(reported_[static_cast<size_t>(Drop::kBadName)], request.group, request.name,
                    "counts nothing: a name must have 1 to 256 bytes, and a group at most that");
      CountDropped(Drop::kBadName);
      return nullptr;
    }
    if (const std::string error = BoundsError(request.kind, request.bounds); !error.empty()) {
      LogMetricOnce(reported_[static_cast<size_t>(Drop::kBadBounds)], request.group, request.name, kCountsNothing, error);
      CountLost(Drop::kBadBounds, request.group, request.name);
      return nullptr;
    }
    MutexLock lock(mutex_);
    node = FindFamily(request.group, request.name, event, hash);
    if (node == nullptr) return AddFamily(request, hash);
  }
  if (SameDefinition(*node, request)) return node;
  CountLost(Drop::kTypeConflict, request.group, request.name);
  if (!node->conflict_logged.load(std::memory_order_relaxed)) {  // a program may make it in every step
    LogMetricOnce(node->conflict_logged, request.group, request.name, Difference(*node, request),
                  "; that handle counts nothing");
  }
  return nullptr;
} catch (const std::bad_alloc&) {
  CountDropped(Drop::kOutOfMemory);
  return nullptr;
}

FamilyNode* Registry::AddFamily(const FamilyRequest& request, size_t hash) {
  auto node = std::make_unique<FamilyNode>();
  node->hash = hash;
  node->group = request.group;
  node->name = request.name;
  node->help = FirstBytes(request.help, kMaxHelpBytes);
  node->unit = FirstBytes(request.unit, kMaxNameBytes);
  node->kind = request.kind;
  node->gauge_policy = request.gauge_policy;
  node->max_buckets = request.max_buckets;
  node->bound_count = static_cast<uint32_t>(request.bounds.size());
  node->bounds.assign(request.bounds.begin(), request.bounds.end());
  node->bounds.push_back(std::numeric_limits<double>::infinity());
  if (node->kind == Kind::kHistogram)
    node->buckets = std::make_unique<const internal::BucketIndex>(MakeBucketIndex(node->real_bounds()));
  else if (node->kind == Kind::kNativeHistogram)
    node->buckets = std::make_unique<const internal::BucketIndex>(MakeNativeBucketIndex(node->real_bounds()));
  node->ordinal = static_cast<uint32_t>(families_.nodes().size());
  if (!Open()) return families_.Insert(std::move(node));
  const uint64_t bytes = SegmentWriter::BytesOf(node->record());
  if (families_.nodes().size() >= segment::kMaxFamilies || !writer_.Fits(bytes, 0)) {
    Report(*node, Drop::kSegmentFull, kCountsNothing);
    return nullptr;
  }
  FamilyNode* added = families_.Insert(std::move(node));
  writer_.Reserve(bytes, 0);
  PublishNew();
  return added;
}

uint32_t Registry::FindOrAddSeries(FamilyNode* family, LabelView labels) noexcept try {
  if (family == nullptr || disabled_.load(std::memory_order_relaxed)) return kScratchSlot;
  if (labels.empty()) {
    // Pairs with the release in AddSeries: a thread that reads the slot sees the first values of its cells.
    const uint32_t slot = family->unlabelled_slot.load(std::memory_order_acquire);
    if (slot != kScratchSlot) return slot;
  }
  if (labels.size() > kMaxLabels) {
    LogMetricOnce(family->conflict_logged, family->group, family->name,
                  "has a series that counts nothing: it has more than 32 labels");
    CountLost(Drop::kBadName, family->group, family->name);
    return kScratchSlot;
  }
  return WithSorted(labels, [&](LabelView sorted) { return FindOrAddSorted(family, sorted); });
} catch (const std::bad_alloc&) {
  CountDropped(Drop::kOutOfMemory);
  return kScratchSlot;
}

uint32_t Registry::FindOrAddSorted(FamilyNode* family, LabelView sorted) {
  const size_t hash = HashOf(*family, sorted);
  const SeriesNode* known = FindSorted(family, sorted, hash);
  if (known != nullptr && !known->removed.load(std::memory_order_relaxed)) return known->slot;
  if (const std::string error = LabelsError(sorted); !error.empty()) {
    LogMetricOnce(family->conflict_logged, family->group, family->name, "has a series that counts nothing: ", error);
    CountLost(Drop::kBadName, family->group, family->name);
    return kScratchSlot;
  }
  MutexLock lock(mutex_);
  SeriesNode* node = FindSorted(family, sorted, hash);
  if (node != nullptr) return Restore(node) ? node->slot : kScratchSlot;
  return AddSeries(family, sorted, hash);
}

uint32_t Registry::FindOrAddChild(FamilyNode* family, const LabelSet& labels) noexcept try {
  std::vector<Label> views;
  views.reserve(labels.size());
  for (const auto& [name, value] : labels) views.push_back({name, value});
  return FindOrAddSeries(family, views);
} catch (const std::bad_alloc&) {
  CountDropped(Drop::kOutOfMemory);
  return kScratchSlot;
}

uint32_t Registry::AddSeries(FamilyNode* family, std::span<const Label> sorted, size_t hash) {
  if (!Open()) return kScratchSlot;
  auto node = std::make_unique<SeriesNode>(hash, family);
  for (const Label& label : sorted) node->labels.emplace_back(label.name, label.value);
  const uint32_t cells = segment::CellsOf(family->kind, family->bound_count);
  const uint64_t bytes = SegmentWriter::BytesOf(node->record());
  const uint32_t slot = node->slot = writer_.Fits(bytes, 0) ? NextSlot(cells, bytes) : next_slot_;
  const uint32_t range = slot / internal::kChunkCells;
  if (range >= internal::kMaxRanges || series_.nodes().size() >= segment::kMaxSeries ||
      !writer_.Fits(bytes, HasCommonChunk(range) ? 0 : 1)) {
    Report(*family, Drop::kSegmentFull, kCountsNothing);
    return kScratchSlot;
  }
  if (!HasCommonChunk(range)) {
    if (!EnsureCommonChunk(range)) {
      Report(*family, Drop::kOutOfMemory, kCountsNothing);
      return kScratchSlot;
    }
    writer_.Reserve(0, 1);
  }
  SetFirstCell(*node, FirstValueOf(family->kind));
  if (family->kind == Kind::kEvent) EnsureRing();
  series_.Insert(std::move(node));
  next_slot_ = slot + cells;
  writer_.Reserve(bytes, 0);
  if (sorted.empty()) family->unlabelled_slot.store(slot, std::memory_order_release);
  if (!PublishNew() && state_ == State::kExporting)
    Report(*family, writer_.refusal(), "is not exported yet; it counts, and is exported once that is possible: ");
  return slot;
}

void Registry::Report(const FamilyNode& family, Drop why, std::string_view consequence) noexcept {
  LogMetricOnce(reported_[static_cast<size_t>(why)], family.group, family.name, consequence, TextOf(why));
  if (!writer_.CountDropped(why)) dropped_before_file_[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed);
}

void Registry::CountDropped(Drop why) noexcept {
  if (writer_.CountDropped(why) || disabled_.load(std::memory_order_relaxed)) return;
  dropped_before_file_[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  OpenIfUnopened();
}

void Registry::CountLost(Drop why, uint32_t slot) noexcept {
  FamilyNode* family = nullptr;
  {
    MutexLock lock(mutex_);
    const std::vector<SeriesNode*>& nodes = series_.nodes();  // in the order of their slots
    const auto after = std::ranges::upper_bound(nodes, slot, {}, &SeriesNode::slot);
    if (slot != kScratchSlot && after != nodes.begin()) family = (*std::prev(after))->family;
  }
  if (family == nullptr) return CountDropped(why);
  LogMetricOnce(family->loss_logged, family->group, family->name, "loses values: ", BadValueText(family->kind));
  CountLost(why, family->group, family->name);
}

void Registry::CountLost(Drop why, std::string_view group, std::string_view name) noexcept try {
  constexpr FamilyRequest kLosses{Kind::kCounter, "persia_metrics", "lost_total",
                                  "Losses of a metric's values, by metric and reason."};
  CountDropped(why);
  if (disabled()) return;
  FamilyNode* losses = FindMetric(kLosses.group, kLosses.name);
  if (losses == nullptr) losses = FindOrAddFamily(kLosses);
  if (losses == nullptr || losses->kind != kLosses.kind) return;  // the program has another metric of this name
  const std::string metric = std::string(group) + (group.empty() ? "" : "/") + std::string(name);
  const Label labels[] = {{"metric", metric}, {"reason", segment::kDropNames[static_cast<size_t>(why)]}};
  AddWhole(FindOrAddSeries(losses, labels), 1);
} catch (const std::bad_alloc&) {
  CountDropped(Drop::kOutOfMemory);
}

bool Registry::disabled() noexcept {
  OpenIfUnopened();
  return disabled_.load(std::memory_order_relaxed);
}

segment::EventSlot* Registry::NextEventSlot(uint64_t* ticket) noexcept {
  // Pairs with the release in EnsureRing and MakeFileRing.
  const EventRing* ring = ring_.load(std::memory_order_acquire);
  if (ring == nullptr) return nullptr;
  *ticket = ring->recorded->fetch_add(1, std::memory_order_relaxed);
  return &ring->slots[*ticket % writer_.ring_slots()];
}

}  // namespace abi_1
}  // namespace persia::metrics

#include "registry.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <new>

#include "bucket_index.h"
#include "log.h"
#include "text_hash.h"

namespace persia::metrics {
namespace {

using internal::FamilyNode;
using internal::kScratchSlot;
using internal::SeriesNode;
using segment::Drop;
using segment::Kind;

constexpr uint64_t kHashSeed = 0x243f'6a88'85a3'08d3;  // with a zero, zeros would stay zeros
constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxHelpBytes = 4096;
constexpr size_t kMaxLabels = 32;
constexpr size_t kMaxLabelValueBytes = 4096;

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  return "\"" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "...\"" : "\"");
}

// Cut so that no UTF-8 sequence is broken.
std::string Shortened(std::string_view text, size_t bytes) {
  if (text.size() > bytes) {
    while (bytes > 0 && (static_cast<uint8_t>(text[bytes]) & 0xC0) == 0x80) {
      --bytes;
    }
    text = text.substr(0, bytes);
  }
  return std::string(text);
}

// "" if they are good.
std::string WhyBadBounds(std::span<const double> bounds) {
  if (bounds.size() > segment::kMaxBounds) {
    return std::to_string(bounds.size()) + " bounds; at most " + std::to_string(segment::kMaxBounds) + " are possible";
  }
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (!std::isfinite(bounds[i])) {
      return "bound " + std::to_string(i) + " is not finite (the bucket up to infinity is always there)";
    }
    if (i > 0 && bounds[i] <= bounds[i - 1]) {
      return "bound " + std::to_string(i) + " (" + std::to_string(bounds[i]) + ") is not above the one before (" +
             std::to_string(bounds[i - 1]) + ")";
    }
  }
  return "";
}

std::string WhyBadLabels(std::span<const Label> sorted) {
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].name.empty() || sorted[i].name.size() > kMaxNameBytes) {
      return "the label name " + Quoted(sorted[i].name) + " must have 1 to " + std::to_string(kMaxNameBytes) + " bytes";
    }
    if (sorted[i].value.size() > kMaxLabelValueBytes) {
      return "the value of label " + Quoted(sorted[i].name) + " has more than " + std::to_string(kMaxLabelValueBytes) +
             " bytes";
    }
    if (i > 0 && sorted[i].name == sorted[i - 1].name) {
      return "label " + Quoted(sorted[i].name) + " is given twice";
    }
  }
  return "";
}

bool SameDefinition(const FamilyNode& node, const FamilyRequest& request) {
  return node.kind == request.kind && node.gauge_policy == request.gauge_policy &&
         std::ranges::equal(node.real_bounds(), request.bounds);
}

std::string Name(std::string_view group, std::string_view name) {
  return "metric " + Quoted(name) + " of group " + Quoted(group);
}

}  // namespace

Registry& Registry::Get() noexcept {
  // Never destroyed: handles are used by destructors of globals, and by threads that outlive main.
  alignas(Registry) static std::byte storage[sizeof(Registry)];
  static Registry* const registry = new (storage) Registry();
  return *registry;
}

FamilyNode* Registry::FindOrAddFamily(const FamilyRequest& request) noexcept try {
  const size_t hash = MixHash(MixHash(kHashSeed, request.group), request.name);
  // Events are counted under names of their own: torchelastic has metrics and events of one name.
  const bool event = request.kind == segment::Kind::kEvent;
  const auto matches = [&](const FamilyNode& node) {
    return node.group == request.group && node.name == request.name && (node.kind == segment::Kind::kEvent) == event;
  };
  FamilyNode* node = families_.Find(hash, matches);
  if (node == nullptr) {
    if (request.name.empty() || request.name.size() > kMaxNameBytes || request.group.size() > kMaxNameBytes) {
      LogLine(Name(request.group, request.name) + " counts nothing: names have 1 to " + std::to_string(kMaxNameBytes) +
              " bytes");
      CountDropped(Drop::kBadName);
      return nullptr;
    }
    if (const std::string why = WhyBadBounds(request.bounds); !why.empty()) {
      LogLine(Name(request.group, request.name) + " counts nothing: " + why);
      CountDropped(Drop::kBadBounds);
      return nullptr;
    }
    MutexLock lock(mutex_);
    node = families_.Find(hash, matches);
    if (node == nullptr) {
      return AddFamily(request, hash);
    }
  }
  if (SameDefinition(*node, request)) {
    return node;
  }
  LogLineOnce(node->conflict_said,
              Name(request.group, request.name) +
                  " was asked for again with another type, merge policy or bounds; that handle counts nothing");
  CountDropped(Drop::kTypeConflict);
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

FamilyNode* Registry::AddFamily(const FamilyRequest& request, size_t hash) {
  auto node = std::make_unique<FamilyNode>();
  node->hash = hash;
  node->group = request.group;
  node->name = request.name;
  node->help = Shortened(request.about.help, kMaxHelpBytes);
  node->unit = Shortened(request.about.unit, kMaxNameBytes);
  node->kind = request.kind;
  node->gauge_policy = request.gauge_policy;
  node->bound_count = static_cast<uint32_t>(request.bounds.size());
  node->bounds.assign(request.bounds.begin(), request.bounds.end());
  node->bounds.push_back(std::numeric_limits<double>::infinity());
  if (node->kind == Kind::kHistogram) {
    node->buckets = std::make_unique<const internal::BucketIndex>(MakeBucketIndex(node->real_bounds()));
  }
  node->ordinal = static_cast<uint32_t>(families_.nodes().size());
  if (Open() && !writer_.AddFamily(
                    {node->kind, node->gauge_policy, node->real_bounds(), node->group, node->name, node->help, node->unit})) {
    ReportFull(*node);
    return nullptr;
  }
  families_.Insert(node.get());
  return node.release();
}

uint32_t Registry::FindOrAddSeries(FamilyNode* family, LabelView labels) noexcept try {
  if (family == nullptr || disabled_.load(std::memory_order_relaxed)) {
    return kScratchSlot;
  }
  if (labels.empty()) {
    // Acquire, with the release in AddSeries: who has the slot sees the first values of its cells.
    const uint32_t slot = family->plain_slot.load(std::memory_order_acquire);
    if (slot != kScratchSlot) {
      return slot;
    }
  }
  if (labels.size() > kMaxLabels) {
    LogLineOnce(family->conflict_said, Name(family->group, family->name) + " was asked for with " +
                                           std::to_string(labels.size()) + " labels; more than " + std::to_string(kMaxLabels) +
                                           " count nothing");
    CountDropped(Drop::kBadName);
    return kScratchSlot;
  }
  const auto by_name = [](const Label& a, const Label& b) { return a.name < b.name; };
  if (std::is_sorted(labels.begin(), labels.end(), by_name)) {
    return FindOrAddSorted(family, labels);
  }
  std::array<Label, kMaxLabels> storage;
  const std::span<Label> sorted(storage.data(), labels.size());
  std::copy(labels.begin(), labels.end(), sorted.begin());
  std::sort(sorted.begin(), sorted.end(), by_name);
  return FindOrAddSorted(family, sorted);
} catch (const std::bad_alloc&) {
  return kScratchSlot;
}

uint32_t Registry::FindOrAddSorted(FamilyNode* family, LabelView sorted) {
  size_t hash = MixHash(kHashSeed, family->ordinal);
  for (const Label& label : sorted) {
    hash = MixHash(MixHash(hash, label.name), label.value);
  }
  const auto matches = [&](const SeriesNode& node) {
    return node.family == family && std::ranges::equal(node.labels, sorted, [](const auto& a, const Label& b) {
             return a.first == b.name && a.second == b.value;
           });
  };
  if (const SeriesNode* node = series_.Find(hash, matches)) {
    return node->slot;
  }
  if (series_refused_.load(std::memory_order_relaxed) > 0 &&
      series_refused_.fetch_add(1, std::memory_order_relaxed) % kRetryEvery != 0) {
    CountDropped(Drop::kSegmentFull);
    return kScratchSlot;
  }
  if (const std::string why = WhyBadLabels(sorted); !why.empty()) {
    LogLineOnce(family->conflict_said, "a series of " + Name(family->group, family->name) + " counts nothing: " + why);
    CountDropped(Drop::kBadName);
    return kScratchSlot;
  }
  MutexLock lock(mutex_);
  if (const SeriesNode* node = series_.Find(hash, matches)) {
    return node->slot;
  }
  return AddSeries(family, sorted, hash);
}

uint32_t Registry::FindOrAddChild(FamilyNode* family, const LabelSet& labels) noexcept try {
  std::vector<Label> views;
  views.reserve(labels.size());
  for (const auto& [name, value] : labels) {
    views.push_back({name, value});
  }
  return FindOrAddSeries(family, views);
} catch (const std::bad_alloc&) {
  return kScratchSlot;
}

uint32_t Registry::AddSeries(FamilyNode* family, std::span<const Label> sorted, size_t hash) {
  if (!Open()) {
    return kScratchSlot;
  }
  const uint32_t cells = segment::CellsOf(family->kind, family->bound_count);
  uint32_t slot = next_slot_;
  if (slot % internal::kChunkCells + cells > internal::kChunkCells) {
    slot = (slot / internal::kChunkCells + 1) * internal::kChunkCells;  // no series straddles two chunks
  }
  auto node = std::make_unique<SeriesNode>(SeriesNode{hash, family, {}, slot});
  for (const Label& label : sorted) {
    node->labels.emplace_back(label.name, label.value);
  }
  if (slot / internal::kChunkCells >= internal::kMaxRanges || !Publish(*node)) {
    ReportFull(*family);
    series_refused_.fetch_add(1, std::memory_order_relaxed);
    return kScratchSlot;
  }
  series_refused_.store(0, std::memory_order_relaxed);
  next_slot_ = slot + cells;
  series_.Insert(node.get());
  if (sorted.empty()) {
    family->plain_slot.store(slot, std::memory_order_release);
  }
  return node.release()->slot;
}

bool Registry::Publish(const SeriesNode& node) {
  if (!EnsureCommonChunk(node.slot / internal::kChunkCells)) {
    return false;
  }
  internal::Cell& first = internal::CellIn(internal::ChunkOf(internal::common_lane, node.slot), node.slot);
  if (node.family->kind == Kind::kGauge || node.family->kind == Kind::kStream) {
    first.store(segment::kUnset, std::memory_order_relaxed);
  }
  if (node.family->kind == Kind::kEvent) {
    ring_.store(writer_.EnsureRing(), std::memory_order_release);
  }
  if (writer_.AddSeries(node.family->ordinal, node.slot, node.labels)) {
    return true;
  }
  first.store(0, std::memory_order_relaxed);  // the next series may be given this slot
  return false;
}

void Registry::ReportFull(const FamilyNode& family) {
  const bool segment_is_full = writer_.full_reason() == Drop::kSegmentFull;
  LogLineOnce(
      full_said_,
      segment_is_full
          ? Name(family.group, family.name) +
                " found this process's segment full; new series count nothing, the others go on. Use fewer label values, "
                "or raise PERSIA_METRICS_SEGMENT_BYTES"
          : Name(family.group, family.name) + " found no room in " + writer_.directory() +
                ", where a quarter stays free for the job; new series count nothing, the others go on");
  writer_.CountDropped(writer_.full_reason());
}

void Registry::CountDropped(Drop why) noexcept {
  if (open_.load(std::memory_order_acquire)) {
    return writer_.CountDropped(why);
  }
  if (disabled_.load(std::memory_order_relaxed)) {
    return;
  }
  MutexLock lock(mutex_);
  if (Open()) {
    writer_.CountDropped(why);
  }
}

bool Registry::disabled() noexcept {
  if (!open_.load(std::memory_order_acquire) && !disabled_.load(std::memory_order_relaxed)) {
    MutexLock lock(mutex_);
    Open();
  }
  return disabled_.load(std::memory_order_relaxed);
}

segment::EventSlot* Registry::NextEventSlot(uint64_t* ticket) noexcept {
  // Pairs with the release in Publish.
  if (ring_.load(std::memory_order_acquire) == nullptr) {
    return nullptr;
  }
  *ticket = writer_.NextTicket();
  return &writer_.Slot(*ticket);
}

}  // namespace persia::metrics

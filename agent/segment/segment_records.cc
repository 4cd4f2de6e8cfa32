#include "segment/segment_records.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "native_grid.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;
using segment::RecordType;

// Reads a record from front to back. After a failure, every further read fails and returns an empty value.
class Cursor {
 public:
  Cursor(std::span<const std::byte> all, size_t begin, size_t end) : all_(all), at_(begin), end_(end) {}

  template <class T>
  T Take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T out{};
    if (Has(sizeof(T))) {
      std::memcpy(&out, all_.data() + at_, sizeof(T));
      at_ += sizeof(T);
    }
    return out;
  }
  std::string_view String() {
    const auto bytes = Take<uint32_t>();
    if (!Has(bytes)) return {};
    const std::string_view text(reinterpret_cast<const char*>(all_.data()) + at_, bytes);
    at_ += bytes;
    return text;
  }
  // As String. A text of more than `most` bytes is also noted in `excess`, unless another one is there.
  std::string_view String(uint32_t most, const char* what, std::string& excess) {
    const std::string_view text = String();
    if (text.size() > most && excess.empty())
      excess = std::string(what) + " of " + std::to_string(text.size()) + " bytes; the limit is " + std::to_string(most);
    return text;
  }
  bool Fail() {
    ok_ = false;
    return false;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t at() const { return at_; }

 private:
  bool Has(size_t bytes) { return ok_ && (bytes <= end_ - at_ || Fail()); }

  std::span<const std::byte> all_;
  size_t at_;
  size_t end_;
  bool ok_ = true;
};

// Counts a record that exceeds a limit.
void LeaveOut(RecordBatch& batch, const std::string& what, const std::string& excess) {
  ++batch.skipped;
  if (batch.over_limit.size() < RecordBatch::kMaxOverLimit) batch.over_limit.push_back(what + " is left out: " + excess);
}

std::string NameOf(std::string_view group, std::string_view name) {
  const auto shortened = [](std::string_view text) { return text.substr(0, segment::kMaxNameBytes); };
  return "metric " + Quoted(std::string(shortened(group)) + "/" + std::string(shortened(name)));
}

const char* ParseIdentity(Cursor& in, RecordBatch& batch) {
  const auto fixed = in.Take<segment::IdentityFixed>();
  SegmentIdentity identity;
  std::string excess;
  identity.replica = fixed.replica;
  identity.restart_count = fixed.restart_count;
  const std::string_view job = in.String(segment::kMaxLabelValueBytes, "a job name", excess);
  const std::string_view run_id = in.String(segment::kMaxLabelValueBytes, "a run id", excess);
  const std::string_view role = in.String(segment::kMaxNameBytes, "a role", excess);  // on each series
  std::string excess_labels;
  size_t label_bytes = 0;
  // Ends with the record, even if the record claims to have more labels.
  for (uint32_t i = 0; i < fixed.labels && in.ok(); ++i) {
    const std::string_view name = in.String();
    const std::string_view value = in.String();
    const size_t bytes = name.size() + value.size();
    if (identity.labels.size() < segment::kMaxLabels && label_bytes + bytes <= segment::kMaxIdentityLabelBytes) {
      identity.labels.emplace_back(name, value);
      label_bytes += bytes;
    } else if (excess_labels.empty()) {
      excess_labels = "the label " + Quoted(name.substr(0, segment::kMaxNameBytes)) + " of the process";
    }
  }
  if (!in.ok()) return "an identity record is shorter than its contents";
  if (!excess.empty()) {
    LeaveOut(batch, "an identity", "it has " + excess);
    return nullptr;
  }
  if (!excess_labels.empty()) {
    LeaveOut(batch, excess_labels,
             "the labels of a process may be " + std::to_string(segment::kMaxLabels) + ", of " +
                 std::to_string(segment::kMaxIdentityLabelBytes) + " bytes in all");
  }
  identity.job = job;
  identity.run_id = run_id;
  identity.role = role;
  const auto by_name = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(identity.labels.begin(), identity.labels.end(), by_name);
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  identity.labels.erase(std::unique(identity.labels.begin(), identity.labels.end(), same_name), identity.labels.end());
  batch.identity = std::move(identity);
  batch.forked = (fixed.flags & segment::kForked) != 0;
  return nullptr;
}

const char* ParseWriter(Cursor& in, RecordBatch& batch) {
  std::string excess;
  const std::string_view language = in.String(segment::kMaxNameBytes, "a language", excess);
  const std::string_view version = in.String(segment::kMaxNameBytes, "a version", excess);
  if (!in.ok()) return "a writer record is shorter than its contents";
  if (!excess.empty())
    LeaveOut(batch, "a writer", "it has " + excess);
  else
    batch.writer = {std::string(language), std::string(version)};
  return nullptr;
}

bool KnownKind(uint8_t kind) {
  switch (static_cast<Kind>(kind)) {
    case Kind::kCounter:
    case Kind::kGauge:
    case Kind::kHistogram:
    case Kind::kNativeHistogram:
    case Kind::kStream:
    case Kind::kEvent:
    case Kind::kClock:
      return true;
  }
  return false;
}

const char* ParseFamily(Cursor& in, size_t before, RecordBatch& batch) {
  const auto fixed = in.Take<segment::FamilyFixed>();
  SegmentFamily family;
  if (!in.ok()) return "a family record is shorter than its contents";
  if (before + batch.families.size() >= segment::kMaxFamilies) {
    LeaveOut(batch, "a metric", "the segment has more than " + std::to_string(segment::kMaxFamilies) + " metrics");
    return nullptr;
  }
  if (!KnownKind(fixed.kind) || fixed.gauge_policy > static_cast<uint8_t>(GaugePolicy::kEach)) {
    // The rest may have an unknown layout.
    ++batch.skipped;
    batch.families.push_back(std::move(family));
    return nullptr;
  }
  family.known = true;
  family.clock = static_cast<Kind>(fixed.kind) == Kind::kClock;
  family.kind = family.clock ? Kind::kCounter : static_cast<Kind>(fixed.kind);
  family.policy = static_cast<GaugePolicy>(fixed.gauge_policy);
  if (family.kind == Kind::kNativeHistogram) family.max_buckets = fixed.max_buckets;
  if (fixed.bounds > (HasBounds(family.kind) ? segment::kMaxBounds : 0))
    return "a family record has more bounds than its kind allows";
  for (uint32_t i = 0; i < fixed.bounds; ++i) family.bounds.push_back(in.Take<double>());
  std::string excess;
  const std::string_view group = in.String(segment::kMaxNameBytes, "a group", excess);
  const std::string_view name = in.String(segment::kMaxNameBytes, "a name", excess);
  const std::string_view help = in.String(segment::kMaxHelpBytes, "a help text", excess);
  const std::string_view unit = in.String(segment::kMaxNameBytes, "a unit", excess);
  if (!in.ok()) return "a family record is shorter than its contents";
  if (!excess.empty()) {
    LeaveOut(batch, NameOf(group, name), "it has " + excess);
    batch.families.emplace_back();
    return nullptr;
  }
  family.group = group;
  family.name = name;
  family.help = help;
  family.unit = unit;
  if (!GoodBounds(family.kind, family.bounds)) {
    return family.kind == Kind::kNativeHistogram
               ? "a family record of a native histogram has bounds that are not those of a schema"
               : "a family record has bounds that are not finite and ascending";
  }
  batch.families.push_back(std::move(family));
  return nullptr;
}

const char* ParseSeries(Cursor& in, std::span<const SegmentFamily> before, RecordBatch& batch) {
  const auto fixed = in.Take<segment::SeriesFixed>();
  if (!in.ok()) return "a series record is shorter than its contents";
  const size_t families = before.size() + batch.families.size();
  if (fixed.family >= families) {
    if (families < segment::kMaxFamilies) return "a series record names a family that does not exist";
    ++batch.skipped;  // its family was left out
    return nullptr;
  }
  const SegmentFamily& family =
      fixed.family < before.size() ? before[fixed.family] : batch.families[fixed.family - before.size()];
  if (!family.known) {
    ++batch.skipped;
    return nullptr;
  }
  SegmentSeriesRecord series;
  series.family = fixed.family;
  series.slot = fixed.slot;
  series.cells = segment::CellsOf(family.clock ? Kind::kClock : family.kind, static_cast<uint32_t>(family.bounds.size()));
  series.labels = fixed.labels;
  series.removed = fixed.removed != 0;
  series.labels_at = in.at();
  std::string_view previous;
  std::string excess;
  for (uint32_t i = 0; i < fixed.labels; ++i) {
    const std::string_view name = in.String(segment::kMaxNameBytes, "a label name", excess);
    in.String(segment::kMaxLabelValueBytes, "a label value", excess);
    if (!in.ok()) return "a series record is shorter than its contents";
    if (i > 0 && name <= previous) return "a series record has labels that are not sorted by name, or a name twice";
    previous = name;
  }
  // Range 0 is reserved, and a series lies within one chunk.
  if (series.slot < segment::kCellsPerChunk || series.slot % segment::kCellsPerChunk + series.cells > segment::kCellsPerChunk)
    return "a series record names an invalid slot";
  if (fixed.labels > segment::kMaxLabels)
    excess = std::to_string(fixed.labels) + " labels; the limit is " + std::to_string(segment::kMaxLabels);
  if (!excess.empty()) {
    LeaveOut(batch, "a series of " + NameOf(family.group, family.name), "it has " + excess);
    return nullptr;
  }
  if (batch.series.size() >= batch.max_series) {
    LeaveOut(batch, "a series of " + NameOf(family.group, family.name),
             "the segment has more than " + std::to_string(segment::kMaxSeries) + " series");
    return nullptr;
  }
  batch.series.push_back(series);
  return nullptr;
}

}  // namespace

bool HasBounds(Kind kind) { return kind == Kind::kHistogram || kind == Kind::kNativeHistogram || kind == Kind::kEvent; }

bool GoodBounds(Kind kind, std::span<const double> bounds) {
  const bool ascending =
      std::all_of(bounds.begin(), bounds.end(), [](double bound) { return std::isfinite(bound); }) &&
      std::adjacent_find(bounds.begin(), bounds.end(), [](double a, double b) { return a >= b; }) == bounds.end();
  if (kind != Kind::kNativeHistogram || !ascending) return ascending;
  if (bounds.size() < 2 || bounds[0] < std::numeric_limits<double>::min()) return false;
  const int schema = NativeSchemaOf(bounds);
  if (schema < segment::kNativeLeastSchema || schema > segment::kNativeMostSchema) return false;
  const int first = segment::NearestNativeIndex(schema, bounds[0]);
  constexpr double kTolerance = 1e-9;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double expected = segment::NativeBound(schema, first + static_cast<int>(i));
    if (!(std::abs(bounds[i] - expected) <= kTolerance * expected)) return false;
  }
  return true;
}

int NativeSchemaOf(std::span<const double> bounds) {
  return static_cast<int>(-std::lround(std::log2(std::log2(bounds[1]) - std::log2(bounds[0]))));
}

std::string_view CheckedString(std::span<const std::byte> all, size_t& at) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, all.data() + at, sizeof bytes);
  const std::string_view text(reinterpret_cast<const char*>(all.data()) + at + sizeof bytes, bytes);
  at += sizeof bytes + bytes;
  return text;
}

bool ParseRecords(std::span<const std::byte> all, size_t& at, size_t end, std::span<const SegmentFamily> families,
                  RecordBatch& batch, std::string& error) {
  while (at < all.size()) {
    segment::RecordHeader record{};
    const char* why = nullptr;
    if (all.size() - at >= sizeof record) std::memcpy(&record, all.data() + at, sizeof record);
    if (record.bytes < sizeof record || record.bytes % 8 != 0 || record.bytes > segment::kMaxRecordBytes ||
        record.bytes > end - at) {
      why = "a record has an invalid length";
    } else if (record.bytes > all.size() - at) {
      return true;
    } else {
      Cursor in(all, at + sizeof record, at + record.bytes);
      switch (static_cast<RecordType>(record.type)) {
        case RecordType::kIdentity:
          why = ParseIdentity(in, batch);
          break;
        case RecordType::kFamily:
          why = ParseFamily(in, families.size(), batch);
          break;
        case RecordType::kSeries:
          why = ParseSeries(in, families, batch);
          break;
        case RecordType::kWriter:
          why = ParseWriter(in, batch);
          break;
        default:
          ++batch.skipped;
      }
    }
    if (why != nullptr) {
      error = std::string(why) + ": byte " + std::to_string(at) + " of the descriptors, type " + std::to_string(record.type) +
              ", " + std::to_string(record.bytes) + " bytes";
      return false;
    }
    at += record.bytes;
  }
  return true;
}

}  // namespace persia::agent

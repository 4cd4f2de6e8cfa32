#include "segment/segment_records.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

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
    if (!Has(bytes)) {
      return {};
    }
    const std::string_view text(reinterpret_cast<const char*>(all_.data()) + at_, bytes);
    at_ += bytes;
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

const char* ParseIdentity(Cursor& in, RecordBatch& batch) {
  const auto fixed = in.Take<segment::IdentityFixed>();
  SegmentIdentity identity;
  identity.replica = fixed.replica;
  identity.restart_count = fixed.restart_count;
  identity.job = in.String();
  identity.run_id = in.String();
  identity.role = in.String();
  // Ends with the record, however many labels the record claims to have.
  for (uint32_t i = 0; i < fixed.labels && in.ok(); ++i) {
    const std::string_view name = in.String();
    const std::string_view value = in.String();
    identity.labels.emplace_back(name, value);
  }
  if (!in.ok()) return "an identity record is shorter than its contents";
  const auto by_name = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(identity.labels.begin(), identity.labels.end(), by_name);
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  identity.labels.erase(std::unique(identity.labels.begin(), identity.labels.end(), same_name), identity.labels.end());
  batch.identity = std::move(identity);
  return nullptr;
}

const char* ParseWriter(Cursor& in, RecordBatch& batch) {
  SegmentWriterInfo writer;
  writer.language = in.String();
  writer.library_version = in.String();
  if (!in.ok()) return "a writer record is shorter than its contents";
  batch.writer = std::move(writer);
  return nullptr;
}

bool KnownKind(uint8_t kind) {
  switch (static_cast<Kind>(kind)) {
    case Kind::kCounter:
    case Kind::kGauge:
    case Kind::kHistogram:
    case Kind::kStream:
    case Kind::kEvent:
      return true;
  }
  return false;
}

bool GoodBounds(const std::vector<double>& bounds) {
  return std::all_of(bounds.begin(), bounds.end(), [](double bound) { return std::isfinite(bound); }) &&
         std::adjacent_find(bounds.begin(), bounds.end(), [](double a, double b) { return a >= b; }) == bounds.end();
}

const char* ParseFamily(Cursor& in, RecordBatch& batch) {
  const auto fixed = in.Take<segment::FamilyFixed>();
  SegmentFamily family;
  if (!in.ok()) return "a family record is shorter than its contents";
  if (!KnownKind(fixed.kind) || fixed.gauge_policy > static_cast<uint8_t>(GaugePolicy::kEach)) {
    // The rest may have an unknown layout.
    ++batch.skipped;
    batch.families.push_back(std::move(family));
    return nullptr;
  }
  family.known = true;
  family.kind = static_cast<Kind>(fixed.kind);
  family.policy = static_cast<GaugePolicy>(fixed.gauge_policy);
  const bool has_bounds = family.kind == Kind::kHistogram || family.kind == Kind::kEvent;
  if (fixed.bounds > (has_bounds ? segment::kMaxBounds : 0)) return "a family record has more bounds than its kind allows";
  for (uint32_t i = 0; i < fixed.bounds; ++i) {
    family.bounds.push_back(in.Take<double>());
  }
  family.group = in.String();
  family.name = in.String();
  family.help = in.String();
  family.unit = in.String();
  if (!in.ok()) return "a family record is shorter than its contents";
  if (!GoodBounds(family.bounds)) return "a family record has bounds that are not finite and ascending";
  batch.families.push_back(std::move(family));
  return nullptr;
}

const char* ParseSeries(Cursor& in, std::span<const SegmentFamily> before, RecordBatch& batch) {
  const auto fixed = in.Take<segment::SeriesFixed>();
  if (!in.ok()) return "a series record is shorter than its contents";
  if (fixed.family >= before.size() + batch.families.size()) return "a series record names a family that does not exist";
  const SegmentFamily& family =
      fixed.family < before.size() ? before[fixed.family] : batch.families[fixed.family - before.size()];
  if (!family.known) {
    ++batch.skipped;
    return nullptr;
  }
  SegmentSeriesRecord series;
  series.family = fixed.family;
  series.slot = fixed.slot;
  series.cells = segment::CellsOf(family.kind, static_cast<uint32_t>(family.bounds.size()));
  series.labels = fixed.labels;
  series.labels_at = in.at();
  std::string_view previous;
  for (uint32_t i = 0; i < fixed.labels; ++i) {
    const std::string_view name = in.String();
    in.String();
    if (!in.ok()) return "a series record is shorter than its contents";
    if (i > 0 && name <= previous) return "a series record has labels that are not sorted by name, or a name twice";
    previous = name;
  }
  // Range 0 is reserved, and a series lies within one chunk.
  if (series.slot < segment::kCellsPerChunk || series.slot % segment::kCellsPerChunk + series.cells > segment::kCellsPerChunk) {
    return "a series record names an invalid slot";
  }
  batch.series.push_back(series);
  return nullptr;
}

}  // namespace

std::string_view CheckedString(std::span<const std::byte> all, size_t& at) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, all.data() + at, sizeof bytes);
  const std::string_view text(reinterpret_cast<const char*>(all.data()) + at + sizeof bytes, bytes);
  at += sizeof bytes + bytes;
  return text;
}

bool ParseRecords(std::span<const std::byte> all, size_t begin, std::span<const SegmentFamily> families, RecordBatch& batch,
                  std::string& error) {
  size_t at = begin;
  while (at < all.size()) {
    segment::RecordHeader record{};
    const char* why = nullptr;
    if (all.size() - at >= sizeof record) {
      std::memcpy(&record, all.data() + at, sizeof record);
    }
    if (record.bytes < sizeof record || record.bytes % 8 != 0 || record.bytes > all.size() - at) {
      why = "a record has an invalid length";
    } else {
      Cursor in(all, at + sizeof record, at + record.bytes);
      switch (static_cast<RecordType>(record.type)) {
        case RecordType::kIdentity:
          why = ParseIdentity(in, batch);
          break;
        case RecordType::kFamily:
          why = ParseFamily(in, batch);
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

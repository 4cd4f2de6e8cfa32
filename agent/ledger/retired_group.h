// The families, series and values of the ended processes of one role, replica and set of labels, laid out as those of a
// segment, so that they are merged like one.
//
// The caller adds the values (retired.h). Gauges expire. Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "segment/measurements.h"
#include "segment/segment_values.h"

namespace persia::agent {

// Whether the cell holds a whole number that can be summed: neither a sum of doubles, nor a value that only the common lane
// has.
[[nodiscard]] bool IsWholeCell(persia::metrics::segment::Kind kind, uint32_t cell);
// The number of sums of doubles in a series of this kind.
[[nodiscard]] uint32_t SumCount(persia::metrics::segment::Kind kind);
// Whether a series of this kind has a value that is exposed as a gauge and expires.
[[nodiscard]] bool HasGauge(persia::metrics::segment::Kind kind);
// The labels of a series, encoded as in its record.
[[nodiscard]] std::string_view LabelBytes(std::span<const std::byte> records, const SegmentSeriesRecord& record);

class RetiredGroup {
 public:
  struct Gauge {
    uint64_t tick = 0;  // of the last fold; the values of one tick are combined by the gauge's policy
    uint64_t count = 0;
    uint64_t change = 0;
    uint64_t birth_unix_ns = 0;
    std::chrono::steady_clock::time_point expires{};
    std::chrono::system_clock::time_point folded_wall{};
  };

  // `number` tells its id from those of other groups.
  RetiredGroup(SegmentIdentity identity, size_t number);

  [[nodiscard]] Measurements Input() const;
  [[nodiscard]] const SegmentIdentity& identity() const { return identity_; }
  [[nodiscard]] size_t series_count() const { return series_.size(); }
  [[nodiscard]] const std::vector<Gauge>& gauges() const { return gauges_; }

  void UpdateIdentity(const SegmentIdentity& identity, uint64_t birth_unix_ns);
  [[nodiscard]] bool HasFamily(const SegmentFamily& family) const;
  // Returns the family's number. A newer definition replaces help and unit of the known one.
  uint32_t FindOrAddFamily(const SegmentFamily& family, FamilyAge age);
  // Returns the series' number; SIZE_MAX if it is unknown and `may_add` is false. `labels`: as of LabelBytes.
  size_t FindOrAddSeries(uint32_t family, uint32_t ordinal, std::string_view labels, uint32_t label_count, bool may_add);

  // The values of a series.
  [[nodiscard]] uint64_t* Cells(size_t series) { return values_.wholes.data() + series_[series].whole; }
  [[nodiscard]] const SegmentSeries& series(size_t number) const { return series_[number]; }
  [[nodiscard]] const SegmentFamily& family(size_t number) const { return families_[number]; }
  [[nodiscard]] uint64_t& Common(size_t series) { return values_.commons[series_[series].common]; }
  [[nodiscard]] Gauge& GaugeOf(size_t series) { return gauges_[series_[series].common]; }
  uint64_t* dropped() { return values_.dropped; }
  [[nodiscard]] SegmentValues& values() { return values_; }
  [[nodiscard]] std::vector<uint64_t>& changed_at() { return changed_at_; }
  // `which`: 0 up to SumCount.
  void SetSum(size_t series, uint32_t which, std::span<const double> terms);
  // As of LabelBytes.
  [[nodiscard]] std::string_view LabelsOf(size_t series) const;

  // Unsets the expired gauges, and removes them, with their families, once they are more than half of the series.
  void ExpireGauges(std::chrono::steady_clock::time_point now);
  void SetGaugeExpiry(size_t series, std::chrono::steady_clock::time_point expires);
  // Removes the terms of replaced sums once there are many.
  void Compact();

 private:
  void DropUnsetGauges();

  SegmentIdentity identity_;
  const std::string id_;
  uint64_t birth_unix_ns_ = 0;
  uint64_t generation_ = 1;
  std::vector<SegmentFamily> families_;
  std::vector<FamilyAge> ages_;
  std::unordered_map<std::string, uint32_t> family_numbers_;
  std::vector<SegmentSeries> series_;
  std::vector<uint32_t> ordinals_;
  std::vector<std::byte> labels_;
  std::unordered_map<std::string, size_t> series_numbers_;
  SegmentValues values_;
  std::vector<uint64_t> changed_at_;
  std::vector<Gauge> gauges_;  // by common cell; unused for events
  std::chrono::steady_clock::time_point next_expiry_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace persia::agent

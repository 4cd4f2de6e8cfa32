// What the ended processes of one role, replica and set of labels have measured: their families, their series, and one value
// for each, laid out as a segment's, so that a merge takes it for one.
//
// Whole numbers and exact sums are its caller's to add up (retired.h); it finds their places. Gauges end when their time is
// over. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "source/merge_input.h"
#include "source/segment_values.h"

namespace persia::agent {

// Which cells of a series of this kind hold whole numbers that add up: not the sums of doubles, nor what only the common lane
// counts.
[[nodiscard]] bool IsWholeCell(persia::metrics::segment::Kind kind, uint32_t cell);
// How many sums of doubles a series of this kind has.
[[nodiscard]] uint32_t RealsOf(persia::metrics::segment::Kind kind);
// Whether it has a value that is shown as a gauge, and ends as one.
[[nodiscard]] bool HasGauge(persia::metrics::segment::Kind kind);
// The bytes of a series' labels, as a record has them.
[[nodiscard]] std::string_view LabelBytes(std::span<const std::byte> records, const SegmentSeriesRecord& record);

// The measurements of the ended processes of one identity record but for its counts: role, replica, labels.
class RetiredGroup {
 public:
  struct Gauge {
    uint64_t tick = 0;  // in which it was folded; values of one tick come together by the gauge's policy
    uint64_t count = 0;
    uint64_t change = 0;
    uint64_t birth_unix_ns = 0;
    std::chrono::steady_clock::time_point ends{};
    std::chrono::system_clock::time_point folded_wall{};
  };

  // `number` makes its id, which no segment has.
  RetiredGroup(SegmentIdentity identity, size_t number);

  [[nodiscard]] MergeInput Input() const;
  [[nodiscard]] const SegmentIdentity& identity() const { return identity_; }
  [[nodiscard]] size_t series_count() const { return series_.size(); }
  [[nodiscard]] const std::vector<Gauge>& gauges() const { return gauges_; }

  void RenewIdentity(const SegmentIdentity& identity, uint64_t birth_unix_ns);
  [[nodiscard]] bool KnowsFamily(const SegmentFamily& family) const;
  // The family's number, added if it is not known; a newer definition renews what may differ (help, unit).
  uint32_t TakeFamily(const SegmentFamily& family, FamilyAge age);
  // The series' number; SIZE_MAX if it is not known and `may_add` is false. `labels`: as a record holds them.
  size_t TakeSeries(uint32_t family, uint32_t ordinal, std::string_view labels, uint32_t label_count, bool may_add);

  // The places of a series' values.
  [[nodiscard]] uint64_t* Cells(size_t series) { return values_.wholes.data() + series_[series].whole; }
  [[nodiscard]] const SegmentSeries& series(size_t number) const { return series_[number]; }
  [[nodiscard]] const SegmentFamily& family(size_t number) const { return families_[number]; }
  [[nodiscard]] uint64_t& Common(size_t series) { return values_.commons[series_[series].common]; }
  [[nodiscard]] Gauge& GaugeOf(size_t series) { return gauges_[series_[series].common]; }
  uint64_t* dropped() { return values_.dropped; }
  [[nodiscard]] SegmentValues& values() { return values_; }
  [[nodiscard]] std::vector<uint64_t>& changed_at() { return changed_at_; }
  // `which` of its sums, from 0.
  void SetReal(size_t series, uint32_t which, std::span<const double> terms);
  // The bytes of the series' labels.
  [[nodiscard]] std::string_view LabelsOf(size_t series) const;

  // Hides the gauges whose time is over, and takes them away once they are many.
  void EndGauges(std::chrono::steady_clock::time_point now);
  void SetGaugeEnd(size_t series, std::chrono::steady_clock::time_point ends);
  // Throws away sums that were replaced, once there are many.
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
  std::vector<Gauge> gauges_;  // by common cell; of an event unused
  std::chrono::steady_clock::time_point next_end_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace persia::agent

// The families, series and values of the ended processes of one role, replica and set of labels, laid out as those of a
// segment, so that they are merged like one.
//
// The caller adds the values (retired_processes.h). A gauge keeps a value for each ended process until that value expires. Of
// each gauge at most kMaxValuesOfGauge are kept, and of all gauges of a group kMaxValuesOfGroup; beyond, the oldest values of a
// gauge are combined into one by the gauge's policy, which expires with the oldest of them. Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ledger/owned_series.h"

namespace persia::agent {

// Orders the values of a gauge, the newest last: when it ended, when it last changed, when its process was born.
struct GaugeAge {
  uint64_t ended_tick = 0;
  uint64_t changed_tick = 0;
  uint64_t birth_unix_ns = 0;

  friend auto operator<=>(const GaugeAge&, const GaugeAge&) = default;
};

class RetiredGroup {
 public:
  static constexpr size_t kMaxValuesOfGauge = 1000;
  static constexpr size_t kMaxValuesOfGroup = 100'000;

  // `number` distinguishes its id from those of other groups.
  RetiredGroup(SegmentIdentity identity, size_t number);

  [[nodiscard]] Measurements Input() const;
  [[nodiscard]] const SegmentIdentity& identity() const { return identity_; }
  [[nodiscard]] size_t series_count() const { return own_.series.size(); }
  // About the memory of what processes have chosen: texts, bounds and cells, with their copies in the state, the layout and the
  // pages.
  [[nodiscard]] uint64_t bytes() const;
  // Of a gauge, and of a stream's last value.
  [[nodiscard]] std::span<const EndedValue> ValuesOf(size_t series) const { return ended_values_[own_.series[series].common]; }

  void UpdateIdentity(const SegmentIdentity& identity, uint64_t birth_unix_ns);
  [[nodiscard]] bool HasFamily(const SegmentFamily& family) const;
  // Returns the family's number. A newer definition replaces help and unit of the known one.
  uint32_t FindOrAddFamily(const SegmentFamily& family, FamilyAge age);
  // Returns the series' number; SIZE_MAX if it is unknown and `may_add` is false. `labels`: as of LabelBytes. `birth_unix_ns`:
  // of the process that has the series; the earliest is kept.
  size_t FindOrAddSeries(uint32_t family, uint32_t ordinal, std::string_view labels, uint32_t label_count,
                         uint64_t birth_unix_ns, bool may_add);

  // Whether the process that ended last among those with the series had removed it.
  void SetRemoved(size_t series, bool removed);

  // Of the state, except for the values of a gauge. REQUIRES: made for the kind of the series.
  void Restore(size_t series, const SeriesValues& values) { own_.Set(series, values); }

  // The values of a series.
  [[nodiscard]] uint64_t* Cells(size_t series) { return own_.values.wholes.data() + own_.series[series].whole; }
  [[nodiscard]] const SegmentSeries& series(size_t number) const { return own_.series[number]; }
  [[nodiscard]] const SegmentFamily& family(size_t number) const { return own_.families[number]; }
  [[nodiscard]] uint64_t& Common(size_t series) { return own_.values.commons[own_.series[series].common]; }
  uint64_t* dropped() { return own_.values.dropped; }
  [[nodiscard]] SegmentValues& values() { return own_.values; }
  // `which`: 0 up to SumCount.
  void SetSum(size_t series, uint32_t which, std::span<const double> terms);
  // As of LabelBytes.
  [[nodiscard]] std::string_view LabelsOf(size_t series) const;

  // Adds a value to a gauge with the policy `sum`, `min`, `max` or `avg`; with another, a newer value replaces the older one.
  void AddGaugeValue(size_t series, const EndedValue& value, const GaugeAge& age = {});
  // Removes the expired values, and the gauges without a value, with their families, once they are more than half of the
  // series.
  void ExpireGauges(std::chrono::steady_clock::time_point now);

 private:
  void DropUnsetGauges();

  SegmentIdentity identity_;
  const std::string id_;
  uint64_t birth_unix_ns_ = 0;
  uint64_t generation_ = 1;
  OwnedSeries own_;
  uint64_t family_bytes_ = 0;
  std::vector<FamilyAge> ages_;
  std::unordered_map<std::string, uint32_t> family_numbers_;
  std::vector<uint32_t> ordinals_;
  std::unordered_map<std::string, size_t> series_numbers_;
  // By common cell; unused for events.
  std::vector<std::vector<EndedValue>> ended_values_;  // the newest last
  std::vector<GaugeAge> gauge_ages_;                   // of the newest value
  std::chrono::steady_clock::time_point next_expiry_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace persia::agent

// The input of a merge: the measurements of one process, or of all ended processes of one identity together.
//
// Thread safety: a view; the data that it points to must not change during the merge.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/process_id.h"
#include "segment/segment_reader.h"
#include "segment/segment_records.h"

namespace persia::agent {

// Orders definitions of a family, the newest last: by the start of the process, its segment's id, the index of the family.
struct FamilyAge {
  uint64_t birth_unix_ns = 0;
  std::string segment_id = {};
  uint64_t number = 0;

  friend auto operator<=>(const FamilyAge&, const FamilyAge&) = default;
};

// The value of a gauge that a process left when it ended, or the values of several processes, combined by the gauge's policy.
struct EndedValue {
  double value = 0;
  uint32_t processes = 1;
  std::chrono::steady_clock::time_point expires{};
  std::chrono::system_clock::time_point ended{};
};

struct Measurements {
  std::string_view id;      // the segment's; of ended processes an id that no segment has
  uint64_t generation = 0;  // rises when identity, families or series change
  const SegmentIdentity* identity = nullptr;
  uint64_t birth_unix_ns = 0;
  std::span<const SegmentFamily> families = {};
  std::span<const SegmentSeries> series = {};
  std::span<const std::byte> records = {};  // hold the labels of the series
  const SegmentValues* values = nullptr;
  // By SegmentSeries::common: the collector's tick of the value's last change.
  std::span<const uint64_t> changed_at = {};
  // Sentences on records that were left out, for the log.
  std::span<const std::string> over_limit = {};
  // The process has ended: its value of a gauge counts only if no living process has set the gauge.
  bool ended = false;
  // The number of the process among those of its identity.
  uint32_t ordinal = 0;
  // Of several processes: by family and by series, instead of `birth_unix_ns` (the newest process's) and `ordinal`.
  std::span<const FamilyAge> family_ages = {};
  std::span<const uint32_t> ordinals = {};
  // When series began to count, if that is not `birth_unix_ns`: of one process, series that it registered after a read; of
  // several processes, by series, the earliest time; 0: unknown.
  std::span<const LaterSeries> later_series = {};
  std::span<const uint64_t> births = {};
  // Of ended processes together, by SegmentSeries::common: the values of a gauge, of which `values` has the newest alone.
  std::span<const std::vector<EndedValue>> ended_values = {};

  [[nodiscard]] FamilyAge AgeOf(size_t family) const {
    return family_ages.empty() ? FamilyAge{birth_unix_ns, std::string(id), family} : family_ages[family];
  }
  [[nodiscard]] uint64_t BirthOf(size_t series_index) const {
    if (!births.empty()) return births[series_index];
    const auto after = std::ranges::upper_bound(later_series, series_index, {}, &LaterSeries::first);
    return after == later_series.begin() ? birth_unix_ns : std::max(birth_unix_ns, std::prev(after)->unix_ns);
  }
  [[nodiscard]] ProcessPlace place() const { return {identity->rank(), ordinal}; }
  [[nodiscard]] uint32_t OrdinalOf(size_t series_index) const { return ordinals.empty() ? ordinal : ordinals[series_index]; }
};

// The result of the reader's last Read, as for a living process with ordinal 0. Valid until its next Read.
Measurements MeasurementsOf(const SegmentReader& reader);

}  // namespace persia::agent

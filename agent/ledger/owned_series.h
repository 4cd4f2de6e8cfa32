// Families, series and values that the ledger owns, laid out as those of a segment, so that they are merged like one.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "segment/measurements.h"
#include "segment/segment_records.h"

namespace persia::agent {

// Whether the cell holds a whole number that can be summed: neither a sum of doubles, nor a value that only the common lane
// has.
[[nodiscard]] bool IsWholeCell(persia::metrics::segment::Kind kind, uint32_t cell);
// The number of sums of doubles in a series of this kind.
[[nodiscard]] uint32_t SumCount(persia::metrics::segment::Kind kind);
// Whether a series of this kind has a value that is exposed as a gauge and expires.
[[nodiscard]] bool HasGauge(persia::metrics::segment::Kind kind);
// Whether a series of this kind has a cell in the common lane.
[[nodiscard]] bool HasCommon(persia::metrics::segment::Kind kind);
// The labels of a series, encoded as in its record.
[[nodiscard]] std::string_view LabelBytes(std::span<const std::byte> records, const SegmentSeriesRecord& record);

// What a series has beside its labels, to be compared and saved.
struct SeriesValues {
  SeriesValues(persia::metrics::segment::Kind kind, uint32_t all_cells);
  SeriesValues(const Measurements& of, size_t number);

  bool removed = false;
  std::vector<uint64_t> cells;                               // the whole ones
  std::vector<std::vector<double>> sums;                     // the terms of each sum of doubles
  std::optional<std::pair<uint64_t, uint64_t>> common = {};  // its bits, and when they changed; none: the kind has none

  friend bool operator==(const SeriesValues&, const SeriesValues&) = default;
};

template <class Archive>
void Fields(Archive& archive, SeriesValues& values) {
  archive(values.removed);
  for (uint64_t& cell : values.cells) archive(cell);
  for (std::vector<double>& terms : values.sums) archive(terms);
  if (values.common) archive(*values.common);
}

struct OwnedSeries {
  std::vector<SegmentFamily> families;
  std::vector<SegmentSeries> series;
  std::vector<uint64_t> births;  // by series
  std::vector<std::byte> labels;
  SegmentValues values;
  std::vector<uint64_t> changed_at;  // by common cell

  // Appends a series. Its values are 0, and a gauge is unset. `label_bytes`: as of LabelBytes.
  void Add(uint32_t family, std::string_view label_bytes, uint32_t label_count, uint64_t birth_unix_ns);
  // REQUIRES: made for the kind of the series.
  void Set(size_t number, const SeriesValues& to);

  // As of ended processes. The caller sets id, identity, birth and ordinals. Valid until the next change.
  [[nodiscard]] Measurements View() const;
};

}  // namespace persia::agent

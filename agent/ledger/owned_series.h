// Families, series and values that the ledger owns, laid out as those of a segment, so that they are merged like one.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
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
// Whether a series of this kind has a cell in the common lane.
[[nodiscard]] bool HasCommon(persia::metrics::segment::Kind kind);
// The numbers of the removed series among these.
[[nodiscard]] std::vector<uint32_t> NumbersOfRemoved(std::span<const SegmentSeries> series);
// The labels of a series, encoded as in its record.
[[nodiscard]] std::string_view LabelBytes(std::span<const std::byte> records, const SegmentSeriesRecord& record);

struct OwnedSeries {
  std::vector<SegmentFamily> families;
  std::vector<SegmentSeries> series;
  std::vector<uint64_t> births;  // by series
  std::vector<std::byte> labels;
  SegmentValues values;
  std::vector<uint64_t> changed_at;  // by common cell

  // Appends a series. Its values are 0, and a gauge is unset. `label_bytes`: as of LabelBytes.
  void Add(uint32_t family, std::string_view label_bytes, uint32_t label_count, uint64_t birth_unix_ns);

  // As of ended processes. The caller sets id, identity, birth and ordinals. Valid until the next change.
  [[nodiscard]] Measurements View() const;
};

}  // namespace persia::agent

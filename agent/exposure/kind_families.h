// The families that a segment's family is exposed as, and the cells that each of them uses.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "model/snapshot.h"
#include "segment/segment_values.h"

namespace persia::agent {

// How the values of a family's series are computed from the segments.
enum class Fill : uint8_t {
  kCounter,          // whole cells and sums of doubles, added
  kDistribution,     // a sum of doubles, and buckets of whole cells, added
  kGauge,            // common cells, merged by the family's policy
  kTimestamp,        // common cells, the latest, from milliseconds to seconds
  kStreamSum,        // of a stream: the sum of its positive values
  kStreamHistogram,  // of a stream: the sum, and buckets between the family's cuts
  kStreamSummary,    // of a stream: the sum, the count, and quantiles
  kDropped,          // the header's dropped counts
};

// One segment's part of a series: indexes into the arrays of SegmentValues.
struct Part {
  uint32_t segment;  // index into the plan's segments
  uint32_t cell;     // a whole or common cell, the first bucket, or the index of a dropped count
  uint32_t real;     // kNoIndex: none; for a stream exposed as a gauge, its first whole cell
};

struct KindFamily {
  Fill fill = Fill::kCounter;
  MetricType type = MetricType::kUntyped;
  const char* own_name = nullptr;  // null: the naming derives the name from the program's metric
  const char* help = nullptr;
};

// Empty for an unknown kind. One family for a stream, whose type the naming decides: see StreamFamily.
std::span<const KindFamily> FamiliesOf(persia::metrics::segment::Kind kind);
// The family of a stream for which the naming sets this type.
KindFamily StreamFamily(std::optional<MetricType> type);
// The family of the measurements that processes could not record.
KindFamily DroppedFamily();

Part PartOf(Fill fill, persia::metrics::segment::Kind kind, uint32_t segment, const SegmentSeries& series);

}  // namespace persia::agent

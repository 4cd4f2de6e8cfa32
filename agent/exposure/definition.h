// A definition: the exposed family that the naming assigns to one family of a process, and how its values are computed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/bounds.h"
#include "model/diagnostics.h"
#include "model/snapshot.h"
#include "naming/naming.h"
#include "segment/measurements.h"
#include "segment/segment_records.h"

namespace persia::agent {

// The families that a segment's family is exposed as, and the cells that each of them uses.

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

struct Definition {
  static constexpr size_t kNoSegment = SIZE_MAX;
  size_t segment = kNoSegment;     // index of the segment; kNoSegment: the agent's own family
  std::string role = {};           // the role that the naming sets; empty: the process's own
  uint32_t identity = UINT32_MAX;  // by PlanIdentities, once these are numbered

  bool own = false;  // the agent's own family, not a program's metric
  std::string group = {};
  std::string name = {};
  std::string exposed = {};   // the exposed name
  Labels labels = {};         // added by the naming
  bool labels_yield = false;  // a series' own label of the same name wins

  MetricType type = MetricType::kUntyped;
  std::optional<Fill> fill = {};  // none: one of the agent's own sources has the values
  GaugePolicy policy = GaugePolicy::kLast;
  std::vector<double> bounds = {};
  std::optional<NativeBuckets> native = {};
  std::string help = {};
  std::string unit = {};
  Scale scale = {};
  std::optional<std::chrono::milliseconds> ttl = {};  // of a stream
  FamilyAge age = {};

  // "group/name", or the name of the agent's own family.
  [[nodiscard]] std::string Source() const { return own ? exposed : group + "/" + name; }
};

// The definition of `family`, as one of the families that its kind is exposed as. None: the naming drops it.
std::optional<Definition> DefinitionOf(const SegmentFamily& family, KindFamily as, const Naming& naming,
                                       Diagnostics& diagnostics);

// The definition of a family of the agent's own sources.
Definition DefinitionOf(const FamilyLayout& own);

// `0.5, 1, 2`
std::string BoundsText(std::span<const double> bounds);

}  // namespace persia::agent

// The plan of a merge: which values of which segments make up each exposed value.
//
// Made when a series comes or goes. "Segment" means here: one input of the merge. The plan holds the layout of the snapshots
// and, in the layout's order, the parts of each series as places in the segments' flat arrays, so that filling a snapshot is a
// walk over arrays. Thread safety: a plan is immutable once built; building is not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/naming.h"
#include "model/scale.h"
#include "model/snapshot.h"
#include "source/diagnostics.h"
#include "source/merge_input.h"
#include "source/plan_identities.h"
#include "source/segment_values.h"

namespace persia::agent {

// How the values of a family's series come out of the segments.
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

// One segment's share in a series: places in the arrays of SegmentValues.
struct Part {
  uint32_t segment;  // index into the segments that the plan was made from
  uint32_t cell;     // a whole or common cell, the first bucket, or the index of a dropped count
  uint32_t real;     // kNoPlace: none; of a stream that is shown as a gauge its first cell instead
};

struct PlannedFamily {
  Fill fill = Fill::kCounter;
  GaugePolicy policy = GaugePolicy::kLast;
  std::vector<uint32_t> cuts;                    // of a stream's histogram: see StreamCuts
  std::optional<std::chrono::milliseconds> ttl;  // of a stream: its series go when no value has come for so long
  size_t values_per_series = 1;
  size_t first_series = 0;  // of the walk, counted over all families
  size_t series = 0;
};

// How many series may be exposed, and with which labels. What is beyond is left out, the latest first.
struct SeriesLimits {
  size_t series = 200'000;
  size_t series_of_instance = 50'000;  // of one identity
  size_t label_value_bytes = 1024;

  friend bool operator==(const SeriesLimits&, const SeriesLimits&) = default;
};

// How many series are left out, and why.
struct SeriesLeftOut {
  size_t agent_limit = 0;
  size_t instance_limit = 0;
  size_t label_value_limit = 0;
  size_t definition = 0;  // another definition of the name is newer
  size_t collision = 0;   // nothing tells it from another one
};

// A value of the snapshot that is multiplied once it is filled in.
struct ScaledValue {
  size_t value;  // its place
  Scale scale;
};

struct MergePlan {
  std::shared_ptr<const Layout> layout;
  std::vector<PlannedFamily> families;
  std::vector<size_t> first_value;  // by series of the walk: SeriesLayout::first_value
  std::vector<size_t> first_part;   // by series of the walk; one more at the end
  std::vector<Part> parts;
  std::vector<ScaledValue> scaled;
  SeriesLeftOut left_out;

  // Of a summary.
  [[nodiscard]] std::span<const double> QuantilesOf(const PlannedFamily& family) const {
    return layout->families[static_cast<size_t>(&family - families.data())].bounds;
  }
  [[nodiscard]] std::span<const Part> PartsOf(size_t series) const {
    return {parts.data() + first_part[series], first_part[series + 1] - first_part[series]};
  }
};

MergePlan BuildMergePlan(std::span<const MergeInput> segments, const MergeIdentity& identity, const Naming& naming,
                         const SeriesLimits& limits, Diagnostics& diagnostics);

}  // namespace persia::agent

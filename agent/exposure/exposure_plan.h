// The exposure plan decides how all series are exposed: their names, labels, identities, conflicts and limits.
//
// A plan is built when a process, a family, a series, a rule or a setting is added, removed or changed, from the measurements
// of all processes and the layouts of the agent's own sources. It holds the layout of the snapshots and, for each series, its
// parts as indexes into the processes' flat arrays. A collection then only computes values: no later step renames, drops or
// labels a series. Thread safety: a plan is immutable once built; building is not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exposure/definition.h"
#include "exposure/identities.h"
#include "exposure/series_limits.h"
#include "model/bounds.h"
#include "model/diagnostics.h"
#include "model/snapshot.h"
#include "naming/naming.h"
#include "segment/measurements.h"
#include "segment/segment_records.h"

namespace persia::agent {

struct PlannedFamily {
  Fill fill = Fill::kCounter;
  GaugePolicy policy = GaugePolicy::kLast;
  std::vector<uint32_t> cuts;                    // of a stream's classic histogram: see StreamCuts
  bool native = false;                           // its values are those of NativeBuckets
  std::optional<std::chrono::milliseconds> ttl;  // of a stream: a series without a new value for this long is hidden
  size_t values_per_series = 1;
  size_t first_series = 0;  // its index among the series of all families, in the plan's order
  size_t series = 0;
};

// A value of the snapshot that is scaled after the merge.
struct ScaledValue {
  size_t value;  // its index in the snapshot
  Scale scale;
};

struct ExposurePlan {
  std::shared_ptr<const Layout> layout;
  std::vector<PlannedFamily> families;
  std::vector<size_t> first_value;  // by series: SeriesLayout::first_value
  std::vector<size_t> first_part;   // by series: index into `parts`; one more at the end
  std::vector<Part> parts;
  std::vector<ScaledValue> scaled;
  SeriesLeftOut left_out;

  // REQUIRES: the family is a summary.
  [[nodiscard]] std::span<const double> QuantilesOf(const PlannedFamily& family) const {
    return layout->families[static_cast<size_t>(&family - families.data())].bounds;
  }
  [[nodiscard]] std::span<const Part> PartsOf(size_t series) const {
    return {parts.data() + first_part[series], first_part[series + 1] - first_part[series]};
  }
};

// `own` are the layouts of the agent's own sources. Their names win over those of the segments; a family without series only
// reserves its name.
ExposurePlan BuildExposurePlan(std::span<const Measurements> segments, std::span<const std::shared_ptr<const Layout>> own,
                               const IdentityRules& rules, const Naming& naming, const SeriesLimits& limits,
                               Diagnostics& diagnostics);

}  // namespace persia::agent

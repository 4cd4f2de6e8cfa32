// Merges the measurements of a job's processes, living and ended, into one snapshot.
//
// Processes of one identity (role, replica) are merged: counters, histograms and event counts are added exactly; gauges follow
// their policy. The plan (exposure/exposure_plan.h) decides which values are added; a merge only computes values until the plan
// changes. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exposure/exposure_plan.h"
#include "merge/exact_sum.h"
#include "merge/stream_totals.h"
#include "model/diagnostics.h"
#include "model/snapshot.h"
#include "naming/naming.h"
#include "segment/measurements.h"

namespace persia::agent {

// The snapshots of the agent's own sources in one collection.
using OwnSnapshots = std::vector<std::shared_ptr<const Snapshot>>;

class Merger {
 public:
  // REQUIRES: `naming` and `diagnostics` outlive this.
  Merger(IdentityRules rules, const Naming& naming, Diagnostics& diagnostics, SeriesLimits limits = {});

  // Builds a new plan if anything that a plan depends on has changed, and returns whether it did.
  bool Prepare(std::span<const Measurements> segments, const OwnSnapshots& own);
  // Merges the segments and the snapshots of the agent's own sources. The layout is the same object as last time if no series
  // was added or removed. REQUIRES: none of `own` is null.
  std::shared_ptr<const Snapshot> Merge(std::span<const Measurements> segments, const OwnSnapshots& own,
                                        std::chrono::system_clock::time_point now,
                                        std::chrono::steady_clock::time_point steady = std::chrono::steady_clock::now());
  // The setters take effect at the next Merge.
  void SetLimits(const SeriesLimits& limits);
  // REQUIRES: `naming` outlives this, or is in use only until the next call.
  void SetNaming(const Naming& naming);
  void SetIdentityRules(const IdentityRules& rules);
  // Of the last plan.
  [[nodiscard]] const SeriesLeftOut& left_out() const { return plan_.left_out; }
  [[nodiscard]] const IdentityRules& rules() const { return rules_; }

 private:
  // The version of a segment's structure that the plan was built from.
  struct SegmentVersion {
    std::string segment_id;
    uint64_t generation;
    uint32_t ordinal;

    friend bool operator==(const SegmentVersion&, const SegmentVersion&) = default;
  };

  void FillCounters(const PlannedFamily& family, double* values);
  void FillDistributions(const PlannedFamily& family, double* values);
  void FillGauges(const PlannedFamily& family, double* values);
  void FillTimestamps(const PlannedFamily& family, double* values);
  void FillStreams(const PlannedFamily& family, double* values);
  void FillDropped(const PlannedFamily& family, double* values);
  [[nodiscard]] double MergeGauge(GaugePolicy policy, std::span<const Part> parts);
  // `whole` and the sum of terms_.
  [[nodiscard]] double Total(uint64_t whole);
  static bool Newer(const Measurements& a, const Measurements& b);

  IdentityRules rules_;
  const Naming* naming_;  // never null
  Diagnostics& diagnostics_;
  SeriesLimits limits_;
  std::vector<SegmentVersion> segment_versions_;
  std::vector<std::shared_ptr<const Layout>> own_layouts_;
  ExposurePlan plan_;                     // without a layout: out of date
  std::shared_ptr<const Layout> layout_;  // of the last plan
  std::span<const Measurements> inputs_;  // during a Merge
  // Members only to reuse their memory.
  std::vector<double> terms_;
  std::vector<double> negative_terms_;
  std::vector<uint64_t> counts_;
  ExactSum sum_;
  StreamAges stream_ages_;
};

}  // namespace persia::agent

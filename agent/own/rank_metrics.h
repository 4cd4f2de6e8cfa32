// What the ranks do, and the verdicts on them, as metrics on the identity of each rank: persia_rank_*, persia_straggler,
// persia_hang and persia_gauge_nan_series.
//
//   RankMetrics metrics;
//   metrics.Collect(*verdicts.report(), values.nan_counts());
//
// persia_rank_* are all that the recording rules need to name a straggler or a hang across the agents of a job.
// Thread safety: the collector thread alone.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "health/not_finite.h"
#include "health/rank_verdicts.h"
#include "model/rows.h"

namespace persia::agent {

class RankMetrics {
 public:
  // Snapshots have the same layout object as long as there is no new rank, phase of any rank, verdict or NaN.
  std::shared_ptr<const Snapshot> Collect(const RankReport& report, const NanCounts& nan_counts = {});

 private:
  // The identity of a rank, and a phase or the name of a gauge.
  using Series = std::pair<Identity, std::string>;
  using Values = std::map<Series, double>;  // of a family
  static constexpr size_t kFamilyCount = 5;

  void AddPhases(const std::set<Identity>& ranks, const Values& in_phase);

  std::set<Series> shown_[kFamilyCount];
  Rows rows_;
};

}  // namespace persia::agent

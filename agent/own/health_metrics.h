// What health knows, as metrics.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "health/deaths.h"
#include "health/goodput.h"
#include "health/not_finite.h"
#include "health/rank_verdicts.h"
#include "model/rows.h"

namespace persia::agent {

// `persia_worker_deaths_total`: the deaths of this run's processes by cause, on the agent's own identity.
//
//   DeathMetrics metrics(agent_identity);
//   metrics.Show(totals);                  // by DeathCause
//   if (metrics.shows()) metrics.Collect();
//
// Every cause has a series from the first Show on, so that rate() sees the first death. Thread safety: the collector thread
// alone.
class DeathMetrics {
 public:
  using Totals = std::array<uint64_t, kDeathCauses>;

  explicit DeathMetrics(Identity identity) : identity_(std::move(identity)) {}

  void Show(const Totals& totals) { totals_ = totals; }
  // False: the counts of the former agents are not known yet. Zeros would fall below them.
  [[nodiscard]] bool shows() const { return totals_.has_value(); }
  // REQUIRES: shows().
  std::shared_ptr<const Snapshot> Collect();

 private:
  const Identity identity_;
  std::optional<Totals> totals_;
  Rows rows_;
};

// Metrics of where the job's time goes (health/goodput.h): of each rank `persia_rank_*` on its own identity, and of the job
// `persia_goodput_*` on the agent's.
//
//   GoodputMetrics metrics(agent_identity);
//   metrics.Collect(*goodput.report(), [](const RankId& rank) { ... its identity, if it is exposed ... });
//
// Thread safety: the collector thread alone.
class GoodputMetrics {
 public:
  explicit GoodputMetrics(Identity agent) : agent_(std::move(agent)) {}

  // `identity_of`: none for a rank that is not exposed; it counts in the job's totals. Snapshots have the same layout object as
  // long as the ranks are the same.
  std::shared_ptr<const Snapshot> Collect(const GoodputReport& report,
                                          const std::function<std::optional<Identity>(const RankId&)>& identity_of);

 private:
  const Identity agent_;
  Rows rows_;
};

// What the ranks do, and the verdicts on them, as metrics on the identity of each rank: persia_rank_*, persia_straggler,
// persia_hang and persia_gauge_nan_series.
//
//   RankMetrics metrics;
//   metrics.Collect(*verdicts.report(), values.nan_counts());
//
// persia_rank_* are all that the recording rules need to name a straggler or a hang across the agents of a job.
// Thread safety: the collector thread alone.
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

// Metrics of the job as a whole and of what the agent does for it, on the agent's own identity: `persia_job_*`, the push
// interval, and the space for the workers' segments.
//
//   JobMetrics metrics(agent_identity, "/dev/shm/persia-metrics-0/dlrm");
//   metrics.Collect({.hangs = false, .hang_after = 60s, .push_interval = 10s, .throughput = {{"my_app_steps", 2.5}}});
//
// Thread safety: the collector thread alone.
class JobMetrics {
 public:
  struct Values {
    bool hangs = false;
    std::chrono::milliseconds hang_after{0};  // 0: nothing is judged
    std::chrono::milliseconds push_interval{0};
    std::optional<std::chrono::milliseconds> unchanged = {};  // none: nothing has changed yet
    // Name of the progress counter, and its rate; none: there is no such counter.
    std::optional<std::pair<std::string, double>> throughput = {};
  };

  // `directory`: of the segments; it may not exist yet.
  JobMetrics(Identity identity, std::string directory) : identity_(std::move(identity)), directory_(std::move(directory)) {}

  // Snapshots have the same layout object as long as the progress counter is the same.
  std::shared_ptr<const Snapshot> Collect(const Values& values);

 private:
  const Identity identity_;
  const std::string directory_;
  std::string counter_;  // the newest one
  Rows rows_;
};

}  // namespace persia::agent

// The judgement of the job after each collection: its health and why processes died, where the ranks' time goes, and the ranks
// that others wait for.
//
//   Judgement judgement(setup, clock, event_log, segments);
//   segments.Retire();
//   judgement.Judge(depth);
//   segments.Commit();                 // the folds and their reports are one write
//   judgement.Show();
//   judgement.AddTo(own, values.nan_counts());
//
// What must survive the agent is in the state of the segments. A view (`once`, `explain`) reports no ends and counts no time.
// Thread safety: none; the collector thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "app/agent_setup.h"
#include "app/collector.h"
#include "base/timing.h"
#include "health/goodput.h"
#include "health/job_health.h"
#include "health/not_finite.h"
#include "health/rank.h"
#include "health/rank_verdicts.h"
#include "health/vitals.h"
#include "job/event_log.h"
#include "kernel/proc_reader.h"
#include "own/health_metrics.h"
#include "workers/segment_source.h"

namespace persia::agent {

class Judgement {
 public:
  // All outlive it.
  Judgement(const AgentSetup& setup, Clock& clock, EventLog& event_log, SegmentSource& segments, std::string boot_id);

  // From the next Judge on.
  void Use(const AgentOptions& options);
  // REQUIRES: called between Retire and Commit of the segments.
  void Judge(Depth depth);
  // Shows what is on disk. REQUIRES: Commit has returned.
  void Show();
  // The state was flushed, and nothing follows: all that was counted is shown, and no file of an ended process stays.
  void End();

  void AddTo(OwnSnapshots& own, const NanCounts& nan_counts);

  // All are of the last Judge.
  [[nodiscard]] const HangJudge& hangs() const { return health_.judge(); }
  [[nodiscard]] std::shared_ptr<const HealthReport> health() const { return health_.report(); }
  [[nodiscard]] std::shared_ptr<const GoodputReport> goodput() const { return goodput_.report(); }
  [[nodiscard]] std::shared_ptr<const RankReport> ranks() const { return rank_verdicts_.report(); }
  [[nodiscard]] std::chrono::milliseconds interval() const { return hang_settings_.interval; }

 private:
  void CountTime();
  void ReportShared(const SharedRanks::Pair& pair);
  void JudgeHealth(Depth depth);
  void LookForStacks();
  void JudgeRanks();
  // By a signal.
  [[nodiscard]] bool IsStopped(const Process& process);

  const AgentSetup& setup_;
  Clock& clock_;
  EventLog& event_log_;
  SegmentSource& segments_;
  Ledger& state_;  // of the segments
  const std::string boot_id_;
  HangJudge::Settings hang_settings_;
  JobHealth health_;
  bool health_is_restored_ = false;
  std::optional<Vitals> vitals_;  // none in a view
  std::optional<std::chrono::steady_clock::time_point> orphans_removed_;
  Goodput goodput_;
  bool goodput_is_restored_ = false;
  SharedRanks shared_ranks_;
  std::set<ProcessId> hung_;
  ProcReader proc_;
  RankVerdicts rank_verdicts_;
  DeathMetrics death_metrics_;
  GoodputMetrics goodput_metrics_;
  RankMetrics rank_metrics_;
};

}  // namespace persia::agent

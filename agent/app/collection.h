// One collection: reads the workers' segments and the agent's own sources, and makes a snapshot.
//
//   Collection collection(setup, clock, own, event_log);
//   collection.Use(options);                     // at the start, and after a reload
//   std::shared_ptr<const Snapshot> all = collection.Collect(agent_id);
//
// Thread safety: summary() from any thread, all else the collector thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/agent_setup.h"
#include "app/collector.h"
#include "app/judgement.h"
#include "app/worker_watch.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/timing.h"
#include "gpu/gpu_watch.h"
#include "health/not_finite.h"
#include "job/event_log.h"
#include "machine/machine_metrics.h"
#include "own/exec_metrics.h"
#include "own/health_metrics.h"
#include "own/own_metrics.h"
#include "web/history.h"
#include "web/status_api.h"
#include "workers/segment_source.h"
#include "workers/worker_metrics.h"

namespace persia::agent {

class Collection {
 public:
  // The part of the last collection that the pages show.
  struct Summary {
    SegmentSourceStats segments;
    size_t series = 0;
    std::shared_ptr<const std::vector<Process>> processes = std::make_shared<std::vector<Process>>();
    std::shared_ptr<const HealthReport> health = std::make_shared<HealthReport>();
    std::shared_ptr<const GoodputReport> goodput = std::make_shared<GoodputReport>();
    std::shared_ptr<const RankReport> ranks = std::make_shared<RankReport>();
    std::shared_ptr<const NotFiniteReport> not_finite = std::make_shared<NotFiniteReport>();
  };

  // All five outlive it. `history`: of the former collections, for the throughput; used only in Collect.
  Collection(const AgentSetup& setup, Clock& clock, OwnMetrics& own, EventLog& event_log, const History& history);

  // Limits, labels and naming, from the next Collect on.
  void Use(const AgentOptions& options);
  // `agent_id`: the value of the label `agent`; empty: none. A look has the metrics of the job's processes as of now, and those
  // of the agent, the machine and the job as of the last full collection. The last one waits longer for the disk, because
  // deaths and goodput are shown only once they are on disk.
  std::shared_ptr<const Snapshot> Collect(const std::string& agent_id, Depth depth = Depth::kFull);

  // The summary then has all that was counted. REQUIRES: the last Collect has returned.
  void End();

  [[nodiscard]] Summary summary() const;
  // Whether nothing has happened in the job for kQuietAfter: processes run, no value of them has changed, none is in a phase,
  // none has come or gone.
  [[nodiscard]] bool IsQuiet() const { return clock_.Now() - happened_at_ >= kQuietAfter; }
  // As SegmentLifecycle. REQUIRES: the last Collect has returned.
  [[nodiscard]] std::set<std::string> CountedFiles() const { return segments_.lifecycle().CountedFiles(); }

 private:
  SegmentSourceOptions SourceOptions();
  void UseMachine(const AgentOptions& options);
  void KeepDirectory();
  void ReadCommand();
  void TakeEvents();
  void LookAtGpus();
  void LookAtValues(const Snapshot& all);
  void LookForChanges();
  void ReportSegments();
  void ReportLeftOut();
  OwnSnapshots CollectOwn(Depth depth);
  OwnSnapshots CollectSlow();

  static constexpr std::chrono::seconds kQuietAfter{10};

  const AgentSetup& setup_;
  Clock& clock_;
  OwnMetrics& own_;
  EventLog& event_log_;
  const History& history_;
  const std::string boot_id_;
  Labels labels_;  // of the settings
  uint64_t max_series_;
  std::optional<EventPositionFile> event_positions_;  // none without a state
  SegmentSource segments_;
  bool state_is_on_disk_ = false;  // after the last collection
  Judgement judgement_;
  NotFiniteJudge not_finite_;
  GpuWatch gpus_;
  bool gpus_are_used_ = false;  // since the first collection: they need a thread
  WorkerMetrics worker_metrics_;
  JobMetrics job_metrics_;
  MachineMetrics machine_;
  std::unique_ptr<ExecMetrics> exec_;         // null if no command is run
  std::shared_ptr<const Snapshot> reserved_;  // names that only /metrics has
  OwnSnapshots slow_;                         // of the last full collection
  std::shared_ptr<const Layout> layout_;      // of the last collection
  int trims_due_ = 0;                         // collections after which free memory is returned
  uint64_t records_skipped_ = 0;
  std::vector<std::string> refused_reasons_;
  WorkerWatch worker_watch_;
  std::array<uint64_t, 4> happened_{};  // counts of changes
  Clock::TimePoint happened_at_;        // of the last one
  StateLog directory_log_{"directory.gone"};

  mutable Mutex mutex_;
  Summary summary_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent

// The metrics of a job's processes, read from their segments.
//
//   SegmentSource source({.directory = "/dev/shm/persia-metrics-0/dlrm", .job = "dlrm", .ip_addr = "10.0.0.7"});
//   auto snapshot = source.Collect();
//
// Each Collect reads the segments of its run (segment_lifecycle.h), and merges the processes of one instance (role, replica)
// with those that ended (ledger.h). A segment whose file was removed or is damaged counts with its last good values until its
// writer ends. A file that cannot be read at first is left out, reported once, and tried again.
//
// Not thread-safe: used by the collector thread alone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ledger/ledger.h"
#include "merge/merge.h"
#include "model/diagnostics.h"
#include "model/events.h"
#include "model/process.h"
#include "model/snapshot.h"
#include "naming/naming.h"
#include "segment/segment_reader.h"
#include "workers/segment_directory.h"
#include "workers/segment_lifecycle.h"

namespace persia::agent {

struct SegmentSourceOptions {
  // The job's directory. It may not exist yet.
  std::string directory = {};
  // The job of each identity, even if a segment names another one.
  std::string job = {};
  // Label `ip_addr`; without one the label is left out.
  std::string ip_addr = {};
  // Segments of other runs are ignored. Empty: no run is ignored. A segment without a run id is never ignored.
  std::string run_id = {};
  // Files of other users are read if they belong to this group; without a group, only this user's files are.
  std::optional<gid_t> group = {};
  // Larger segments are not read.
  uint64_t max_segment_bytes = 1ULL << 30;
  // Without a file, ended processes are not retired.
  Ledger::Options ledger = {};
  SeriesLimits limits = {};
  // The process of this pid may have a segment: the agent. Its metrics are exposed, but it is not a worker: not counted as
  // alive, not listed. 0: none.
  uint32_t agent_pid = 0;
  // How processes ended that this agent's supervisor reaped; may be null, outlives the source.
  const ExitReasons* reaped = nullptr;
  // Whether event records are read, and from which record on, by segment id: where the previous agent stopped.
  bool reads_events = false;
  std::map<std::string, uint64_t> event_positions = {};
  // For tests; null: the files in `directory`.
  std::unique_ptr<SegmentDirectory> files = nullptr;
  std::function<std::chrono::steady_clock::time_point()> steady = std::chrono::steady_clock::now;
  std::function<std::chrono::system_clock::time_point()> wall = std::chrono::system_clock::now;
};

// A file that is not read, and why.
struct RefusedSegment {
  std::string path;
  SegmentProblem problem;
};

struct SegmentSourceStats {
  size_t live = 0;                      // segments read whose writer is alive
  size_t dead = 0;                      // segments read whose writer has ended, and which are not retired
  uint64_t retired_series_refused = 0;  // series of retired processes beyond the limits
  uint64_t retired = 0;                 // retired processes of this run
  uint64_t changes = 0;                 // of the segments read: how often one was found with other values than before
  bool phases_run = false;              // a process is in a phase
  size_t other_run = 0;                 // segments of other runs, ignored
  size_t bad = 0;                       // segments that became unreadable; their last good values count
  std::vector<RefusedSegment> refused;
  size_t orphans = 0;            // processes whose values come from the state, since their segments are refused
  uint64_t records_skipped = 0;  // of types, kinds or policies that this version does not know
  SeriesLeftOut left_out;        // series that are not exposed
  uint64_t dropped = 0;          // measurements that the workers report as not recorded, for all reasons
  uint64_t events_lost = 0;      // event records that were overwritten before they were read, in total
};

class SegmentSource {
 public:
  // `naming`: null: PlainNaming.
  explicit SegmentSource(SegmentSourceOptions options, std::shared_ptr<const Naming> naming = nullptr);
  ~SegmentSource();
  SegmentSource(const SegmentSource&) = delete;
  SegmentSource& operator=(const SegmentSource&) = delete;

  // Read, Retire, Commit, Plan and Expose without the agent's own sources.
  std::shared_ptr<const Snapshot> Collect();

  // Scans the directory and reads all segments, with their events. An unreadable one is reported and left out.
  void Read();
  // Folds the processes that ended into the ledger, and lists all. To be called after each Read, when the events are written:
  // those of a folded process are never read again. Segments for which there is room then are read and folded, too.
  void Retire();
  // Saves the folds, and what was set since, in one write, and removes the files of the processes whose fold is on disk. To be
  // called after each Retire.
  void Commit();
  // The processes that the last Retire found to have ended, each once, with their ends.
  [[nodiscard]] std::vector<Process> Ends() const;
  // Plans how the read segments and the snapshots of the agent's own sources are exposed. Returns whether that changed.
  bool Plan(const OwnSnapshots& own);
  // The snapshot of all of it. REQUIRES: Plan was called with snapshots of these layouts.
  std::shared_ptr<const Snapshot> Expose(const OwnSnapshots& own);

  // As of the last Read, except left_out, which is of the last Plan.
  [[nodiscard]] const SegmentSourceStats& stats() const { return stats_; }
  [[nodiscard]] const SegmentLifecycle& lifecycle() const { return lifecycle_; }
  // The state, for what is saved with the folds: the judgement of the job. REQUIRES, for its changes: Read was called.
  [[nodiscard]] Ledger& ledger() { return ledger_; }
  // Of the exposed ranks: the living processes, and of each place without one the process that ended last. `health` may add
  // what it has judged.
  [[nodiscard]] std::span<Process> processes() { return processes_; }
  // Those that the last Retire has folded.
  [[nodiscard]] std::span<const Process> folded() const { return folded_; }
  // Of each exposed instance that had a process which ended.
  [[nodiscard]] std::span<const EndedProcesses> ended() const { return ended_; }
  struct Command {
    uint64_t began_ticks = 0;                           // in clock ticks since boot
    std::chrono::system_clock::time_point booted = {};  // when the machine was, by the wall clock of now
    bool has_ended = false;
    std::optional<std::chrono::system_clock::time_point> interrupted_at = {};
  };
  // The command that is run. From the next Read on.
  void SetCommand(const Command& command) { command_ = command; }
  // From the next Collect on.
  void SetLimits(const SeriesLimits& limits, uint64_t max_segment_bytes, std::chrono::milliseconds gauge_ttl, bool hide_ended);
  // The labels of the settings, and the label `agent`, on all identities. From the next Plan on.
  void SetIdentityLabels(Labels labels, std::string agent_id);
  // From the next Collect on. REQUIRES: not null.
  void SetNaming(std::shared_ptr<const Naming> naming);
  // When the last Read began.
  [[nodiscard]] std::chrono::steady_clock::time_point read_at() const { return now_.steady; }
  // As on the series of the rank's processes, without the labels of the settings.
  [[nodiscard]] Identity IdentityOf(const RankId& rank) const;
  // Waits for the state to be on disk. False: it is not.
  bool FlushState(std::chrono::milliseconds patience);
  // The events that were read since the last call; those of one process are in order.
  [[nodiscard]] std::vector<JobEvent> TakeEvents() { return std::exchange(events_, {}); }
  // Where reading continues, for SegmentSourceOptions::event_positions.
  [[nodiscard]] std::map<std::string, uint64_t> EventPositions() const;
  // The messages for the log since the last call, each once.
  [[nodiscard]] std::vector<Diagnostic> TakeDiagnostics() { return diagnostics_.Take(); }

 private:
  // Later than the ticks of all folds that are read from a state.
  static constexpr uint64_t kFirstTick = 1ULL << 32;

  bool ReadMore();
  void Fold();
  bool HasRoom();
  void ReadAllEvents();
  void ReadEvents(SegmentLifecycle::Segment& segment);
  void CountSegments();
  [[nodiscard]] Process Describe(const SegmentLifecycle::Segment& segment) const;
  void ListProcesses(std::span<const Ledger::Orphan> orphans);
  void ShowSaved();
  void ListEnded();
  [[nodiscard]] LivingJob FindLiving() const;
  [[nodiscard]] bool IsOwn(const SegmentLifecycle::Segment& segment) const;

  SegmentSourceOptions options_;
  std::shared_ptr<const Naming> naming_;  // never null
  CollectTime now_{.tick = kFirstTick};
  std::vector<Process> processes_;
  std::vector<Process> folded_;
  std::vector<EndedProcesses> ended_;
  std::vector<JobEvent> events_;
  uint64_t events_lost_ = 0;
  Diagnostics diagnostics_;
  Ledger ledger_;
  std::unique_ptr<SegmentDirectory> directory_;
  SegmentLifecycle lifecycle_;
  std::unique_ptr<Merger> merger_;
  std::vector<Measurements> inputs_;  // of the last Read
  std::optional<Command> command_;    // none: no command is run
  SegmentSourceStats stats_;
};

}  // namespace persia::agent

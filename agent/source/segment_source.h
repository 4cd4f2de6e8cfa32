// The metrics of a job's processes, read from their segments.
//
//   SegmentSource source({.directory = "/dev/shm/persia-metrics-0/dlrm", .job = "dlrm", .ip_addr = "10.0.0.7"});
//   auto snapshot = source.Collect();
//
// Each Collect looks through the directory for `*.seg`, reads those of its run, and merges the processes of one instance (role,
// replica). A process that has ended is retired: its last values go into the state, and its file goes away (retired_store.h).
// Without a state file, for who only looks, a dead segment goes on to count with its last values. So does, until its writer
// ends, one whose file is gone or that turned bad, with its last good values. A file that cannot be read at first costs itself
// only, and is reported once.
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
#include <vector>

#include "model/job_event.h"
#include "model/naming.h"
#include "source/diagnostics.h"
#include "source/merge.h"
#include "source/ordinals.h"
#include "source/retired_store.h"
#include "source/segment_reader.h"
#include "source/source.h"
#include "source/worker_process.h"

namespace persia::agent {

struct SegmentSourceOptions {
  // The job's directory. It may not exist yet.
  std::string directory = {};
  // Stands on each identity, whatever job a segment names: the directory is the job's.
  std::string job = {};
  // Label `ip_addr`; without one the label is left out.
  std::string ip_addr = {};
  // Segments of another run are left alone. Empty: every run is ours. A segment that knows no run is everyone's.
  std::string run_id = {};
  // Files of other users are taken if they belong to this group; without it only files of our own user are.
  std::optional<gid_t> group = {};
  // Larger segments are refused.
  uint64_t max_segment_bytes = 1ULL << 30;
  // What ended processes counted; without a file they are not retired.
  RetiredStore::Options retired = {};
  SeriesLimits limits = {};
  // A segment of this very process is shown and kept as others, but is no worker's: not counted as alive, not listed.
  bool own_process = false;
  // Whether event records are read, and from which ticket on by the segment's id: where the agent before was.
  bool reads_events = false;
  std::map<std::string, uint64_t> event_tickets = {};
  // Time, for tests.
  std::function<std::chrono::steady_clock::time_point()> steady = std::chrono::steady_clock::now;
  std::function<std::chrono::system_clock::time_point()> wall = std::chrono::system_clock::now;
};

// A file that is not read, and why.
struct RefusedSegment {
  std::string path;
  SegmentProblem problem;
};

struct SegmentSourceStats {
  size_t live = 0;                      // segments read whose writer lives
  size_t dead = 0;                      // segments read whose writer is gone, and which are not retired
  uint64_t retired_series_refused = 0;  // series of those for which there was no room
  uint64_t retired = 0;                 // processes of this run that ended and were retired
  size_t other_run = 0;                 // segments of other runs, left alone
  size_t bad = 0;                       // of those read: last values kept, since the newest could not be read
  std::vector<RefusedSegment> refused;
  uint64_t records_skipped = 0;  // of types, kinds or policies that this version does not know
  size_t series = 0;             // that the last snapshot's layout holds
  SeriesLeftOut left_out;        // series that are not shown
  uint64_t dropped = 0;          // what the workers say they could not record, all reasons
  uint64_t events_lost = 0;      // event records that were overwritten before they were read; a total
};

class SegmentSource : public Source {
 public:
  // `naming`: how names are exposed; null: PlainNaming.
  explicit SegmentSource(SegmentSourceOptions options, std::shared_ptr<const Naming> naming = nullptr);
  ~SegmentSource() override;
  SegmentSource(const SegmentSource&) = delete;
  SegmentSource& operator=(const SegmentSource&) = delete;

  // Never fails: what cannot be read is reported, and the rest is given.
  Result<std::shared_ptr<const Snapshot>> Collect() override;

  // As of the last Collect.
  [[nodiscard]] const SegmentSourceStats& stats() const { return stats_; }
  // The living processes, and those that ended last on places that are empty now, of the instances that show.
  [[nodiscard]] std::span<const WorkerProcess> processes() const { return processes_; }
  // From the next Collect on.
  void SetLimits(const SeriesLimits& limits, uint64_t max_segment_bytes, std::chrono::milliseconds gauge_ttl, bool hide_left);
  // How names are exposed from the next Collect on. REQUIRES: not null.
  void SetNaming(std::shared_ptr<const Naming> naming);
  // The state's directory is another one than before: what was saved is gone.
  void StateIsGone() { retired_.Unsaved(); }
  // The events that were read since the last call, those of one process in their order.
  [[nodiscard]] std::vector<JobEvent> TakeEvents() { return std::exchange(events_, {}); }
  // Where reading them goes on, for SegmentSourceOptions::event_tickets.
  [[nodiscard]] std::map<std::string, uint64_t> EventTickets() const;
  // What there is to log since the last call; each sentence comes once.
  [[nodiscard]] std::vector<Diagnostic> TakeDiagnostics() { return diagnostics_.Take(); }

 private:
  struct Known {
    std::string name;
    FileId file;
    bool named = true;                    // seen in the directory by the last scan
    bool alive = true;                    // its writer, as of the last read
    std::optional<InstanceKey> instance;  // whose place it has
    uint32_t ordinal = 0;
    std::unique_ptr<SegmentReader> reader;
    std::optional<SegmentProblem> problem;  // of the last read
  };
  struct Refused {
    FileId file;
    SegmentProblem problem;
  };

  void Scan();
  void TryOpen(int directory_fd, const std::string& name, const FileId& file);
  static bool Replaces(const Known& newer, const Known& older);
  void Refuse(const std::string& name, const FileId& file, SegmentProblem problem);
  void ReadAll();
  enum class Whose { kEnded, kAll };
  void AssignPlaces(Whose whose);
  void GiveBackPlace(Known& known);
  static RetiredPlace PlaceOf(const SegmentReader& reader);
  void FoldLost();
  void KeepLiving();
  void FoldEnded();
  void SaveState();
  void ReadEvents(Known& known);
  void ListProcesses();
  [[nodiscard]] bool IsOwn(const Known& known) const;
  [[nodiscard]] bool OfOurRun(const SegmentReader& reader) const;
  [[nodiscard]] std::string PathOf(const std::string& name) const { return options_.directory + "/" + name; }

  SegmentSourceOptions options_;
  std::shared_ptr<const Naming> naming_;  // never null
  std::vector<Known> known_;
  std::map<std::string, Refused> refused_;    // by name, as long as the name is there
  std::map<std::string, FileId> other_runs_;  // dead segments of other runs, by name
  Moment now_;
  bool looked_through_ = false;  // the directory was read as a whole once
  bool lost_folded_ = false;     // those that the state says lived, and that are gone
  Ordinals ordinals_;
  std::vector<WorkerProcess> processes_;
  std::vector<JobEvent> events_;
  uint64_t events_lost_ = 0;
  Diagnostics diagnostics_;
  RetiredStore retired_;
  std::unique_ptr<Merger> merger_;
  SegmentSourceStats stats_;
};

}  // namespace persia::agent

// The states of each segment of the job: found, read, ended, folded, removed.
//
//   SegmentLifecycle lifecycle(options, directory, ledger, diagnostics);
//   lifecycle.Read(now);
//   do {
//     for (SegmentLifecycle::Segment& segment : lifecycle.segments()) ... read its events
//   } while (lifecycle.OpenMore());
//   lifecycle.LearnExits();
//   lifecycle.Retire();  // then OpenMore, events and Retire, until no more are read
//   lifecycle.Save();
//   for (const SegmentLifecycle::Segment& segment : lifecycle.segments()) ... merge segment.Values()
//
// A segment's random id identifies it. Its states, and the reason for each change:
//
//   unseen    -> readable   its file was opened and read
//   unseen    -> refused    its file cannot be opened or read. It is tried again with backoff for as long as it exists, and
//                           immediately if the file or a limit changes, or if descriptors or memory were lacking
//   refused   -> readable   it was opened and read
//   readable  -> ended      its writer no longer holds the lock, and has ended or has a later segment. A read after that
//                           returns its last values
//   ended     -> folded     the ledger has added its values to the sums
//   folded    -> removed    the fold is on disk, and the file is removed
//   orphaned  -> readable   the ledger has values of it from a former agent, and its file is read: the file counts
//   orphaned  -> folded     there is no file that may be its own
//
// A segment is counted in exactly one of readable, ended and orphaned (with its own values) and folded (in the sums). One that
// was folded is never read again. Without a state, as in commands that only read, a segment stays ended.
// Thread safety: none; used by the collector thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/timing.h"
#include "ledger/ledger.h"
#include "merge/ordinals.h"
#include "model/diagnostics.h"
#include "model/events.h"
#include "model/process.h"
#include "segment/measurements.h"
#include "segment/segment_reader.h"
#include "workers/exits.h"
#include "workers/segment_directory.h"

namespace persia::agent {

class SegmentLifecycle {
 public:
  struct Options {
    // Segments of other runs are not counted. Empty: all are. A segment without a run id always is.
    std::string run_id = {};
    SegmentAccess access = {};
    // From which record on its events are read, by segment id.
    std::map<std::string, uint64_t> event_positions = {};
    // May be null; outlives this.
    const ExitReasons* reaped = nullptr;
  };

  // A segment that is readable or ended.
  struct Segment {
    std::string name;
    FileId file;
    bool is_in_directory = true;        // as of the last listing
    bool alive = true;                  // the writer, as of the last read
    bool holds_lock = true;             // as of the last read
    bool is_replaced = false;           // its process has replaced its program by exec, and has a later segment
    bool runs_other = false;            // the same, without a later segment when it was last alive
    bool was_alive = false;             // at a read, of this agent or of the one before
    std::optional<ProcessPlace> place;  // none: it has none yet
    std::unique_ptr<SegmentReader> reader;
    std::optional<SegmentProblem> problem;  // of the last read; its last good values count
    std::optional<std::string> exit = {};   // how the writer ended (model/ends.h)
    // Of one that was found to have ended since the last Read, once: with a state when it is folded, else if it was seen alive.
    std::optional<ProcessEnd> end = {};
    bool end_is_told = false;
    std::vector<JobEvent> last_events = {};  // set by the reader of events (workers/last_events.h)

    uint64_t clocks_until = 0;  // stands since it was found without the lock

    // The values that were passed to the ledger.
    uint64_t noted_change = 0;  // its tick
    uint64_t noted_clocks = 0;  // how often its clocks had changed
    uint64_t noted_generation = 0;

    [[nodiscard]] Measurements Values() const;
  };

  // All three outlive it.
  SegmentLifecycle(Options options, SegmentDirectory& directory, Ledger& ledger, Diagnostics& diagnostics);

  // Lists the directory and reads all segments.
  void Read(const CollectTime& now);
  // Closes the files of those that ended, forgets those that were just folded, and reads segments for which descriptors or
  // memory were lacking. False: no more were read.
  bool OpenMore();
  // How the processes ended that were folded before. To be called after each Read, before Retire.
  void LearnExits();
  // Folds those that ended. To be called after each Read, and if OpenMore has read more after that.
  void Retire();
  // Whether segments wait for the memory of those that ended.
  [[nodiscard]] bool LacksMemory() const;
  // Reports segments for which descriptors or memory are lacking, after all others were read.
  void ReportWaiting();
  // Saves the ledger, and removes the files of those whose fold is on disk. To be called after each Retire, when the ledger has
  // what was reported of the ends, too: both are one write, so that the end of each folded process has been reported.
  void Save();
  // How a process that ended without a reason did; empty: not known.
  [[nodiscard]] std::string ExitOf(const ProcessId& ended) const { return exits_.ReasonOf(ended).value_or(""); }

  [[nodiscard]] std::span<const Segment> segments() const { return segments_; }
  [[nodiscard]] std::span<Segment> segments() { return segments_; }
  // Those that the last Retire has folded.
  [[nodiscard]] std::span<const Segment> just_folded() const { return just_folded_; }
  // What LearnExits has learned.
  [[nodiscard]] std::span<const LateExit> late_exits() const { return late_exits_; }
  // Orphans that count: no readable segment has their id.
  [[nodiscard]] std::vector<Ledger::Orphan> Orphans() const;
  // Those that were folded before their supervisor had told how they ended, which it does a moment later: they count as ended
  // in an unknown way only if the next Read learns no more.
  [[nodiscard]] std::span<const LateExit> untold() const { return untold_; }
  // Files that are refused, by name.
  [[nodiscard]] std::map<std::string, SegmentProblem> Refused() const;
  // Files, by name, whose values are in the totals.
  [[nodiscard]] std::set<std::string> CountedFiles() const;
  // Files of other runs whose writers have ended.
  [[nodiscard]] size_t other_runs() const;
  [[nodiscard]] bool IsOfThisRun(const SegmentReader& reader) const;
  // Larger segments are refused. From the next Tick on.
  void SetMaxBytes(uint64_t max_segment_bytes);

 private:
  // A file without a readable segment.
  struct File {
    enum class State { kRefused, kOtherRun, kFolded };
    State state = State::kRefused;
    FileId id;
    std::string segment_id = {};  // empty: not known
    // Of a refused one.
    SegmentProblem problem = {};
    Backoff backoff{std::chrono::seconds(1), std::chrono::seconds(60)};
    std::chrono::steady_clock::time_point retry{};

    [[nodiscard]] bool Waits() const { return state == State::kRefused && problem.is_shortage; }
  };

  // segment_lifecycle.cc: from unseen to ended.
  void DropFolded();
  void List();
  void NumberSegments();
  [[nodiscard]] bool HoldsLock(const SegmentReader& reader) const;
  void TryOpen(const SegmentDirectory::File& file);
  void Refuse(const SegmentDirectory::File& file, SegmentProblem problem);
  void ReportRefused(const std::string& name, const SegmentProblem& problem);
  static bool Replaces(const Segment& newer, const Segment& older);
  void FindLiving();
  void ReadAll();
  // segment_retirement.cc: from ended to removed.
  void TellEnd(Segment& segment);
  [[nodiscard]] std::optional<ProcessEnd::TimePoint> LastSignOf(const Segment& segment) const;
  enum class Which { kEarlier, kAll };
  void AssignOrdinals(Which which);
  void ReleaseOrdinal(Segment& segment);
  void SettleOrphans();
  void NoteLiving();
  void NoteSeen();
  void FoldEnded();
  template <class Chosen>
  void FoldEnded(const Chosen& chosen);
  void RemoveFolded();
  void ForgetRemoved();
  void ForgetLost();

  Options options_;
  SegmentDirectory& directory_;
  Ledger& ledger_;
  Diagnostics& diagnostics_;
  CollectTime now_;
  ProcessEnd::TimePoint read_before_{};  // of the Read before the last one
  std::vector<Segment> segments_;
  std::unordered_map<std::string, size_t> numbers_;  // their indexes by id, for TryOpen
  std::map<std::string, File> files_;                // by name
  std::map<std::string, ProcessPlace> orphans_;      // by segment id
  std::set<std::string> removed_;                    // ids whose file this agent has removed; another name of it may exist
  bool state_was_read_ = false;
  bool listed_all_ = false;  // by the last listing
  Ordinals ordinals_;
  ExitLookup exits_;
  std::vector<LateExit> untold_;
  std::vector<Segment> just_folded_;
  std::vector<LateExit> late_exits_;
  // A process that has ended since the collection before was alive then, and the next agent reads it until then, too.
  uint64_t clocks_until_ = 0;
};

}  // namespace persia::agent

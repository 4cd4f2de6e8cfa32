// The counts of the job's processes, kept after processes and the agent have ended: the sums of the processes that ended, and
// the values of living ones that are needed if their segments are lost.
//
//   Ledger ledger({.file = state_file, .run_id = "3f2a"}, diagnostics);
//   ledger.Load(now);
//   if (!ledger.IsFolded(id)) ledger.Fold(measurements, process, now);
//   ledger.Save(now);                                  // a thread writes the changes
//   if (ledger.IsDurable(id)) ... remove the file of the segment, then ledger.Forget(id)
//
// Each process counts once, even if the agent or the process is killed at any moment: a segment that was folded is never folded
// again, and its file stays until the fold is on disk. Each change is a record of a journal (files/journal.h); a reader replays
// the records. state_format.md has the grammar. Thread safety: none; used by the collector thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/foreign_memory.h"
#include "base/result.h"
#include "files/journal.h"
#include "files/journal_writer.h"
#include "ledger/ledger_records.h"
#include "ledger/retired_processes.h"
#include "ledger/saved_process.h"
#include "model/diagnostics.h"
#include "model/process_id.h"

namespace persia::agent {

inline constexpr JournalFormat kStateFormat{.magic = {'P', 'R', 'S', 'M', 'S', 'T', 'A', '\n'}, .version = 1};

// The run that a state is of; empty if there is none. An error: it cannot be read.
Result<std::string> RunOfState(JournalFile& file);

class Ledger {
 public:
  struct Options {
    // Null: ended processes are not retired.
    std::shared_ptr<JournalFile> file = nullptr;
    // The state is read but not changed.
    bool read_only = false;
    // Also saves the values of living processes: the segments may be lost with the container's memory while the file is not.
    bool saves_living = false;
    std::string run_id = {};
    // Of the machine: what CLOCK_MONOTONIC counts from.
    std::string boot_id = {};
    // The run is new: an existing state is of another run and is removed.
    bool new_run = false;
    RetiredProcesses::Options processes = {};
    // This many bytes may be appended to the state before a checkpoint, even if the last checkpoint was smaller.
    size_t min_growth = 64 << 10;
    // False: Save writes before it returns.
    bool threaded = true;
    // How long Save waits for the disk.
    std::chrono::milliseconds patience{250};
    // Of the delay after a failed write, for tests.
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };

  Ledger(Options options, Diagnostics& diagnostics);

  // Reads the state. Call it until Loaded(): a state that cannot be read is not overwritten.
  void Load(const CollectTime& now);
  [[nodiscard]] bool Loaded() const { return loaded_; }
  // Whether ended processes are retired as soon as the state is read.
  [[nodiscard]] bool WillRetire() const { return options_.file != nullptr && !options_.read_only; }
  // Whether they can be retired now.
  [[nodiscard]] bool Retires() const { return WillRetire() && loaded_; }
  // Whether the state includes the values of living processes.
  [[nodiscard]] bool SavesLiving() const { return Retires() && options_.saves_living; }

  // A living process: its ordinal and, with SavesLiving, its values.
  void Note(const Measurements& living, const LastProcess& process);
  // The place of a process in the state, by segment id; none: it has none.
  [[nodiscard]] std::optional<ProcessPlace> SavedPlace(const std::string& id) const;
  // The segments of a former agent's processes that were not noted since: they are lost, or cannot be read yet.
  [[nodiscard]] std::vector<std::string> Orphans() const;
  // An orphan when the state was written; none if it had only an ordinal. Valid until the ledger changes.
  struct Orphan {
    Measurements values;
    LastProcess process;
  };
  [[nodiscard]] std::optional<Orphan> OrphanOf(const std::string& id) const;
  // The orphan's segment is read from now on: its saved values are no longer used.
  void Adopt(const std::string& id);

  // Adds the values of an ended process to the sums. `exit`: how it ended (model/ends.h); none: SetExit will tell.
  void Fold(const Measurements& ended, const LastProcess& process, const CollectTime& now,
            std::optional<std::string_view> exit = kUnknownEnd);
  void SetExit(const ProcessPlace& place, const ProcessId& process, std::string_view exit);
  // How many processes of an instance ended, by how: those of which that is told and on disk. So an agent that is killed was
  // never ahead of the next one, and no count falls.
  [[nodiscard]] std::map<std::string, uint64_t> Exits(const RankId& instance) const;
  // By place: processes, living or ended, whose place is not on disk. The next agent may give them others.
  [[nodiscard]] std::map<ProcessPlace, uint64_t> UnsavedPlaces() const;
  // All processes that are read were alive or known to have ended at this time, in nanoseconds of CLOCK_MONOTONIC.
  void SetSeen(uint64_t ns);
  // The last such time that is on disk, so that the next agent knows it, too; without a state, the last one. 0: none.
  [[nodiscard]] uint64_t Seen();
  // The judgement of the job's health (health/health_memory.h), for the next agent of the run; empty: there is none.
  void SetHealth(std::string_view health);
  [[nodiscard]] const std::string& health() const { return health_; }
  // The accounts of the ranks' time (health/goodput.h), for the next agent of the run; empty: there are none. Those of a
  // collection are in one write with its folds.
  void SetGoodput(std::string_view goodput);
  [[nodiscard]] const std::string& goodput() const { return goodput_; }
  // Whether the accounts that were set last are on disk, or no state is written.
  [[nodiscard]] bool GoodputIsSaved() const { return !WillRetire() || IsWritten(goodput_write_); }
  // Whether it is on disk, so that the next agent knows it, too.
  [[nodiscard]] bool HealthIsDurable() const { return !WillRetire() || (loaded_ && IsWritten(health_write_)); }
  // The same as Fold for an orphan. One without values is only forgotten.
  void FoldOrphan(const std::string& id, const CollectTime& now);
  [[nodiscard]] bool IsFolded(const std::string& id) const { return folded_.contains(id); }
  [[nodiscard]] std::vector<std::string> FoldedIds() const;
  // Whether the fold is on disk.
  [[nodiscard]] bool IsDurable(const std::string& id) const;
  // The file of a folded segment was removed, and cannot return.
  void Forget(const std::string& id);

  // Passes the changes to the journal's thread, and waits for it for at most `patience`.
  void Save(const CollectTime& now);
  // Passes the changes since the last Save to the journal's thread, and waits until all are on disk. False: they are not.
  bool Flush(std::chrono::milliseconds patience);
  // The state's directory was replaced: from now on the state is in this file.
  void MoveTo(std::shared_ptr<JournalFile> file);
  // None if nothing is written.
  [[nodiscard]] std::optional<JournalWriter::Stats> journal_stats() const;

  // Counts the memory that the sums and the unwritten changes take now (base/foreign_memory.h). To be called before segments
  // are read; Fold, Save and Flush do so, too.
  void CountMemory();
  // Whether changes wait for the disk, and take memory until then.
  [[nodiscard]] bool Waits() const { return writer_ != nullptr && writer_->stats().waiting_bytes > 0; }

  [[nodiscard]] RetiredProcesses& processes() { return processes_; }
  [[nodiscard]] const RetiredProcesses& processes() const { return processes_; }

 private:
  // A process that is not folded.
  struct Unfolded {
    std::optional<ProcessPlace> place = {};  // in the state
    SavedProcess values = {};
    bool has_values = false;
    bool orphan = false;  // of a former agent, and not noted since
  };

  // An end that Exits leaves out: it is not told, or was not on disk at the last Save.
  struct NewEnd {
    ProcessPlace place = {};
    ProcessId process = {};
    std::string exit = {};
    bool told = false;
    uint64_t write = 0;  // the write with it
  };

  // A process's place, which was not on disk at the last Save.
  struct NewPlace {
    ProcessPlace place;
    uint64_t write = 0;  // the write with it
  };

  void Change(StateRecord record, std::string_view payload);
  // The number of the write that will have the changes of now.
  [[nodiscard]] uint64_t NextWrite() const { return writer_ == nullptr ? kReadWrite + 1 : writer_->last() + 1; }
  [[nodiscard]] bool IsWritten(uint64_t write) const { return writer_ != nullptr && write <= writer_->written(); }
  // Whether this place of the process is not in the state yet. Then it is unsaved until it is on disk.
  bool NotePlace(const std::string& id, const Unfolded& process, const ProcessPlace& place);
  void RecordValues(SavedProcess& values, const Measurements& now, const LastProcess& process);
  void FoldAs(const std::string& id, const CollectTime& now, std::string_view exit, bool told);
  void ForgetWritten();
  void RecordForgotten();
  // `last`: the number of the last write before it. `is_written`: whether the file has that.
  void StartWriter(uint64_t last, bool is_written);
  [[nodiscard]] std::string Checkpoint(const CollectTime& now) const;
  Status Read(const CollectTime& now, std::string& problem);
  void Discard();
  bool ReadRecords(const JournalContent& content, const CollectTime& now);
  bool ReadRecord(const JournalRecord& record, const CollectTime& now);
  bool ReadFold(std::string_view payload, const CollectTime& now);
  void ReportFailure();

  static constexpr uint64_t kReadWrite = 1;  // stands for the write of what was read from the state

  Options options_;
  Diagnostics& diagnostics_;
  RetiredProcesses processes_;
  std::map<std::string, Unfolded> living_;  // by segment id
  std::map<std::string, uint64_t> folded_;  // by segment id: the write with the fold
  std::vector<NewEnd> new_ends_;
  std::map<std::string, NewPlace, std::less<>> new_places_;  // by segment id
  uint64_t seen_ = 0;                                        // on disk
  uint64_t new_seen_ = 0;                                    // as set last
  uint64_t new_seen_write_ = kReadWrite;                     // the write with it
  std::string health_;
  std::string goodput_;
  uint64_t goodput_write_ = kReadWrite;  // the write with it
  uint64_t health_write_ = kReadWrite;   // the write with it
  std::unique_ptr<JournalWriter> writer_;
  std::string batch_;                   // the changes since the last Save
  std::optional<std::string> failure_;  // reported
  bool loaded_ = false;
  ForeignShare memory_;   // of what was read from the state
  ForeignShare sums_;     // of processes_
  ForeignShare changes_;  // of what is not written
  // A state that was too large is not read again before.
  std::chrono::steady_clock::time_point load_after_ = std::chrono::steady_clock::time_point::min();
  // Of the folds that are read again: those of one collection have one time.
  CollectTime replayed_;
};

}  // namespace persia::agent

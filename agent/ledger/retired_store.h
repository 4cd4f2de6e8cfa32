// Retires ended processes: folds their last values into the state, writes the state, and only then removes their segments. A
// segment whose id is in the state is never folded again. Thus each process counts once, even if the agent is killed at any
// step.
//
//   RetiredStore store({.file = state_file_options, .run_id = "3f2a"}, diagnostics);
//   store.Load(now);
//   if (!store.IsFolded(id)) store.Fold(input, process, now);
//   store.AddFoldedFile(id, name, file);
//   store.SaveAndRemove(directory, now);
//
// As long as the state cannot be written, the files stay, and totals are still right. Thread safety: none; used by the
// collector thread alone.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <map>
#include <optional>
#include <string>

#include "files/state_file.h"
#include "ledger/retired_codec.h"
#include "ledger/retired_processes.h"
#include "model/diagnostics.h"

namespace persia::agent {

// A file as of fstatat. `changed` tells it from an earlier file with the same inode number.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  struct timespec changed {};

  [[nodiscard]] bool Same(const FileId& other) const {
    return SameInode(other) && changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
  }
  [[nodiscard]] bool SameInode(const FileId& other) const { return device == other.device && inode == other.inode; }
};

class RetiredStore {
 public:
  struct Options {
    // Without a file, nothing is retired.
    std::optional<StateFile::Options> file = {};
    // The state is read but not changed.
    bool read_only = false;
    // Also saves the values of living processes: the segments may be lost, with the container's memory, when the file is not.
    bool saves_living = false;
    std::string run_id = {};
    // The run is new: an existing state is of another run and is removed.
    bool new_run = false;
    RetiredProcesses::Options processes = {};
    // Called after each step ("folded", the steps of StateFile, "removed"), for tests that end the process there.
    std::function<void(std::string_view step)> after_step = {};
  };

  RetiredStore(Options options, Diagnostics& diagnostics);

  // Reads the state. To be called until Loaded(): a state that cannot be read is not overwritten.
  void Load(const CollectTime& now);
  [[nodiscard]] bool Loaded() const { return loaded_; }
  // Whether ended processes can be retired.
  [[nodiscard]] bool Retires() const { return file_.has_value() && loaded_ && !options_.read_only; }
  // Whether the state includes the values of living processes.
  [[nodiscard]] bool SavesLiving() const { return Retires() && options_.saves_living; }
  // The values of a living process, for SetLiving.
  [[nodiscard]] static std::string EncodeLiving(const Measurements& living, const LastProcess& process, const CollectTime& now);
  // By segment id.
  void SetLiving(std::map<std::string, std::string> living);
  // Folds the processes that were alive when the state was saved and whose segments do not exist any more. To be called once,
  // after the first complete scan of the directory.
  void FoldLost(const std::function<bool(const std::string& id)>& segment_exists, const CollectTime& now);
  // Whether the segment with this id was folded.
  [[nodiscard]] bool IsFolded(const std::string& id) const { return state_.folded.contains(id); }
  void Fold(const Measurements& ended, const LastProcess& process, const CollectTime& now);
  // The file of a folded segment, to be removed after the state was saved.
  void AddFoldedFile(const std::string& id, const std::string& name, const FileId& file);
  // Whether the file was passed to AddFoldedFile.
  [[nodiscard]] bool IsFoldedFile(const std::string& name, const FileId& file) const;
  // The ordinal of a process in the state, by segment id.
  [[nodiscard]] std::optional<uint32_t> SavedOrdinal(const std::string& id) const;
  // Whether SaveAndRemove will write the state: then SetOrdinals must be called before.
  [[nodiscard]] bool HasUnsavedChanges() const { return !saved_; }
  void SetOrdinals(std::map<std::string, uint32_t> ordinals) { state_.ordinals = std::move(ordinals); }
  // All segments in the directory were opened: forgets the ids of folded segments that are not among them.
  void ForgetMissingSegments();
  // Writes the state if it changed, then removes the files of folded segments.
  void SaveAndRemove(const std::string& directory, const CollectTime& now);
  // Makes SaveAndRemove write the state: its directory was removed, or a process has a new ordinal.
  void MarkUnsaved() { saved_ = false; }

  [[nodiscard]] RetiredProcesses& processes() { return state_.processes; }
  [[nodiscard]] const RetiredProcesses& processes() const { return state_.processes; }

 private:
  struct FoldedFile {
    std::string id;
    FileId file;
  };

  void Step(std::string_view step) const {
    if (options_.after_step) {
      options_.after_step(step);
    }
  }

  const Options options_;
  Diagnostics& diagnostics_;
  std::optional<StateFile> file_;
  RetiredState state_;
  bool loaded_ = false;
  bool saved_ = true;
  std::optional<std::string> failure_;              // of the last attempt to save
  std::map<std::string, FoldedFile> folded_files_;  // by name
};

}  // namespace persia::agent

// Retires ended processes: their last values are folded into the state, the state is written, and only then their files are
// removed. An id that stands in the state is never folded again. So whoever is killed at whatever instruction, each process
// counts once.
//
//   RetiredStore store({.file = state_file_options, .run_id = "3f2a"}, diagnostics);
//   store.Load(moment);
//   if (!store.Holds(id)) store.Fold(input, place, moment);
//   store.Leaves(id, name, file);         // the file that it left
//   store.SaveAndRemove(directory, moment);
//
// As long as the state cannot be written, files stay, and totals are right all the same. Not thread-safe: used by the collector
// thread alone.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <map>
#include <optional>
#include <string>

#include "source/diagnostics.h"
#include "source/retired.h"
#include "source/retired_codec.h"
#include "state/state_file.h"

namespace persia::agent {

// A file as fstatat saw it. `changed` tells a reused inode number apart from the file that had it before.
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
    // Without a file nothing is retired: who only looks.
    std::optional<StateFile::Options> file = {};
    // Reads what is there and changes nothing.
    bool look_only = false;
    // The file outlives the segments: the memory that those are in may be lost with a container.
    bool keeps_living = false;
    std::string run_id = {};
    // The run begins: what is there is of another one, or of one that is over.
    bool begins = false;
    RetiredProcesses::Options processes = {};
    // Called after each step ("folded", those of the file, "removed"), for tests that end the process there.
    std::function<void(std::string_view step)> after_step = {};
  };

  RetiredStore(Options options, Diagnostics& diagnostics);

  // Reads the state. Called first, and until Loaded: as long as it cannot be read it is not written either.
  void Load(const Moment& now);
  [[nodiscard]] bool Loaded() const { return loaded_; }
  // Whether ended processes are to be folded.
  [[nodiscard]] bool Retires() const { return file_.has_value() && loaded_ && !options_.look_only; }
  // Whether the state takes what the living have measured, too.
  [[nodiscard]] bool KeepsLiving() const { return Retires() && options_.keeps_living; }
  // What a living process has measured by now, for SetLiving.
  [[nodiscard]] static std::string Alone(const MergeInput& living, const RetiredPlace& about, const Moment& now);
  void SetLiving(std::map<std::string, std::string> living);
  // Folds those that lived when the state was written, and whose segments are not there any more. Called once, after the
  // directory was looked through.
  void FoldLost(const std::function<bool(const std::string& id)>& is_there, const Moment& now);
  // Whether the segment of this id counts already.
  [[nodiscard]] bool Holds(const std::string& id) const { return state_.folded.contains(id); }
  void Fold(const MergeInput& ended, const RetiredPlace& about, const Moment& now);
  // The file of a segment that counts already, to be removed once that is written.
  void Leaves(const std::string& id, const std::string& name, const FileId& file);
  // Whether this is such a file.
  [[nodiscard]] bool IsLeft(const std::string& name, const FileId& file) const;
  // The place that a process had, by its segment's id, when the state was last written.
  [[nodiscard]] std::optional<uint32_t> PlaceOf(const std::string& id) const;
  // Whether the state waits to be written; it takes the places of the living then.
  [[nodiscard]] bool Changed() const { return !saved_; }
  void SetPlaces(std::map<std::string, uint32_t> places) { state_.places = std::move(places); }
  // All segments in the directory were looked at: ids of others need not be kept.
  void ForgetOthers();
  // Writes the state if it changed, and removes the files that are left.
  void SaveAndRemove(const std::string& directory, const Moment& now);
  // The file is gone, with its directory, or a place is new: it must be written again.
  void Unsaved() { saved_ = false; }

  [[nodiscard]] RetiredProcesses& processes() { return state_.processes; }
  [[nodiscard]] const RetiredProcesses& processes() const { return state_.processes; }

 private:
  struct Left {
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
  std::optional<std::string> failure_;  // of the last save
  std::map<std::string, Left> left_;    // by name
};

}  // namespace persia::agent

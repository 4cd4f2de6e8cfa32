// The files of a job's directory that may be segments.
//
// A test may replace the directory, to lose files, to fail, or to end at any operation. Thread safety: none.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/owned_fd.h"
#include "segment/segment_reader.h"

namespace persia::agent {

// A file as of fstatat. `changed` distinguishes it from an earlier file with the same inode number.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  struct timespec changed {};

  [[nodiscard]] bool Same(const FileId& other) const {
    return SameInode(other) && changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
  }
  [[nodiscard]] bool SameInode(const FileId& other) const { return device == other.device && inode == other.inode; }
};

class SegmentDirectory {
 public:
  struct File {
    std::string name;
    FileId id;
  };
  struct Listing {
    std::vector<File> files;  // sorted by name
    bool complete = false;    // it has all files that there are
    std::string error = {};   // why the directory cannot be read; empty if it can, or does not exist yet
  };

  enum class Removal { kRemoved, kGone, kFailed };

  virtual ~SegmentDirectory() = default;

  virtual Listing List() = 0;
  // Whether a complete listing of now would have the files of the last one. False if that is not certain.
  [[nodiscard]] virtual bool IsUnchanged() { return false; }
  // Null: see `problem`.
  virtual std::unique_ptr<SegmentReader> Open(const std::string& name, const SegmentAccess& access,
                                              SegmentProblem& problem) = 0;
  // Removes the file, unless another one has its name now: then it is gone, and may return.
  virtual Removal Remove(const std::string& name, const FileId& file) = 0;
  // Whether the removals so far are on disk: no power cut brings the files back. May wait for the disk.
  virtual bool SyncRemovals() = 0;

  // For messages.
  [[nodiscard]] virtual const std::string& path() const = 0;
};

class DiskSegmentDirectory : public SegmentDirectory {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // It may not exist yet.
  explicit DiskSegmentDirectory(std::string path, std::function<TimePoint()> now = std::chrono::steady_clock::now)
      : path_(std::move(path)), now_(std::move(now)) {}

  Listing List() override;
  [[nodiscard]] bool IsUnchanged() override;
  std::unique_ptr<SegmentReader> Open(const std::string& name, const SegmentAccess& access, SegmentProblem& problem) override;
  Removal Remove(const std::string& name, const FileId& file) override;
  bool SyncRemovals() override;
  [[nodiscard]] const std::string& path() const override { return path_; }

 private:
  [[nodiscard]] OwnedFd OpenDirectory() const;

  const std::string path_;
  const std::function<TimePoint()> now_;
  // The directory itself, as of the last listing.
  FileId listed_;
  TimePoint listed_at_;
  bool is_settled_ = false;  // a later change changes it again
};

}  // namespace persia::agent

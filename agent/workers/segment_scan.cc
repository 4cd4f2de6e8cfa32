// SegmentSource's part that scans the directory, and opens and reads the segments.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

#include "segment_format.h"
#include "workers/segment_source.h"

namespace persia::agent {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

// Files that are tracked already are only compared by name and inode.
void SegmentSource::Scan() {
  for (TrackedSegment& tracked : tracked_) {
    tracked.is_in_directory = false;
  }
  const int fd = open(options_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const std::unique_ptr<DIR, CloseDirectory> directory(fd < 0 ? nullptr : fdopendir(fd));
  if (fd >= 0 && directory == nullptr) {
    close(fd);
  }
  if (directory == nullptr) {
    // The directory may not exist before the first worker does.
    if (errno != ENOENT) {
      diagnostics_.Report("directory", SystemError("cannot read the directory " + options_.directory).message +
                                           "; make it a directory of this user, or set PERSIA_METRICS_DIR to another");
    }
    return;
  }
  std::set<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(directory.get())) {
    if (std::string_view(entry->d_name).ends_with(persia::metrics::segment::kFileSuffix)) {
      names.insert(entry->d_name);
    }
  }
  bool complete = errno == 0;
  const auto is_removed = [&](const auto& named) { return !names.contains(named.first); };
  std::erase_if(refused_, is_removed);
  std::erase_if(other_runs_, is_removed);
  std::multimap<std::pair<dev_t, ino_t>, TrackedSegment*> by_inode;
  for (TrackedSegment& tracked : tracked_) {
    by_inode.emplace(std::pair(tracked.file.device, tracked.file.inode), &tracked);
  }
  // Unknown files are opened after this loop: Replaces() needs is_in_directory of all tracked files.
  std::vector<std::pair<std::string, FileId>> unknown;
  for (const std::string& name : names) {
    struct stat info {};
    if (fstatat(dirfd(directory.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      complete = complete && errno == ENOENT;  // it was removed since readdir
      continue;
    }
    const FileId file{info.st_dev, info.st_ino, info.st_ctim};
    TrackedSegment* tracked = nullptr;
    for (auto [at, end] = by_inode.equal_range({file.device, file.inode}); at != end; ++at) {
      // The inode number of an open file is not reused.
      if (!at->second->reader->released() || at->second->file.Same(file)) {
        tracked = at->second;
      }
    }
    if (retired_.IsFoldedFile(name, file)) continue;
    if (tracked != nullptr) {
      tracked->is_in_directory = true;
      tracked->name = name;
      tracked->file = file;
    } else {
      unknown.emplace_back(name, file);
    }
  }
  for (const auto& [name, file] : unknown) {
    const auto refused = refused_.find(name);
    const auto other_run = other_runs_.find(name);
    if ((refused == refused_.end() || !refused->second.file.Same(file)) &&
        (other_run == other_runs_.end() || !other_run->second.Same(file))) {
      TryOpen(dirfd(directory.get()), name, file);
    }
  }
  if (complete && !std::exchange(scan_completed_, true) && refused_.empty()) {
    retired_.ForgetMissingSegments();
  }
}

void SegmentSource::TryOpen(int directory_fd, const std::string& name, const FileId& file) {
  const SegmentAccess access{geteuid(), options_.group, options_.max_segment_bytes};
  SegmentProblem problem;
  auto reader = SegmentReader::Open(directory_fd, name.c_str(), access, problem);
  const bool alive = reader != nullptr && reader->WriterLives();
  if (reader == nullptr || !reader->Read(now_.tick, now_.wall, problem)) {
    Refuse(name, file, std::move(problem));
    return;
  }
  if (!alive && retired_.IsFolded(reader->id())) {
    retired_.AddFoldedFile(reader->id(), name, file);  // the agent that folded it was killed before it removed the file
    refused_.erase(name);
    return;
  }
  if (const auto position = options_.event_positions.find(reader->id()); position != options_.event_positions.end()) {
    reader->events().StartAt(position->second);
  }
  TrackedSegment opened;
  opened.name = name;
  opened.file = file;
  opened.alive = alive;
  opened.reader = std::move(reader);
  const auto same_id = std::find_if(tracked_.begin(), tracked_.end(),
                                    [&](const TrackedSegment& tracked) { return tracked.reader->id() == opened.reader->id(); });
  if (same_id == tracked_.end()) {
    tracked_.push_back(std::move(opened));
  } else if (Replaces(opened, *same_id)) {
    *same_id = std::move(opened);
  } else {
    Refuse(name, file, {"duplicate", "it is a copy of " + PathOf(same_id->name) + ", whose values would count twice"});
    return;
  }
  refused_.erase(name);
}

// Which of two segments with the same id to read. A process may move its segment, with its values, to another file; it unlocks
// the old file.
bool SegmentSource::Replaces(const TrackedSegment& newer, const TrackedSegment& older) {
  const bool older_alive = older.reader->WriterLives();
  if (newer.alive != older_alive) return newer.alive;
  const auto changed = [](const TrackedSegment& tracked) {
    return std::pair(tracked.file.changed.tv_sec, tracked.file.changed.tv_nsec);
  };
  return !older.is_in_directory || (!newer.alive && changed(newer) > changed(older));
}

void SegmentSource::Refuse(const std::string& name, const FileId& file, SegmentProblem problem) {
  diagnostics_.Report("refused", "the segment " + PathOf(name) + " is not read: " + problem.text);
  refused_.insert_or_assign(name, Refused{file, std::move(problem)});
}

// The read that follows a process's end reads the last events that it recorded.
void SegmentSource::ReadEvents(TrackedSegment& tracked) {
  if (!options_.reads_events || !IsOfThisRun(*tracked.reader)) return;
  const uint64_t lost = tracked.reader->events().lost();
  const size_t before = events_.size();
  tracked.reader->ReadEvents(events_);
  events_lost_ += tracked.reader->events().lost() - lost;
  const SegmentIdentity& process = tracked.reader->identity();
  const Identity identity = ProcessIdentity(process.role, process.replica, merger_->rules());
  for (size_t i = before; i < events_.size(); ++i) {
    events_[i].identity = identity;
  }
}

void SegmentSource::ReadAll() {
  for (TrackedSegment& tracked : tracked_) {
    if (tracked.reader->released()) continue;
    // Before the read, so that the values include all that the writer did before its end.
    tracked.alive = tracked.reader->WriterLives();
    SegmentProblem problem;
    if (tracked.reader->Read(now_.tick, now_.wall, problem)) {
      tracked.problem.reset();
    } else {
      diagnostics_.Report(
          "segment", "the segment " + PathOf(tracked.name) + " became unreadable, its last good values count: " + problem.text);
      tracked.problem = std::move(problem);
    }
    ReadEvents(tracked);
    if (!tracked.alive) {
      tracked.reader->Release();  // unmaps and closes it
    }
  }
  // Segments of other runs whose writers have ended are not tracked.
  std::erase_if(tracked_, [&](const TrackedSegment& tracked) {
    if (tracked.alive || IsOfThisRun(*tracked.reader)) return false;
    if (tracked.is_in_directory) {
      other_runs_.insert_or_assign(tracked.name, tracked.file);
    }
    return true;
  });
}

}  // namespace persia::agent

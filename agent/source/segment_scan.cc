// Which segments the source knows: the directory looked through, files opened, and all of them read.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "segment_format.h"
#include "source/segment_source.h"

namespace persia::agent {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

// Finds out which files are there. What is known is looked at by name and inode only.
void SegmentSource::Scan() {
  for (Known& known : known_) {
    known.named = false;
  }
  const int fd = open(options_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const std::unique_ptr<DIR, CloseDirectory> directory(fd < 0 ? nullptr : fdopendir(fd));
  if (fd >= 0 && directory == nullptr) {
    close(fd);
  }
  if (directory == nullptr) {
    // An agent may come before its workers, and their directory; that it cannot be read is another matter.
    if (errno != ENOENT) {
      diagnostics_.Report("directory", "cannot read the directory " + options_.directory + ": " + std::strerror(errno) +
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
  const auto is_gone = [&](const auto& named) { return !names.contains(named.first); };
  std::erase_if(refused_, is_gone);
  std::erase_if(other_runs_, is_gone);
  std::multimap<std::pair<dev_t, ino_t>, Known*> by_inode;
  for (Known& known : known_) {
    by_inode.emplace(std::pair(known.file.device, known.file.inode), &known);
  }
  // All marks first: whether a known file has vanished must not depend on the order of the names.
  std::vector<std::pair<std::string, FileId>> unknown;
  for (const std::string& name : names) {
    struct stat info {};
    if (fstatat(dirfd(directory.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      complete = complete && errno == ENOENT;  // vanished meanwhile
      continue;
    }
    const FileId file{info.st_dev, info.st_ino, info.st_ctim};
    Known* known = nullptr;
    for (auto [at, end] = by_inode.equal_range({file.device, file.inode}); at != end; ++at) {
      // While we hold a file its inode number cannot be given to another.
      if (!at->second->reader->released() || at->second->file.Same(file)) {
        known = at->second;
      }
    }
    if (retired_.IsLeft(name, file)) {
      continue;
    }
    if (known != nullptr) {
      known->named = true;
      known->name = name;
      known->file = file;
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
  if (complete && !std::exchange(looked_through_, true) && refused_.empty()) {
    retired_.ForgetOthers();
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
  if (!alive && retired_.Holds(reader->id())) {
    retired_.Leaves(reader->id(), name, file);  // whoever folded it was killed before it removed the file
    refused_.erase(name);
    return;
  }
  if (const auto former = options_.event_tickets.find(reader->id()); former != options_.event_tickets.end()) {
    reader->events().StartAt(former->second);
  }
  Known opened;
  opened.name = name;
  opened.file = file;
  opened.alive = alive;
  opened.reader = std::move(reader);
  const auto same_id =
      std::find_if(known_.begin(), known_.end(), [&](const Known& known) { return known.reader->id() == opened.reader->id(); });
  if (same_id == known_.end()) {
    known_.push_back(std::move(opened));
  } else if (Replaces(opened, *same_id)) {
    *same_id = std::move(opened);
  } else {
    Refuse(name, file, {"duplicate", "it is a copy of " + PathOf(same_id->name) + ", whose counts would be taken twice"});
    return;
  }
  refused_.erase(name);
}

// Whether a segment of the same id is the one to read. A process may move its segment to another file, and takes its values
// along; the file that it left is no longer locked.
bool SegmentSource::Replaces(const Known& newer, const Known& older) {
  const bool older_alive = older.reader->WriterLives();
  if (newer.alive != older_alive) {
    return newer.alive;
  }
  const auto changed = [](const Known& known) { return std::pair(known.file.changed.tv_sec, known.file.changed.tv_nsec); };
  return !older.named || (!newer.alive && changed(newer) > changed(older));
}

void SegmentSource::Refuse(const std::string& name, const FileId& file, SegmentProblem problem) {
  diagnostics_.Report("refused", "the segment " + PathOf(name) + " is not read: " + problem.text);
  refused_.insert_or_assign(name, Refused{file, std::move(problem)});
}

// What a process recorded before it ended is read by the read that follows its end.
void SegmentSource::ReadEvents(Known& known) {
  if (!options_.reads_events || !OfOurRun(*known.reader)) {
    return;
  }
  const uint64_t lost = known.reader->events().lost();
  const size_t before = events_.size();
  known.reader->ReadEvents(events_);
  events_lost_ += known.reader->events().lost() - lost;
  const Identity identity = ExposedIdentity(known.reader->identity(), merger_->identity());
  for (size_t i = before; i < events_.size(); ++i) {
    events_[i].identity = identity;
  }
}

void SegmentSource::ReadAll() {
  for (Known& known : known_) {
    if (known.reader->released()) {
      continue;
    }
    // Before the read: what a writer did before its end is in the values then.
    known.alive = known.reader->WriterLives();
    SegmentProblem problem;
    if (known.reader->Read(now_.tick, now_.wall, problem)) {
      known.problem.reset();
    } else {
      diagnostics_.Report("segment",
                          "the segment " + PathOf(known.name) + " turned bad, its last good values stand: " + problem.text);
      known.problem = std::move(problem);
    }
    ReadEvents(known);
    if (!known.alive) {
      known.reader->Release();  // nothing changes any more; its map and descriptor are not needed
    }
  }
  // Those of other runs that nobody writes need not be kept.
  std::erase_if(known_, [&](const Known& known) {
    if (known.alive || OfOurRun(*known.reader)) {
      return false;
    }
    if (known.named) {
      other_runs_.insert_or_assign(known.name, known.file);
    }
    return true;
  });
}

}  // namespace persia::agent

#include "workers/segment_lifecycle.h"

#include <sys/types.h>

#include <algorithm>
#include <map>
#include <utility>

namespace persia::agent {

Measurements SegmentLifecycle::Segment::Values() const {
  Measurements values = MeasurementsOf(*reader);
  values.ended = !alive;
  values.ordinal = place ? place->ordinal : 0;
  return values;
}

SegmentLifecycle::SegmentLifecycle(Options options, SegmentDirectory& directory, Ledger& ledger, Diagnostics& diagnostics)
    : options_(std::move(options)),
      directory_(directory),
      ledger_(ledger),
      diagnostics_(diagnostics),
      exits_(options_.reaped) {}

void SegmentLifecycle::Read(const CollectTime& now) {
  read_before_ = std::exchange(now_, now).wall;
  for (Segment& segment : segments_) segment.end.reset();
  clocks_until_ = ledger_.Seen();
  DropFolded();
  List();
  SettleOrphans();
  ReadAll();
}

bool SegmentLifecycle::OpenMore() {
  just_folded_.clear();
  for (Segment& segment : segments_)
    if (!segment.alive) segment.reader->Release();  // unmaps and closes it
  std::vector<SegmentDirectory::File> waiting;
  for (const auto& [name, file] : files_)
    if (file.Waits()) waiting.push_back({name, file.id});
  if (waiting.empty()) return false;
  NumberSegments();
  const size_t before = segments_.size();
  for (const SegmentDirectory::File& file : waiting) {
    TryOpen(file);
    const auto known = files_.find(file.name);
    if (known != files_.end() && known->second.Waits()) break;  // nor is there enough for the others
  }
  if (segments_.size() == before) return false;
  ReadAll();
  return true;
}

// Segments that were read before the state may be folded in it: List finds their files again.
void SegmentLifecycle::DropFolded() {
  if (!ledger_.Loaded() || std::exchange(state_was_read_, true)) return;
  std::erase_if(segments_, [&](Segment& segment) {
    if (!ledger_.IsFolded(segment.reader->id())) return false;
    ReleaseOrdinal(segment);
    return true;
  });
}

// Files whose segment is read already are only compared by name and inode.
void SegmentLifecycle::List() {
  // Other files are tried again, or removed.
  if (listed_all_ && files_.empty() && removed_.empty() && directory_.IsUnchanged()) return;
  for (Segment& segment : segments_) segment.is_in_directory = false;
  const SegmentDirectory::Listing listing = directory_.List();
  listed_all_ = listing.complete;
  if (!listing.error.empty()) {
    diagnostics_.Report("directory",
                        listing.error + "; make it a directory of this user, or set PERSIA_METRICS_DIR to another");
    return;
  }
  std::multimap<std::pair<dev_t, ino_t>, Segment*> by_inode;
  for (Segment& segment : segments_) by_inode.emplace(std::pair(segment.file.device, segment.file.inode), &segment);
  // Unknown files are opened after this loop: Replaces() needs is_in_directory of all segments.
  std::vector<const SegmentDirectory::File*> unknown;
  std::set<std::string> names;
  for (const SegmentDirectory::File& file : listing.files) {
    names.insert(file.name);
    Segment* found = nullptr;
    for (auto [at, end] = by_inode.equal_range({file.id.device, file.id.inode}); at != end; ++at) {
      // The inode number of an open file is not reused.
      if (!at->second->reader->released() || at->second->file.Same(file.id)) found = at->second;
    }
    if (found != nullptr) {
      found->is_in_directory = true;
      found->name = file.name;
      found->file = file.id;
    } else {
      unknown.push_back(&file);
    }
  }
  if (listing.complete) std::erase_if(files_, [&](const auto& named) { return !names.contains(named.first); });
  NumberSegments();
  for (const SegmentDirectory::File* file : unknown) {
    const auto known = files_.find(file->name);
    // The removal of a folded file may still change it.
    const bool same =
        known != files_.end() &&
        (known->second.state == File::State::kFolded ? known->second.id.SameInode(file->id) : known->second.id.Same(file->id));
    if (!same || (known->second.state == File::State::kRefused && now_.steady >= known->second.retry)) TryOpen(*file);
  }
  if (listing.complete) ForgetRemoved();
}

void SegmentLifecycle::NumberSegments() {
  numbers_.clear();
  for (size_t i = 0; i < segments_.size(); ++i) numbers_.emplace(segments_[i].reader->id(), i);
}

// The kernel drops the lock of a writer with its memory map. A reader of /proc/PID/smaps_rollup keeps the map for a moment
// after the process was reaped, the longer the larger the process is.
bool SegmentLifecycle::HoldsLock(const SegmentReader& reader) const { return reader.WriterLives() && !exits_.IsReaped(reader); }

void SegmentLifecycle::TryOpen(const SegmentDirectory::File& file) {
  SegmentProblem problem;
  auto reader = directory_.Open(file.name, options_.access, problem);
  const bool alive = reader != nullptr && HoldsLock(*reader);
  const bool was_alive = alive || (reader != nullptr && ledger_.SavedPlace(reader->id()));
  if (reader == nullptr || !reader->Read(now_.tick, now_.wall, problem, was_alive ? clocks_until_ : 0)) {
    if (reader != nullptr) problem.segment_id = reader->id();
    // The fold of those that ended gives their memory back, and so does the write of their values.
    problem.is_shortage |=
        problem.reason == "memory" && ledger_.Retires() &&
        (ledger_.Waits() || std::ranges::any_of(segments_, [](const Segment& segment) { return !segment.alive; }));
    Refuse(file, std::move(problem));
    return;
  }
  const std::string id = reader->id();
  if (ledger_.IsFolded(id)) {
    if (alive) {
      Refuse(file,
             {"duplicate",
              "its values were added to the totals while its file was gone; later counts of its process are not exported", id});
    } else {
      files_[file.name] = {.state = File::State::kFolded, .id = file.id, .segment_id = id};
    }
    return;
  }
  Segment opened;
  opened.name = file.name;
  opened.file = file.id;
  opened.alive = alive;
  opened.was_alive = was_alive;
  opened.reader = std::move(reader);
  const auto [number, added] = numbers_.try_emplace(id, segments_.size());
  Segment* const same_id = added ? nullptr : &segments_[number->second];
  if (same_id != nullptr && !Replaces(opened, *same_id)) {
    Refuse(file, {"duplicate",
                  "it is a copy of " + directory_.path() + "/" + same_id->name + ", whose values would count twice", id});
    return;
  }
  files_.erase(file.name);
  if (const auto position = options_.event_positions.find(id); position != options_.event_positions.end())
    opened.reader->events().StartAt(position->second);
  if (same_id != nullptr) {
    opened.was_alive |= same_id->was_alive;
    opened.place = same_id->place;
    opened.reader->events().StartAt(same_id->reader->events().next());
    *same_id = std::move(opened);
    return;
  }
  segments_.push_back(std::move(opened));
}

// Which of two segments with the same id to read. A process may move its segment, with its values, to another file; it unlocks
// the old file.
bool SegmentLifecycle::Replaces(const Segment& newer, const Segment& older) {
  const bool older_alive = older.reader->WriterLives();
  if (newer.alive != older_alive) return newer.alive;
  const auto changed = [](const Segment& segment) {
    return std::pair(segment.file.changed.tv_sec, segment.file.changed.tv_nsec);
  };
  return !older.is_in_directory || (!newer.alive && changed(newer) > changed(older));
}

void SegmentLifecycle::Refuse(const SegmentDirectory::File& file, SegmentProblem problem) {
  if (!problem.is_shortage) ReportRefused(file.name, problem);
  File& refused = files_[file.name];
  if (refused.state != File::State::kRefused || !refused.id.Same(file.id)) refused = {};
  refused.id = file.id;
  refused.segment_id = problem.segment_id;
  refused.retry = now_.steady + (problem.is_shortage ? std::chrono::seconds(0) : refused.backoff.Next());
  refused.problem = std::move(problem);
}

void SegmentLifecycle::ReportRefused(const std::string& name, const SegmentProblem& problem) {
  diagnostics_.Report("refused", "the segment " + directory_.path() + "/" + name + " is not read: " + problem.text);
}

// Of a process without the lock: either it has ended, or it has replaced its program by exec. Then the segment of the new
// program, which may come later, is the last one of this process.
void SegmentLifecycle::FindLiving() {
  bool all_hold_lock = true;
  for (Segment& segment : segments_) {
    if (segment.reader->released()) continue;
    segment.alive = HoldsLock(*segment.reader);
    segment.was_alive |= segment.alive;
    all_hold_lock = all_hold_lock && segment.alive;
    const bool held_lock = std::exchange(segment.holds_lock, segment.alive);
    if (held_lock) segment.clocks_until = segment.was_alive ? clocks_until_ : 0;
  }
  if (all_hold_lock) return;
  const auto birth = [](const Segment& segment) {
    return std::pair(segment.reader->header().birth_unix_ns, segment.reader->id());
  };
  std::map<ProcessId, const Segment*> last;
  for (const Segment& segment : segments_) {
    const Segment*& known = last[segment.reader->process()];
    if (known == nullptr || birth(*known) < birth(segment)) known = &segment;
  }
  for (Segment& segment : segments_) {
    if (segment.reader->released() || segment.alive) continue;
    segment.is_replaced = segment.reader->process().start_ticks != 0 && last.at(segment.reader->process()) != &segment;
    segment.alive = !segment.is_replaced && exits_.Lives(*segment.reader);
    segment.runs_other = segment.runs_other || segment.alive;
  }
}

void SegmentLifecycle::ReadAll() {
  // Before the read, so that the values include all counts of the writer up to its end.
  FindLiving();
  for (Segment& segment : segments_) {
    if (segment.reader->released()) continue;
    if (segment.alive) exits_.Watch(*segment.reader);
    SegmentProblem problem;
    if (segment.reader->Read(now_.tick, now_.wall, problem, segment.clocks_until)) {
      segment.problem.reset();
    } else {
      diagnostics_.Report("segment", "the segment " + directory_.path() + "/" + segment.name +
                                         " became unreadable, its last good values count: " + problem.text);
      segment.problem = std::move(problem);
    }
  }
}

bool SegmentLifecycle::IsOfThisRun(const SegmentReader& reader) const {
  const std::string& run_id = reader.identity().run_id;
  return options_.run_id.empty() || run_id.empty() || run_id == options_.run_id;
}

std::map<std::string, SegmentProblem> SegmentLifecycle::Refused() const {
  std::map<std::string, SegmentProblem> refused;
  for (const auto& [name, file] : files_)
    if (file.state == File::State::kRefused) refused.emplace(name, file.problem);
  return refused;
}

std::set<std::string> SegmentLifecycle::CountedFiles() const {
  std::set<std::string> counted;
  for (const Segment& segment : segments_)
    if (IsOfThisRun(*segment.reader)) counted.insert(segment.name);
  for (const auto& [name, file] : files_)
    if (file.state == File::State::kFolded || file.problem.reason == "duplicate") counted.insert(name);
  return counted;
}

size_t SegmentLifecycle::other_runs() const {
  return static_cast<size_t>(std::count_if(
      files_.begin(), files_.end(), [](const auto& named) { return named.second.state == File::State::kOtherRun; }));
}

void SegmentLifecycle::SetMaxBytes(uint64_t max_segment_bytes) {
  if (options_.access.max_bytes == max_segment_bytes) return;
  options_.access.max_bytes = max_segment_bytes;
  for (auto& [name, file] : files_) file.retry = {};
}

}  // namespace persia::agent

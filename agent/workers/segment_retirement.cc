// The part of SegmentLifecycle for segments that ended, or whose files are gone.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/ends.h"
#include "workers/last_events.h"
#include "workers/segment_lifecycle.h"

namespace persia::agent {
namespace {

// A file is named `<pid>-<first half of its id>.seg`: that half, or nothing if the name is another one.
std::string HalfIdIn(const std::string& name) {
  constexpr size_t kHalf = 16;
  const size_t dash = name.find('-');
  const size_t dot = name.find('.');
  return dash != std::string::npos && dot == dash + 1 + kHalf ? name.substr(dash + 1, kHalf) : "";
}

LastProcess LastProcessOf(const SegmentReader& reader) {
  return {.id = reader.process(), .restart_count = reader.identity().restart_count, .last_change = reader.last_change()};
}

}  // namespace

void SegmentLifecycle::Retire() {
  just_folded_.clear();
  std::erase_if(segments_, [&](Segment& segment) {
    if (segment.alive) return false;
    if (!segment.exit) segment.exit = segment.is_replaced ? std::string(kReplacedProgram) : exits_.ReasonOf(*segment.reader);
    if (IsOfThisRun(*segment.reader)) return false;
    if (segment.is_in_directory)
      files_[segment.name] = {.state = File::State::kOtherRun, .id = segment.file, .segment_id = segment.reader->id()};
    return true;
  });
  if (ledger_.Retires()) {
    AssignOrdinals(Which::kEarlier);
    FoldEnded();
  }
  AssignOrdinals(Which::kAll);
  if (ledger_.Retires()) {
    FoldEnded();
  } else {  // no state, or one that cannot be read yet: later, the fold does not report the end again
    for (Segment& segment : segments_)
      if (!segment.alive && segment.was_alive && segment.place) TellEnd(segment);
  }
  NoteLiving();
  NoteSeen();
}

bool SegmentLifecycle::LacksMemory() const {
  return std::ranges::any_of(
      files_, [](const auto& named) { return named.second.Waits() && named.second.problem.reason == "memory"; });
}

void SegmentLifecycle::ReportWaiting() {
  for (const auto& [name, file] : files_)
    if (file.Waits()) ReportRefused(name, file.problem);
}

void SegmentLifecycle::Save() {
  ledger_.Save(now_);
  RemoveFolded();
}

void SegmentLifecycle::TellEnd(Segment& segment) {
  if (std::exchange(segment.end_is_told, true) || segment.is_replaced) return;
  // The exit is empty as long as it may become known.
  const bool may_learn = exits_.MayLearnMore(segment.reader->process());
  segment.end = ProcessEnd{.exit = segment.exit.value_or(may_learn ? "" : std::string(kUnknownEnd)),
                           .at = now_.wall,
                           .last_sign = LastSignOf(segment),
                           .exception = ExceptionIn(segment.last_events),
                           .last_events = TextsOf(segment.last_events)};
}

std::optional<ProcessEnd::TimePoint> SegmentLifecycle::LastSignOf(const Segment& segment) const {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  using std::chrono::nanoseconds;
  // A segment may have any times.
  const auto now_ms = static_cast<uint64_t>(duration_cast<milliseconds>(now_.wall.time_since_epoch()).count());
  const auto now_ns = static_cast<uint64_t>(duration_cast<nanoseconds>(now_.steady.time_since_epoch()).count());
  nanoseconds ago = nanoseconds::max();
  for (const JobEvent& event : segment.last_events)
    if (event.unix_ms <= now_ms) ago = std::min<nanoseconds>(ago, milliseconds(now_ms - event.unix_ms));
  const uint64_t mark = segment.reader->clocks().LastMark();
  if (mark != 0 && mark <= now_ns) ago = std::min(ago, nanoseconds(now_ns - mark));
  if (ago >= now_.wall - read_before_) return std::nullopt;
  return now_.wall - duration_cast<ProcessEnd::TimePoint::duration>(ago);
}

void SegmentLifecycle::LearnExits() {
  for (const LateExit& late : std::exchange(late_exits_, {})) exits_.Forget(late.id);
  if (!ledger_.Retires()) return;
  late_exits_ = std::exchange(untold_, {});
  for (LateExit& late : late_exits_) {
    late.exit = exits_.ReasonOf(late.id).value_or(std::string(kUnknownEnd));
    ledger_.SetExit(late.place, late.id, late.exit);
  }
}

// Gives each process of this run an ordinal in its instance. A process that has one in the state keeps it, so that counts by
// ordinal continue; the others get the lowest free ones, the oldest process first. Of an instance's new processes, the oldest
// one that lives and was not forked may be the successor of one that has ended: kEarlier leaves out that one and all that are
// younger, so that it gets the ordinal of its predecessor, and the helpers that it has started get others, even if they have
// ended. A forked process is no successor: it ran beside its parent.
void SegmentLifecycle::AssignOrdinals(Which which) {
  std::vector<Segment*> without;
  for (Segment& segment : segments_) {
    const bool has = segment.place && segment.place->rank == segment.reader->identity().rank();
    if (has || !IsOfThisRun(*segment.reader)) continue;
    ReleaseOrdinal(segment);
    without.push_back(&segment);
  }
  // A program may begin to record after its helpers. The start is in ticks of 10 ms.
  const auto order = [](const Segment* segment) {
    const auto& header = segment->reader->header();
    return std::tuple(header.start_ticks, header.birth_unix_ns, segment->reader->id());
  };
  std::sort(without.begin(), without.end(), [&](const Segment* a, const Segment* b) { return order(a) < order(b); });
  std::erase_if(without, [&](Segment* segment) {
    const auto saved = ledger_.SavedPlace(segment->reader->id());
    if (!saved || saved->rank != segment->reader->identity().rank() || !ordinals_.TryReserve(*saved)) return false;
    segment->place = saved;
    return true;
  });
  std::set<RankId> ended_firsts;  // ranks whose process with ordinal 0 has ended
  for (const Segment& segment : segments_)
    if (!segment.alive && segment.place && segment.place->ordinal == 0) ended_firsts.insert(segment.place->rank);
  std::set<RankId> begun;  // ranks with a process that may be a successor
  for (Segment* segment : without) {
    const RankId rank = segment->reader->identity().rank();
    if (segment->alive && !segment->reader->forked()) begun.insert(rank);
    const bool is_earlier = !begun.contains(rank) && (!segment->alive || ended_firsts.contains(rank));
    if (which == Which::kEarlier && !is_earlier) continue;
    segment->place = ordinals_.ReserveLowest(rank);
    if (!segment->alive && segment->place->ordinal == 0) ended_firsts.insert(rank);
  }
}

void SegmentLifecycle::ReleaseOrdinal(Segment& segment) {
  if (segment.place) ordinals_.Release(*segment.place);
  segment.place.reset();
}

// An orphan's values come from the state until its segment is read. If no file can be its segment, it is folded.
void SegmentLifecycle::SettleOrphans() {
  std::set<std::string> read;
  for (const Segment& segment : segments_) read.insert(segment.reader->id());
  std::set<std::string> refused;  // ids and halves of ids
  bool any_may_be_its_own = false;
  for (const auto& [name, file] : files_) {
    if (file.state != File::State::kRefused || file.problem.reason == "magic" || file.problem.reason == "type") continue;
    const std::string id = file.segment_id.empty() ? HalfIdIn(name) : file.segment_id;
    any_may_be_its_own = any_may_be_its_own || id.empty();
    refused.insert(id);
  }
  const auto may_have_file = [&](const std::string& id) {
    return any_may_be_its_own || refused.contains(id) || refused.contains(id.substr(0, id.size() / 2));
  };
  for (const std::string& id : ledger_.Orphans()) {
    const bool adopted = read.contains(id);
    if (!adopted && (!listed_all_ || !ledger_.Retires() || may_have_file(id))) {
      const auto orphan = ledger_.OrphanOf(id);
      if (!orphan || orphans_.contains(id)) continue;
      const ProcessPlace place = orphan->values.place();
      if (ordinals_.TryReserve(place)) orphans_.emplace(id, place);
      continue;
    }
    if (const auto reserved = orphans_.extract(id)) ordinals_.Release(reserved.mapped());
    adopted ? ledger_.Adopt(id) : ledger_.FoldOrphan(id, now_);
  }
  if (listed_all_) ForgetLost();
}

// A file may have another name. The first complete listing after its removal shows it. Nor may a power cut bring it back, since
// its process would be counted again.
void SegmentLifecycle::ForgetRemoved() {
  if (removed_.empty() || !directory_.SyncRemovals()) return;
  for (const auto& [name, file] : files_) removed_.erase(file.segment_id);
  for (const std::string& id : std::exchange(removed_, {})) ledger_.Forget(id);
}

// Ids whose files were not removed by this agent are kept, since the files may return; at most this many.
void SegmentLifecycle::ForgetLost() {
  constexpr size_t kMaxFolded = 65536;
  std::vector<std::string> folded = ledger_.FoldedIds();
  if (folded.size() <= kMaxFolded) return;
  std::set<std::string> with_file;
  for (const auto& [name, file] : files_) with_file.insert(file.segment_id);
  std::erase_if(folded, [&](const std::string& id) { return with_file.contains(id); });
  for (size_t i = 0; i < folded.size() && i < kMaxFolded / 2; ++i) ledger_.Forget(folded[i]);
}

std::vector<Ledger::Orphan> SegmentLifecycle::Orphans() const {
  std::vector<Ledger::Orphan> orphans;
  for (const std::string& id : ledger_.Orphans())
    if (const auto orphan = ledger_.OrphanOf(id)) orphans.push_back(*orphan);
  return orphans;
}

void SegmentLifecycle::NoteLiving() {
  if (!ledger_.Retires()) return;
  // While an orphan is exposed, so are the ended processes of its instance: else the counts would fall.
  for (const Ledger::Orphan& orphan : Orphans()) ledger_.processes().MarkSeen(orphan.values.identity->rank(), now_);
  for (Segment& segment : segments_) {
    if (!segment.alive || !segment.place) continue;
    ledger_.processes().MarkSeen(segment.place->rank, now_);
    const bool noted = segment.noted_clocks == segment.reader->clocks().changes() &&
                       ledger_.SavedPlace(segment.reader->id()) == segment.place &&
                       segment.noted_change == segment.reader->last_change_tick() &&
                       segment.noted_generation == segment.reader->generation();
    if (noted) continue;
    ledger_.Note(segment.Values(), LastProcessOf(*segment.reader));
    segment.noted_change = segment.reader->last_change_tick();
    segment.noted_clocks = segment.reader->clocks().changes();
    segment.noted_generation = segment.reader->generation();
  }
}

// An orphan may be dead: while there is one, clocks that run are counted as far as before.
void SegmentLifecycle::NoteSeen() {
  const bool counts = std::ranges::any_of(segments_, [](const Segment& segment) { return segment.reader->clocks().AnyRuns(); });
  if (!counts || !ledger_.Orphans().empty()) return;
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(now_.steady.time_since_epoch()).count();
  ledger_.SetSeen(static_cast<uint64_t>(std::max<int64_t>(0, now)));
}

// Adds the ended processes to the sums and releases their ordinals. Those that have removed a series come first: a series that
// another one still had stays exposed.
void SegmentLifecycle::FoldEnded() {
  FoldEnded([](const Segment& segment) {
    return std::ranges::any_of(
        segment.reader->series(), [](const auto& series) { return series.record.removed; });
  });
  FoldEnded([](const Segment& /*any*/) { return true; });
}

template <class Chosen>
void SegmentLifecycle::FoldEnded(const Chosen& chosen) {
  std::erase_if(
      segments_,
      [&](Segment& segment) {
        if (segment.alive || !segment.place || !chosen(segment)) return false;
        const std::string& id = segment.reader->id();
        const ProcessId process = segment.reader->process();
        const bool told = segment.exit || !exits_.MayLearnMore(process);
        TellEnd(segment);
        ledger_.Fold(segment.Values(), LastProcessOf(*segment.reader), now_,
                     told ? std::optional(segment.exit ? *segment.exit : kUnknownEnd) : std::nullopt);
        if (told) {
          if (!segment.is_replaced) exits_.Forget(process);
        } else {
          untold_.push_back({.segment_id = id, .place = *segment.place, .id = process});
        }
        if (segment.is_in_directory)
          files_[segment.name] = {.state = File::State::kFolded, .id = segment.file, .segment_id = id};
        if (told && !segment.exit) segment.exit = std::string(kUnknownEnd);
        ordinals_.Release(*segment.place);
        just_folded_.push_back(std::move(segment));
        return true;
      });
}

void SegmentLifecycle::RemoveFolded() {
  std::erase_if(
      files_,
      [&](const auto& named) {
        const File& file = named.second;
        if (file.state != File::State::kFolded || !ledger_.IsDurable(file.segment_id)) return false;
        const auto removal = directory_.Remove(named.first, file.id);
        if (removal == SegmentDirectory::Removal::kRemoved) removed_.insert(file.segment_id);
        return removal != SegmentDirectory::Removal::kFailed;
      });
}

}  // namespace persia::agent

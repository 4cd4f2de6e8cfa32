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

#include "model/exit_reason.h"
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
  const auto& header = reader.header();
  return {.pid = header.pid,
          .pid_namespace = header.pid_namespace,
          .start_ticks = header.start_ticks,
          .restart_count = reader.identity().restart_count,
          .last_change = reader.last_change()};
}

InstanceKey InstanceOf(const SegmentIdentity& identity) { return {identity.role, identity.replica}; }

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
      if (!segment.alive && segment.was_alive && segment.instance) TellEnd(segment);
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
  const SegmentReader& reader = *segment.reader;
  const auto& header = reader.header();
  const std::optional<PresentPhase> phase = reader.clocks().Present();
  const auto birth = std::chrono::duration_cast<ProcessEnd::TimePoint::duration>(
      std::chrono::nanoseconds(static_cast<int64_t>(header.birth_unix_ns)));
  // The exit is empty as long as it may become known.
  const bool may_learn = exits_.MayLearnMore(LastProcessOf(reader));
  ends_.emplace_back(*segment.instance, ProcessEnd{.segment_id = reader.id(),
                                                   .ordinal = segment.ordinal,
                                                   .pid = header.pid,
                                                   .pid_namespace = header.pid_namespace,
                                                   .start_ticks = header.start_ticks,
                                                   .exit = segment.exit.value_or(may_learn ? "" : std::string(kUnknownEnd)),
                                                   .phase = phase ? phase->name : "",
                                                   .step = reader.step(),
                                                   .birth = ProcessEnd::TimePoint(birth),
                                                   .ended_at = now_.wall,
                                                   .last_sign = LastSignOf(segment),
                                                   .exception = ExceptionIn(segment.last_events),
                                                   .last_events = TextsOf(segment.last_events)});
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
  late_exits_.clear();
  for (const LastProcess& process : std::exchange(learned_, {})) exits_.Forget(process);
  if (!ledger_.Retires()) return;
  for (const Untold& untold : std::exchange(untold_, {})) {
    const auto reason = exits_.ReasonOf(untold.process);
    const std::string exit = reason.value_or(std::string(kUnknownEnd));
    ledger_.SetExit(untold.instance, untold.ordinal, untold.process, exit);
    late_exits_.push_back({untold.id, exit});
    learned_.push_back(untold.process);
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
    const bool has = segment.instance && *segment.instance == InstanceOf(segment.reader->identity());
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
    const InstanceKey instance = InstanceOf(segment->reader->identity());
    const std::optional<uint32_t> saved = ledger_.SavedOrdinal(segment->reader->id(), instance);
    if (!saved || !ordinals_.TryReserve(instance, *saved)) return false;
    segment->instance = instance;
    segment->ordinal = *saved;
    return true;
  });
  std::set<InstanceKey> ended_firsts;  // instances whose process with ordinal 0 has ended
  for (const Segment& segment : segments_)
    if (!segment.alive && segment.instance && segment.ordinal == 0) ended_firsts.insert(*segment.instance);
  std::set<InstanceKey> begun;  // instances with a process that may be a successor
  for (Segment* segment : without) {
    const InstanceKey instance = InstanceOf(segment->reader->identity());
    if (segment->alive && !segment->reader->forked()) begun.insert(instance);
    const bool is_earlier = !begun.contains(instance) && (!segment->alive || ended_firsts.contains(instance));
    if (which == Which::kEarlier && !is_earlier) continue;
    segment->instance = instance;
    segment->ordinal = ordinals_.ReserveLowest(instance);
    if (!segment->alive && segment->ordinal == 0) ended_firsts.insert(instance);
  }
}

void SegmentLifecycle::ReleaseOrdinal(Segment& segment) {
  if (segment.instance) {
    ordinals_.Release(*segment.instance, segment.ordinal);
    segment.instance.reset();
  }
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
      const InstanceKey instance = InstanceOf(*orphan->values.identity);
      if (ordinals_.TryReserve(instance, orphan->values.ordinal))
        orphans_.emplace(id, std::pair(instance, orphan->values.ordinal));
      continue;
    }
    if (const auto reserved = orphans_.extract(id)) ordinals_.Release(reserved.mapped().first, reserved.mapped().second);
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
  for (const Ledger::Orphan& orphan : Orphans()) ledger_.processes().MarkSeen(InstanceOf(*orphan.values.identity), now_);
  for (Segment& segment : segments_) {
    if (!segment.alive || !segment.instance) continue;
    ledger_.processes().MarkSeen(*segment.instance, now_);
    const bool noted = segment.noted_clocks == segment.reader->clocks().changes() &&
                       ledger_.SavedOrdinal(segment.reader->id(), *segment.instance) == segment.ordinal &&
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
        if (segment.alive || !segment.instance || !chosen(segment)) return false;
        const std::string& id = segment.reader->id();
        const LastProcess process = LastProcessOf(*segment.reader);
        const bool told = segment.exit || !exits_.MayLearnMore(process);
        TellEnd(segment);
        ledger_.Fold(segment.Values(), process, now_,
                     told ? std::optional(segment.exit ? *segment.exit : kUnknownEnd) : std::nullopt);
        if (told) {
          if (!segment.is_replaced) exits_.Forget(process);
        } else {
          untold_.push_back({id, *segment.instance, segment.ordinal, process});
        }
        if (segment.is_in_directory)
          files_[segment.name] = {.state = File::State::kFolded, .id = segment.file, .segment_id = id};
        if (told && !segment.exit) segment.exit = std::string(kUnknownEnd);
        ReleaseOrdinal(segment);
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

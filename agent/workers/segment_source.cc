#include "workers/segment_source.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "files/proc_reader.h"

namespace persia::agent {

SegmentSource::SegmentSource(SegmentSourceOptions options, std::shared_ptr<const Naming> naming)
    : options_(std::move(options)),
      naming_(naming != nullptr ? std::move(naming) : std::make_shared<PlainNaming>()),
      retired_(options_.retired, diagnostics_) {
  merger_ =
      std::make_unique<Merger>(IdentityRules{.job = SanitizeText(options_.job), .ip_addr = SanitizeText(options_.ip_addr)},
                               *naming_, diagnostics_, options_.limits);
}

SegmentSource::~SegmentSource() = default;

std::shared_ptr<const Snapshot> SegmentSource::Collect() {
  Read();
  Plan({});
  return Expose({});
}

void SegmentSource::Read() {
  now_ = {now_.tick + 1, options_.steady(), options_.wall()};
  if (!retired_.Loaded()) {
    retired_.Load(now_);
  }
  Scan();
  FoldLost();
  ReadAll();
  if (retired_.Retires()) {
    AssignOrdinals(Which::kEnded);
    FoldEnded();
  }
  AssignOrdinals(Which::kAll);
  SaveState();

  stats_ = {};
  // Ended processes first: if the series exceed a limit, those that are exposed already stay.
  inputs_ = retired_.processes().Inputs(now_);
  for (const TrackedSegment& tracked : tracked_) {
    if (!IsOfThisRun(*tracked.reader)) {
      ++stats_.other_run;
      continue;
    }
    Measurements input = MeasurementsOf(*tracked.reader);
    input.ended = !tracked.alive;
    input.ordinal = tracked.ordinal;
    inputs_.push_back(input);
    if (!IsOwn(tracked)) {
      ++(tracked.alive ? stats_.live : stats_.dead);
    }
    stats_.bad += tracked.problem ? 1 : 0;
    stats_.records_skipped += tracked.reader->records_skipped();
  }
  stats_.other_run += other_runs_.size();
  stats_.retired = retired_.processes().processes();
  stats_.events_lost = events_lost_;
  for (const auto& [name, refused] : refused_) {
    stats_.refused.push_back({PathOf(name), refused.problem});
  }
  for (const Measurements& input : inputs_) {
    stats_.dropped = std::accumulate(std::begin(input.values->dropped), std::end(input.values->dropped), stats_.dropped);
  }
  stats_.retired_series_refused = retired_.processes().series_refused();
  stats_.left_out = merger_->left_out();
  ListProcesses();
}

bool SegmentSource::Plan(const OwnSnapshots& own) {
  const bool changed = merger_->Prepare(inputs_, own);
  stats_.left_out = merger_->left_out();
  return changed;
}

std::shared_ptr<const Snapshot> SegmentSource::Expose(const OwnSnapshots& own) {
  return merger_->Merge(inputs_, own, now_.wall, now_.steady);
}

// Gives each process of this run an ordinal in its instance. A process that has one in the state keeps it, so that what is
// counted by ordinal continues; the others get the lowest free ones, the oldest process first. Processes that were folded
// already come last: their ordinals are free. This is called for ended processes before it is called for all, so that the
// successor of a process that ended since the last Collect gets its ordinal. A new ordinal is saved before it is exposed:
// otherwise an agent that is started after this one was killed might give it to another process.
void SegmentSource::AssignOrdinals(Which which) {
  std::vector<TrackedSegment*> without;
  for (TrackedSegment& tracked : tracked_) {
    const SegmentIdentity& identity = tracked.reader->identity();
    const bool has =
        tracked.instance && tracked.instance->first == identity.role && tracked.instance->second == identity.replica;
    if (has || !IsOfThisRun(*tracked.reader)) continue;
    ReleaseOrdinal(tracked);
    without.push_back(&tracked);
  }
  const auto order = [this](const TrackedSegment* tracked) {
    return std::tuple(retired_.IsFolded(tracked->reader->id()), tracked->reader->header().birth_unix_ns, tracked->reader->id());
  };
  std::sort(without.begin(), without.end(),
            [&](const TrackedSegment* a, const TrackedSegment* b) { return order(a) < order(b); });
  std::erase_if(without, [&](TrackedSegment* tracked) {
    tracked->instance.emplace(tracked->reader->identity().role, tracked->reader->identity().replica);
    const std::optional<uint32_t> saved = retired_.SavedOrdinal(tracked->reader->id());
    if (!saved || !ordinals_.TryReserve(*tracked->instance, *saved)) return false;
    tracked->ordinal = *saved;
    return true;
  });
  for (TrackedSegment* tracked : without) {
    if (tracked->alive && which == Which::kEnded) {
      tracked->instance.reset();
    } else {
      tracked->ordinal = ordinals_.ReserveLowest(*tracked->instance);
      retired_.MarkUnsaved();
    }
  }
}

void SegmentSource::ReleaseOrdinal(TrackedSegment& tracked) {
  if (tracked.instance) {
    ordinals_.Release(*tracked.instance, tracked.ordinal);
    tracked.instance.reset();
  }
}

std::map<std::string, uint64_t> SegmentSource::EventPositions() const {
  std::map<std::string, uint64_t> tickets;
  for (const TrackedSegment& tracked : tracked_) {
    if (!tracked.reader->released() && tracked.reader->events().next() > 0) {
      tickets.emplace(tracked.reader->id(), tracked.reader->events().next());
    }
  }
  return tickets;
}

bool SegmentSource::IsOwn(const TrackedSegment& tracked) const {
  static const uint64_t own_namespace = ProcReader().PidNamespace("self").value_or(0);
  return options_.own_process && tracked.alive && tracked.reader->header().pid == static_cast<uint32_t>(getpid()) &&
         tracked.reader->header().pid_namespace == own_namespace;
}

void SegmentSource::ListProcesses() {
  processes_.clear();
  std::set<std::pair<InstanceKey, uint32_t>> taken;
  const RetiredProcesses& retired = retired_.processes();
  for (const TrackedSegment& tracked : tracked_) {
    if (!tracked.instance) continue;
    const SegmentIdentity& identity = tracked.reader->identity();
    const auto& header = tracked.reader->header();
    taken.emplace(*tracked.instance, tracked.ordinal);
    if (IsOwn(tracked)) continue;
    processes_.push_back({.identity = ProcessIdentity(identity.role, identity.replica, merger_->rules()),
                          .ordinal = tracked.ordinal,
                          .predecessors = retired.EndedCount(*tracked.instance, tracked.ordinal),
                          .alive = tracked.alive,
                          .pid = header.pid,
                          .pid_namespace = header.pid_namespace,
                          .start_ticks = header.start_ticks,
                          .run_id = identity.run_id,
                          .restart_count = identity.restart_count,
                          .library_version = tracked.reader->writer().library_version,
                          .last_change = tracked.reader->last_change()});
  }
  for (const auto& [key, instance] : retired.instances()) {
    if (!retired.IsShown(key, now_)) continue;
    for (const auto& [ordinal, last] : instance.last_processes) {
      if (!taken.contains({key, ordinal})) {
        processes_.push_back({.identity = ProcessIdentity(key.first, key.second, merger_->rules()),
                              .ordinal = ordinal,
                              .predecessors = last.ended,
                              .alive = false,
                              .pid = last.pid,
                              .pid_namespace = last.pid_namespace,
                              .start_ticks = last.start_ticks,
                              .run_id = options_.run_id,
                              .restart_count = last.restart_count,
                              .last_change = last.last_change});
      }
    }
  }
}

void SegmentSource::SetLimits(const SeriesLimits& limits, uint64_t max_segment_bytes, std::chrono::milliseconds gauge_ttl,
                              bool hide_ended) {
  options_.max_segment_bytes = max_segment_bytes;
  merger_->SetLimits(limits);
  retired_.processes().SetOptions({gauge_ttl, hide_ended, limits});
}

void SegmentSource::SetIdentityLabels(Labels labels, std::string agent_id) {
  IdentityRules rules = merger_->rules();
  rules.labels = std::move(labels);
  rules.agent_id = std::move(agent_id);
  merger_->SetIdentityRules(rules);
}

void SegmentSource::SetNaming(std::shared_ptr<const Naming> naming) {
  merger_->SetNaming(*naming);
  naming_ = std::move(naming);
}

bool SegmentSource::IsOfThisRun(const SegmentReader& reader) const {
  const std::string& run_id = reader.identity().run_id;
  return options_.run_id.empty() || run_id.empty() || run_id == options_.run_id;
}

}  // namespace persia::agent

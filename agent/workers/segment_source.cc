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

#include "kernel/proc_reader.h"
#include "workers/last_events.h"
#include "workers/rank_processes.h"

namespace persia::agent {

namespace {

constexpr size_t kMaxPhaseBytes = 128;  // that are shown
constexpr size_t kMaxPhases = 32;       // of a process, that are judged

std::string ShownPhase(std::string_view phase) { return SanitizeText(phase.substr(0, kMaxPhaseBytes)); }

std::map<std::string, double> PhaseSeconds(const SegmentReader& reader, uint64_t now_ns) {
  std::map<std::string, double> seconds;
  for (const auto& [phase, ns] : reader.clocks().TimesAt(now_ns)) {
    if (seconds.size() == kMaxPhases) break;
    seconds[ShownPhase(phase)] += static_cast<double>(ns) * 1e-9;
  }
  return seconds;
}

}  // namespace

SegmentSource::SegmentSource(SegmentSourceOptions options, std::shared_ptr<const Naming> naming)
    : options_(std::move(options)),
      naming_(naming != nullptr ? std::move(naming) : std::make_shared<PlainNaming>()),
      ledger_(options_.ledger, diagnostics_),
      directory_(options_.files != nullptr ? std::move(options_.files)
                                           : std::make_unique<DiskSegmentDirectory>(options_.directory)),
      lifecycle_({.run_id = options_.run_id,
                  .access = {geteuid(), options_.group, options_.max_segment_bytes},
                  .event_positions = options_.event_positions,
                  .reaped = options_.reaped},
                 *directory_, ledger_, diagnostics_) {
  merger_ =
      std::make_unique<Merger>(IdentityRules{.job = SanitizeText(options_.job), .ip_addr = SanitizeText(options_.ip_addr)},
                               *naming_, diagnostics_, options_.limits);
}

SegmentSource::~SegmentSource() = default;

std::shared_ptr<const Snapshot> SegmentSource::Collect() {
  Read();
  Retire();
  Commit();
  Plan({});
  return Expose({});
}

void SegmentSource::Read() {
  now_ = {now_.tick + 1, options_.steady(), options_.wall()};
  if (!ledger_.Loaded()) ledger_.Load(now_);
  ledger_.CountMemory();
  lifecycle_.Read(now_);
  ReadAllEvents();
  while (ReadMore()) {
  }
}

// Descriptors that ended segments held, or their memory after their fold, are free for others.
bool SegmentSource::ReadMore() {
  const bool reads = lifecycle_.OpenMore();
  if (reads) ReadAllEvents();
  return reads;
}

void SegmentSource::Retire() {
  rank_processes_.clear();
  lifecycle_.LearnExits();
  do {
    Fold();
  } while (HasRoom() && ReadMore());
  lifecycle_.ReportWaiting();
  // Ended processes first: if the series exceed a limit, those that are already exposed stay.
  inputs_ = ledger_.processes().Inputs(now_);
  const std::vector<Ledger::Orphan> orphans = lifecycle_.Orphans();
  for (const Ledger::Orphan& orphan : orphans) inputs_.push_back(orphan.values);
  for (const SegmentLifecycle::Segment& segment : lifecycle_.segments())
    if (lifecycle_.IsOfThisRun(*segment.reader)) inputs_.push_back(segment.Values());
  stats_ = {};
  stats_.orphans = orphans.size();
  CountSegments();
  ListProcesses(orphans);
  ListRankProcesses();
}

void SegmentSource::Commit() {
  lifecycle_.Save();
  ShowSaved();
}

// The records of folds take as much memory as their segments, until they are written.
bool SegmentSource::HasRoom() {
  constexpr std::chrono::seconds kPatience(2);
  if (!lifecycle_.LacksMemory()) return true;
  lifecycle_.Save();
  return ledger_.Flush(kPatience);
}

void SegmentSource::Fold() {
  ledger_.processes().SetLiving(FindLiving(), now_);
  lifecycle_.Retire();
  for (const SegmentLifecycle::Segment& segment : lifecycle_.just_folded()) rank_processes_.push_back(RankProcessOf(segment));
}

bool SegmentSource::FlushState(std::chrono::milliseconds patience) {
  const bool is_on_disk = ledger_.Flush(patience);
  ShowSaved();
  return is_on_disk;
}

std::vector<ProcessEnd> SegmentSource::TakeEnds() {
  std::vector<ProcessEnd> ends;
  for (auto& [instance, end] : lifecycle_.TakeEnds()) {
    end.identity = ProcessIdentity(instance.first, instance.second, merger_->rules());
    end.phase = SanitizeText(std::string_view(end.phase).substr(0, kMaxPhaseBytes));
    ends.push_back(std::move(end));
  }
  return ends;
}

std::string SegmentSource::ExitOf(const ProcessEnd& end) const {
  const LastProcess process{.pid = end.pid, .pid_namespace = end.pid_namespace, .start_ticks = end.start_ticks};
  return lifecycle_.ExitOf(process).value_or("");
}

LivingJob SegmentSource::FindLiving() const {
  LivingJob living;
  if (command_) {
    living = {.is_over = command_->has_ended,
              .began_ticks = command_->began_ticks,
              .booted = command_->booted,
              .interrupted_at = command_->interrupted_at};
  }
  for (const SegmentLifecycle::Segment& segment : lifecycle_.segments()) {
    if (!segment.alive || !lifecycle_.IsOfThisRun(*segment.reader)) continue;
    const SegmentIdentity& identity = segment.reader->identity();
    living.instances.emplace(identity.role, identity.replica);
    if (IsOwn(segment)) continue;
    uint32_t& highest = living.restart_counts[identity.role];
    highest = std::max(highest, identity.restart_count);
  }
  return living;
}

void SegmentSource::CountSegments() {
  for (const SegmentLifecycle::Segment& segment : lifecycle_.segments()) {
    if (!lifecycle_.IsOfThisRun(*segment.reader)) {
      ++stats_.other_run;
      continue;
    }
    if (!IsOwn(segment)) ++(segment.alive ? stats_.live : stats_.dead);
    stats_.bad += segment.problem ? 1 : 0;
    stats_.changes += segment.reader->changes();
    stats_.phases_run = stats_.phases_run || (segment.alive && segment.reader->clocks().AnyRuns());
    stats_.records_skipped += segment.reader->records_skipped();
  }
  stats_.other_run += lifecycle_.other_runs();
  for (auto& [name, problem] : lifecycle_.Refused()) stats_.refused.push_back({directory_->path() + "/" + name, problem});
  for (const Measurements& input : inputs_)
    stats_.dropped = std::accumulate(std::begin(input.values->dropped), std::end(input.values->dropped), stats_.dropped);
  stats_.retired = ledger_.processes().processes();
  stats_.events_lost = events_lost_;
  stats_.retired_series_refused = ledger_.processes().series_refused();
  stats_.left_out = merger_->left_out();
}

void SegmentSource::ReadAllEvents() {
  for (SegmentLifecycle::Segment& segment : lifecycle_.segments()) ReadEvents(segment);
}

// The read that follows a process's end reads the last events that it recorded.
void SegmentSource::ReadEvents(SegmentLifecycle::Segment& segment) {
  if (!options_.reads_events || segment.reader->released() || !lifecycle_.IsOfThisRun(*segment.reader)) return;
  const uint64_t lost = segment.reader->events().lost();
  const size_t before = events_.size();
  segment.reader->ReadEvents(segment.alive, events_);
  events_lost_ += segment.reader->events().lost() - lost;
  const SegmentIdentity& process = segment.reader->identity();
  const Identity identity = ProcessIdentity(process.role, process.replica, merger_->rules());
  for (size_t i = before; i < events_.size(); ++i) events_[i].identity = identity;
  KeepLast(std::span(events_).subspan(before), segment.last_events);
}

bool SegmentSource::Plan(const OwnSnapshots& own) {
  const bool changed = merger_->Prepare(inputs_, own);
  stats_.left_out = merger_->left_out();
  return changed;
}

std::shared_ptr<const Snapshot> SegmentSource::Expose(const OwnSnapshots& own) {
  return merger_->Merge(inputs_, own, now_.wall, now_.steady);
}

std::map<std::string, uint64_t> SegmentSource::EventPositions() const {
  std::map<std::string, uint64_t> tickets;
  for (const SegmentLifecycle::Segment& segment : lifecycle_.segments())
    if (!segment.reader->released() && segment.reader->events().next() > 0)
      tickets.emplace(segment.reader->id(), segment.reader->events().next());
  return tickets;
}

bool SegmentSource::IsOwn(const SegmentLifecycle::Segment& segment) const {
  static const uint64_t own_namespace = ProcReader().PidNamespace("self").value_or(0);
  return options_.agent_pid != 0 && segment.alive && segment.reader->header().pid == options_.agent_pid &&
         segment.reader->header().pid_namespace == own_namespace;
}

void SegmentSource::ListProcesses(std::span<const Ledger::Orphan> orphans) {
  processes_.clear();
  std::set<std::pair<InstanceKey, uint32_t>> taken;
  const RetiredProcesses& retired = ledger_.processes();
  for (const SegmentLifecycle::Segment& segment : lifecycle_.segments()) {
    if (!segment.instance) continue;
    const SegmentIdentity& identity = segment.reader->identity();
    const auto& header = segment.reader->header();
    taken.emplace(*segment.instance, segment.ordinal);
    if (IsOwn(segment)) continue;
    const std::optional<PresentPhase> phase = segment.alive ? segment.reader->clocks().Present() : std::nullopt;
    const auto now_ns = static_cast<uint64_t>(std::chrono::nanoseconds(now_.steady.time_since_epoch()).count());
    const std::chrono::nanoseconds in_phase(phase ? now_ns - std::min(now_ns, phase->since_ns) : 0);
    processes_.push_back(
        {.identity = ProcessIdentity(identity.role, identity.replica, merger_->rules()),
         .ordinal = segment.ordinal,
         .predecessors = retired.EndedCount(*segment.instance, segment.ordinal) + (segment.alive ? 0 : 1),
         .alive = segment.alive,
         .runs_other = segment.runs_other,
         .pid = header.pid,
         .pid_namespace = header.pid_namespace,
         .start_ticks = header.start_ticks,
         .run_id = identity.run_id,
         .restart_count = identity.restart_count,
         .library_version = segment.reader->writer().library_version,
         .last_change = segment.reader->last_change(),
         .changes = segment.reader->changes(),
         .segment_used_ratio = segment.reader->UsedRatio(),
         .phase = phase ? ShownPhase(phase->name) : "",
         .in_phase = std::chrono::duration_cast<std::chrono::milliseconds>(in_phase),
         .step = segment.alive ? segment.reader->step() : std::nullopt,
         .phase_seconds = segment.alive ? PhaseSeconds(*segment.reader, now_ns) : std::map<std::string, double>(),
         .last_exit = segment.alive ? retired.LastExit(*segment.instance, segment.ordinal) : segment.exit.value_or("")});
  }
  // Whether an orphan is alive is not known. It is listed as if it had ended.
  for (const auto& [values, process] : orphans) {
    const InstanceKey instance(values.identity->role, values.identity->replica);
    if (!taken.emplace(instance, values.ordinal).second) continue;
    processes_.push_back({.identity = ProcessIdentity(instance.first, instance.second, merger_->rules()),
                          .ordinal = values.ordinal,
                          .predecessors = retired.EndedCount(instance, values.ordinal) + 1,
                          .alive = false,
                          .pid = process.pid,
                          .pid_namespace = process.pid_namespace,
                          .start_ticks = process.start_ticks,
                          .run_id = values.identity->run_id,
                          .restart_count = process.restart_count,
                          .last_change = process.last_change});
  }
  std::set<std::pair<InstanceKey, uint32_t>> untold;
  for (const SegmentLifecycle::Untold& process : lifecycle_.untold()) untold.emplace(process.instance, process.ordinal);
  for (const auto& [key, instance] : retired.instances()) {
    if (!retired.IsShown(key, now_)) continue;
    for (const auto& [ordinal, last] : instance.last_ends) {
      if (!taken.contains({key, ordinal})) {
        const bool is_told = !untold.contains({key, ordinal});
        processes_.push_back({.identity = ProcessIdentity(key.first, key.second, merger_->rules()),
                              .ordinal = ordinal,
                              .predecessors = last.process.ended,
                              .alive = false,
                              .pid = last.process.pid,
                              .pid_namespace = last.process.pid_namespace,
                              .start_ticks = last.process.start_ticks,
                              .run_id = options_.run_id,
                              .restart_count = last.process.restart_count,
                              .last_change = last.process.last_change,
                              .ended_at = last.ended,
                              .last_exit = is_told ? last.exit : "",
                              .died = is_told && retired.HasDied(key, ordinal)});
      }
    }
  }
}

void SegmentSource::ListRankProcesses() {
  for (const SegmentLifecycle::Segment& segment : lifecycle_.segments())
    if (segment.instance && !IsOwn(segment)) rank_processes_.push_back(RankProcessOf(segment));
}

Identity SegmentSource::IdentityOf(const RankKey& rank) const {
  return ProcessIdentity(rank.first, rank.second, merger_->rules());
}

// Lists the ends and the restarts that are on disk.
void SegmentSource::ShowSaved() {
  ListEnded();
  std::map<std::pair<Identity, uint32_t>, uint64_t> unsaved;
  for (const auto& [place, processes] : ledger_.UnsavedPlaces())
    unsaved[{ProcessIdentity(place.first.first, place.first.second, merger_->rules()), place.second}] += processes;
  for (WorkerProcess& process : processes_) {
    const uint64_t processes = process.predecessors + (process.alive ? 1 : 0);
    uint64_t no_restarts = 1;  // the first one
    if (!unsaved.empty()) {
      if (const auto found = unsaved.find({process.identity, process.ordinal}); found != unsaved.end())
        no_restarts += found->second;
    }
    process.restarts = processes - std::min(processes, no_restarts);
  }
}

// If none are folded, with those whose end is known.
void SegmentSource::ListEnded() {
  ended_.clear();
  std::map<InstanceKey, std::map<std::string, uint64_t>> exits;
  const RetiredProcesses& retired = ledger_.processes();
  for (const auto& [key, instance] : retired.instances())
    if (retired.IsShown(key, now_)) exits[key] = ledger_.Exits(key);
  for (const SegmentLifecycle::Segment& segment : lifecycle_.segments()) {
    if (ledger_.WillRetire() || segment.alive || !segment.instance || !segment.exit || IsOwn(segment)) continue;
    ++exits[*segment.instance][*segment.exit];
  }
  for (auto& [key, of] : exits)
    if (!of.empty()) ended_.push_back({ProcessIdentity(key.first, key.second, merger_->rules()), std::move(of)});
}

void SegmentSource::SetHealth(std::string_view health) { ledger_.SetHealth(health); }

void SegmentSource::SetLimits(const SeriesLimits& limits, uint64_t max_segment_bytes, std::chrono::milliseconds gauge_ttl,
                              bool hide_ended) {
  lifecycle_.SetMaxBytes(max_segment_bytes);
  merger_->SetLimits(limits);
  ledger_.processes().SetOptions({gauge_ttl, hide_ended, limits});
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

}  // namespace persia::agent

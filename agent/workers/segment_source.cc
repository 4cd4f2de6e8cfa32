#include "workers/segment_source.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "kernel/proc_reader.h"
#include "workers/last_events.h"
#include "workers/segment_process.h"

namespace persia::agent {

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
  folded_.clear();
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
  for (const SegmentLifecycle::Segment& segment : lifecycle_.just_folded()) folded_.push_back(Describe(segment));
}

bool SegmentSource::FlushState(std::chrono::milliseconds patience) {
  const bool is_on_disk = ledger_.Flush(patience);
  ShowSaved();
  return is_on_disk;
}

std::vector<Process> SegmentSource::Ends() const {
  std::vector<Process> ends;
  for (const std::vector<Process>* some : {&folded_, &processes_})
    std::ranges::copy_if(*some, std::back_inserter(ends), [](const Process& process) { return process.end.has_value(); });
  return ends;
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
    living.instances.insert(identity.rank());
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
  const Identity identity = IdentityOf(segment.reader->identity().rank());
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
  return options_.agent_pid != 0 && segment.alive && segment.reader->process().pid == options_.agent_pid &&
         segment.reader->process().pid_namespace == own_namespace;
}

Process SegmentSource::Describe(const SegmentLifecycle::Segment& segment) const {
  Process process = ProcessOf(segment, now_.steady);
  process.identity = IdentityOf(process.rank);
  return process;
}

void SegmentSource::ListProcesses(std::span<const Ledger::Orphan> orphans) {
  processes_.clear();
  std::set<ProcessPlace> taken;
  const RetiredProcesses& retired = ledger_.processes();
  for (const SegmentLifecycle::Segment& segment : lifecycle_.segments()) {
    if (!segment.place) continue;
    taken.insert(*segment.place);
    if (IsOwn(segment)) continue;
    Process& process = processes_.emplace_back(Describe(segment));
    const LastEnd* const last = retired.LastEndOf(*segment.place);
    process.predecessors = (last == nullptr ? 0 : last->process.ended) + (segment.alive ? 0 : 1);
    if (segment.alive && last != nullptr) process.last_exit = last->exit;
  }
  // Whether an orphan is alive is not known. It is listed as if it had ended.
  for (const auto& [values, process] : orphans) {
    const ProcessPlace place = values.place();
    if (!taken.insert(place).second) continue;
    const LastEnd* const last = retired.LastEndOf(place);
    processes_.push_back({.id = process.id,
                          .rank = place.rank,
                          .ordinal = place.ordinal,
                          .identity = IdentityOf(place.rank),
                          .run_id = values.identity->run_id,
                          .restart_count = process.restart_count,
                          .predecessors = (last == nullptr ? 0 : last->process.ended) + 1,
                          .last_change = process.last_change});
  }
  std::set<ProcessPlace> untold;
  for (const LateExit& end : lifecycle_.untold()) untold.insert(end.place);
  for (const auto& [rank, instance] : retired.instances()) {
    if (!retired.IsShown(rank, now_)) continue;
    for (const auto& [ordinal, last] : instance.last_ends) {
      const ProcessPlace place{rank, ordinal};
      if (taken.contains(place)) continue;
      const bool is_told = !untold.contains(place);
      processes_.push_back({.id = last.process.id,
                            .rank = rank,
                            .ordinal = ordinal,
                            .identity = IdentityOf(rank),
                            .run_id = options_.run_id,
                            .restart_count = last.process.restart_count,
                            .predecessors = last.process.ended,
                            .died = is_told && retired.HasDied(place),
                            .last_exit = is_told ? last.exit : "",
                            .ended_at = last.ended,
                            .last_change = last.process.last_change});
    }
  }
}

Identity SegmentSource::IdentityOf(const RankId& rank) const {
  return ProcessIdentity(rank.role, rank.replica, merger_->rules());
}

// Lists the ends and the restarts that are on disk.
void SegmentSource::ShowSaved() {
  ListEnded();
  const std::map<ProcessPlace, uint64_t> unsaved = ledger_.UnsavedPlaces();
  for (Process& process : processes_) {
    const uint64_t processes = process.predecessors + (process.alive ? 1 : 0);
    uint64_t no_restarts = 1;  // the first one
    if (!unsaved.empty()) {
      if (const auto found = unsaved.find(process.place()); found != unsaved.end()) no_restarts += found->second;
    }
    process.restarts = processes - std::min(processes, no_restarts);
  }
}

// If none are folded, with those whose end is known.
void SegmentSource::ListEnded() {
  ended_.clear();
  std::map<RankId, std::map<std::string, uint64_t>> exits;
  const RetiredProcesses& retired = ledger_.processes();
  for (const auto& [rank, instance] : retired.instances())
    if (retired.IsShown(rank, now_)) exits[rank] = ledger_.Exits(rank);
  for (const SegmentLifecycle::Segment& segment : lifecycle_.segments()) {
    if (ledger_.WillRetire() || segment.alive || !segment.place || !segment.exit || IsOwn(segment)) continue;
    ++exits[segment.place->rank][*segment.exit];
  }
  for (auto& [rank, of] : exits)
    if (!of.empty()) ended_.push_back({IdentityOf(rank), std::move(of)});
}

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

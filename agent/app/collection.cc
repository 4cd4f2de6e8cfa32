#include "app/collection.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <span>
#include <utility>

#include "base/foreign_memory.h"
#include "kernel/proc_reader.h"
#include "own/self_process.h"
#include "web/throughput.h"

namespace persia::agent {
namespace {

// How long the end waits for the state to be on disk.
constexpr std::chrono::milliseconds kStatePatience(2000);

SeriesLimits LimitsOf(const AgentOptions& options) {
  return {.series = options.max_series, .series_of_instance = options.max_series_per_instance};
}

// Reading a device may take milliseconds, and its values are means over a second or more.
std::chrono::milliseconds GpuInterval(const AgentOptions& options) {
  return std::min<std::chrono::milliseconds>(options.push_interval, std::chrono::seconds(5));
}

// A snapshot of a job that another agent collects has none.
GpuXidCounts::Options XidOptionsOf(const AgentSetup& setup) {
  if (setup.view || setup.state.directory_fd < 0) return {.run_id = setup.run_id};
  return {.file = std::make_shared<DiskJournalFile>(DiskJournalFile::Options{.directory_fd = setup.state.directory_fd,
                                                                             .directory = setup.state.directory,
                                                                             .name = setup.state.FileName("gpu"),
                                                                             .mode = setup.state.mode,
                                                                             .max_bytes = kMaxListBytes}),
          .run_id = setup.run_id};
}

// By the wall clock of now.
std::chrono::system_clock::time_point BootTime() {
  timespec since{};
  clock_gettime(CLOCK_BOOTTIME, &since);
  return std::chrono::system_clock::now() - std::chrono::seconds(since.tv_sec) -
         std::chrono::microseconds(since.tv_nsec / 1000);
}

// Only /metrics has the families of the agent's own process. No other metric may have their names there.
std::shared_ptr<const Snapshot> ReservedNames() {
  Layout layout = *SelfProcess({}).Collect()->layout;
  for (FamilyLayout& family : layout.families) family.series.clear();
  layout.identities.clear();
  layout.value_count = 0;
  return std::make_shared<const Snapshot>(Snapshot{std::make_shared<const Layout>(std::move(layout)), {}, {}});
}

}  // namespace

Collection::Collection(const AgentSetup& setup, Clock& clock, OwnMetrics& own, EventLog& event_log, const History& history)
    : setup_(setup),
      clock_(clock),
      own_(own),
      event_log_(event_log),
      history_(history),
      boot_id_(ProcReader().Read("sys/kernel/random/boot_id")),
      labels_(setup.options.labels),
      max_series_(setup.options.max_series),
      segments_(SourceOptions(), NamingOf(setup.options)),
      judgement_(setup, clock, event_log, segments_, boot_id_),
      gpus_({.agent = AgentIdentity(setup), .xids = XidOptionsOf(setup)}),
      worker_metrics_({.processes = [this] { return segments_.processes(); },
                       .agent_version = setup.version,
                       .run_id = setup.run_id,
                       .agent = AgentIdentity(setup),
                       .ended = [this] { return segments_.ended(); },
                       .shows_hangs = !setup.view}),
      job_metrics_(AgentIdentity(setup), setup.directory),
      machine_({.identity = AgentIdentity(setup), .read = ReadOf({.state_directory = setup.state.directory})}),
      exec_(setup.exec == nullptr ? nullptr : std::make_unique<ExecMetrics>(AgentIdentity(setup), *setup.exec)),
      reserved_(ReservedNames()),
      worker_watch_({.directory = setup.directory,
                     .expects_workers = setup.emit_receiver == nullptr,
                     .idle_limit = setup.idle_limit,
                     .on_idle = setup.on_idle}) {
  UseMachine(setup.options);
}

SegmentSourceOptions Collection::SourceOptions() {
  SegmentSourceOptions options;
  options.reads_events = !setup_.view;
  options.directory = setup_.directory;
  options.job = setup_.options.job_name;
  options.ip_addr = setup_.ip_addr;
  options.run_id = setup_.run_id;
  options.group = setup_.group;
  options.max_segment_bytes = setup_.options.max_segment_bytes;
  options.limits = LimitsOf(setup_.options);
  options.agent_pid = setup_.view ? setup_.view->agent_pid : static_cast<uint32_t>(getpid());
  options.reaped = setup_.exec == nullptr ? nullptr : &setup_.exec->ends();
  options.ledger.run_id = setup_.run_id;
  options.ledger.boot_id = boot_id_;
  options.ledger.new_run = setup_.run_begins;
  options.ledger.processes = {.gauge_ttl = setup_.options.gauge_ttl,
                              .hide_ended = setup_.options.on_instance_end == OnInstanceEnd::kDelete,
                              .limits = options.limits};
  if (setup_.view) {
    options.ledger.file = setup_.view->state;
    options.ledger.read_only = true;
  } else if (setup_.state.directory_fd >= 0) {
    event_positions_.emplace(setup_.state);
    if (!setup_.run_begins) options.event_positions = event_positions_->Load();
    options.ledger.file = StateFileOf(setup_.state);
    options.ledger.saves_living = setup_.state.directory != setup_.directory;
  }
  return options;
}

void Collection::Use(const AgentOptions& options) {
  ForeignShare::SetLimit(options.max_foreign_bytes);
  labels_ = options.labels;
  max_series_ = options.max_series;
  judgement_.Use(options);
  segments_.SetLimits(LimitsOf(options), options.max_segment_bytes, options.gauge_ttl,
                      setup_.options.on_instance_end == OnInstanceEnd::kDelete);
  segments_.SetNaming(NamingOf(options));
  UseMachine(options);
  gpus_are_used_ = true;
  gpus_.Use(options.gpu == GpuMode::kAuto, GpuInterval(options));
}

// `once` has no second collection for the values of the thread.
void Collection::UseMachine(const AgentOptions& options) {
  machine_.Use(options.machine_metrics && !setup_.view, options.push_interval);
}

std::shared_ptr<const Snapshot> Collection::Collect(const std::string& agent_id, Depth depth) {
  const bool is_full = depth != Depth::kLook;
  if (is_full) KeepDirectory();
  ReadCommand();
  segments_.SetIdentityLabels(labels_, agent_id);
  segments_.Read();
  TakeEvents();
  segments_.Retire();
  TakeEvents();  // of segments that were read when others were folded
  judgement_.Judge(depth);
  segments_.Commit();
  if (depth == Depth::kLast) state_is_on_disk_ = segments_.FlushState(kStatePatience);
  judgement_.Show();
  own_.SetEventsLost(segments_.stats().events_lost);
  LookAtGpus();
  worker_watch_.Look(segments_.stats(), clock_.Now());
  LookForChanges();
  if (is_full) ReportSegments();
  OwnSnapshots own = CollectOwn(depth);
  if (segments_.Plan(own)) {
    ReportLeftOut();
    own = CollectOwn(depth);  // the same series, with what the plan leaves out
  }
  std::shared_ptr<const Snapshot> all = segments_.Expose(own);
  LookAtValues(*all);
  const size_t series = CountSeries(*all->layout);
  own_.SetSeries(series, max_series_);
  if (all->layout != layout_) {
    layout_ = all->layout;
    trims_due_ = 2;  // after this one, and after the pushes have built their parts of the layout
  }
  if (trims_due_ > 0) {
    --trims_due_;
    ReturnFreeMemory();
  }
  const std::span<const Process> processes = segments_.processes();
  Summary summary{.segments = segments_.stats(),
                  .series = series,
                  .processes = std::make_shared<std::vector<Process>>(processes.begin(), processes.end()),
                  .health = judgement_.health(),
                  .goodput = judgement_.goodput(),
                  .ranks = judgement_.ranks(),
                  .not_finite = not_finite_.report()};
  const MutexLock lock(mutex_);
  summary_ = std::move(summary);
  return all;
}

void Collection::ReadCommand() {
  if (setup_.exec == nullptr) return;
  setup_.exec->Read();
  const auto interruption = setup_.exec->interruption();
  segments_.SetCommand({.began_ticks = setup_.exec->began_ticks(),
                        .booted = BootTime(),
                        .has_ended = setup_.exec->CommandExitCode().has_value(),
                        .interrupted_at = interruption ? std::optional(interruption->at) : std::nullopt});
}

void Collection::End() {
  if (event_positions_) event_positions_->Flush(kStatePatience);
  gpus_.Flush(kStatePatience);
  judgement_.End();  // before the summary of the run
  {
    const MutexLock lock(mutex_);
    summary_.goodput = judgement_.goodput();
  }
  if (state_is_on_disk_) return;
  LogWarning("segments.state", "the counts of ended processes are not all on disk after " +
                                   std::to_string(kStatePatience.count()) + " ms: if the segments in " + setup_.directory +
                                   " are lost, so are these counts");
}

OwnSnapshots Collection::CollectOwn(Depth depth) {
  if (depth != Depth::kLook || slow_.empty()) slow_ = CollectSlow();
  OwnSnapshots own = slow_;
  own.push_back(worker_metrics_.Collect());
  judgement_.AddTo(own, not_finite_.nan_counts());
  if (exec_ != nullptr) own.push_back(exec_->Collect());
  if (auto gpus = gpus_.snapshot()) own.push_back(std::move(gpus));
  return own;
}

OwnSnapshots Collection::CollectSlow() {
  const HangJudge& hangs = judgement_.hangs();
  JobMetrics::Values job{.hangs = hangs.job_hangs(),
                         .hang_after = hangs.hang_after(),
                         .push_interval = judgement_.interval(),
                         .unchanged = hangs.job_unchanged()};
  // Up to the collection before.
  if (const auto throughput = ThroughputOf(history_.Entries())) job.throughput.emplace(throughput->name, throughput->now);
  return {own_.Collect(), reserved_, job_metrics_.Collect(job), machine_.Collect(segments_.processes())};
}

Collection::Summary Collection::summary() const {
  const MutexLock lock(mutex_);
  return summary_;
}

void Collection::TakeEvents() {
  const std::vector<JobEvent> events = segments_.TakeEvents();
  event_log_.Add(events);
  if (event_positions_ && !events.empty()) event_positions_->Save(segments_.EventPositions());
}

void Collection::LookAtGpus() {
  if (setup_.view) return;
  if (!std::exchange(gpus_are_used_, true)) gpus_.Use(setup_.options.gpu == GpuMode::kAuto, GpuInterval(setup_.options));
  gpus_.Look(segments_.processes());
  event_log_.Add(gpus_.TakeEvents());
}

void Collection::LookAtValues(const Snapshot& all) {
  if (setup_.view) return;  // the agent of the job reports them
  not_finite_.Look(all, segments_.processes(), std::chrono::system_clock::now());
  event_log_.Add(not_finite_.TakeEvents());
}

void Collection::LookForChanges() {
  const SegmentSourceStats& stats = segments_.stats();
  const std::array<uint64_t, 4> now{stats.changes, stats.live, stats.dead, stats.retired};
  if (std::exchange(happened_, now) != now || stats.phases_run || stats.live == 0) happened_at_ = clock_.Now();
}

// A directory that was removed, or whose files were, is made again, with the state in it, so that workers that start later find
// it.
void Collection::KeepDirectory() {
  if (setup_.session == nullptr) return;
  // The state's directory is checked only if it cannot be written: a disk that hangs would block this thread.
  const auto state = segments_.ledger().journal_stats();
  const bool state_fails = state && state->error && setup_.session->StateDirectoryWasRemoved();
  if (!state_fails && !setup_.session->DirectoryWasRemoved()) return;
  const bool state_gone = state_fails || setup_.state.directory == setup_.directory;
  const Status renewed = setup_.session->RecreateDirectory();
  if (!renewed.ok()) {
    directory_log_.Bad("gone", "the directory " + setup_.directory +
                                   " or files in it were removed or replaced, and cannot be created again: " + renewed.error() +
                                   "; running workers are still collected");
    return;
  }
  if (state_gone && setup_.state.directory_fd >= 0) {
    segments_.ledger().MoveTo(StateFileOf(setup_.state));
    event_positions_.emplace(setup_.state);
  }
  if (!directory_log_.Recovered("the directory " + setup_.directory + " is there again")) {
    LogWarning(
        "directory.gone",
        "the directory " + setup_.directory +
            " or files in it were removed or replaced, and are created again. Running workers are still collected, but cannot "
            "register further metrics if their files are gone; do not remove files of a directory whose job runs");
  }
}

void Collection::ReportSegments() {
  const SegmentSourceStats& stats = segments_.stats();
  own_.SetSegments("live", stats.live);
  own_.SetSegments("ended", stats.dead);
  own_.SetSegments("other_run", stats.other_run);
  own_.SetSegments("orphaned", stats.orphans);
  own_.SetSegmentsBroken(stats.bad);
  if (const auto state = segments_.ledger().journal_stats())
    own_.SetState(state->behind, state->file_bytes, state->bytes_written, state->errors);
  own_.SetRetiredProcesses(stats.retired);
  own_.SetRetiredSeriesDropped(stats.retired_series_refused);
  ReportLeftOut();
  std::map<std::string, uint64_t> refused;
  for (const std::string& reason : refused_reasons_) refused[reason] = 0;  // a reason that no longer applies returns to 0
  for (const RefusedSegment& segment : stats.refused) ++refused[segment.problem.reason];
  refused_reasons_.clear();
  for (const auto& [reason, count] : refused) {
    own_.SetSegmentsRefused(reason, count);
    refused_reasons_.push_back(reason);
  }
  own_.SegmentRecordsSkipped(stats.records_skipped - std::min(stats.records_skipped, records_skipped_));
  records_skipped_ = stats.records_skipped;
}

// The series that the plan left out, and the reports of the plan and the segments.
void Collection::ReportLeftOut() {
  for (const Diagnostic& diagnostic : segments_.TakeDiagnostics()) LogWarning("segments." + diagnostic.kind, diagnostic.text);
  const SeriesLeftOut& left_out = segments_.stats().left_out;
  own_.SetDroppedSeries("max_series", left_out.agent_limit);
  own_.SetDroppedSeries("max_series_per_instance", left_out.instance_limit);
  own_.SetDroppedSeries("label_value_bytes", left_out.label_value_limit);
  own_.SetDroppedSeries("families", left_out.family_limit);
  own_.SetQuarantinedSeries("definition", left_out.definition);
  own_.SetQuarantinedSeries("collision", left_out.collision);
}

}  // namespace persia::agent

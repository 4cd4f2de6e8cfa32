#include "app/agent.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "app/beside.h"
#include "app/heap.h"
#include "app/text.h"

namespace persia::agent {
namespace {

// After so many collections without a worker somebody is told where workers are looked for.
constexpr uint64_t kTicksUntilHint = 3;

Identity AgentIdentity(const Agent::Setup& setup) {
  Identity identity{setup.options.job_name, {{"instance", "rep_" + std::to_string(setup.options.replica)}, {"role", "agent"}}};
  if (!setup.ip_addr.empty()) {
    identity.labels.insert(identity.labels.begin() + 1, {"ip_addr", setup.ip_addr});
  }
  return identity;
}

SeriesLimits LimitsOf(const AgentOptions& options) {
  return {.series = options.max_series,
          .series_of_instance = options.max_series_per_instance,
          .label_value_bytes = options.max_label_value_bytes};
}

SegmentSourceOptions SourceOptions(const Agent::Setup& setup, std::optional<EventPlaces>& event_places) {
  SegmentSourceOptions options;
  options.reads_events = true;
  options.directory = setup.directory;
  options.job = setup.options.job_name;
  options.ip_addr = setup.ip_addr;
  options.run_id = setup.run_id;
  options.group = setup.group;
  options.max_segment_bytes = setup.options.max_segment_bytes;
  options.limits = LimitsOf(setup.options);
  options.own_process = true;
  options.retired.run_id = setup.run_id;
  options.retired.begins = setup.run_begins;
  options.retired.processes = {.gauge_ttl = setup.options.gauge_ttl,
                               .hide_left = setup.options.on_instance_end == OnInstanceEnd::kDelete,
                               .limits = options.limits};
  if (setup.state.directory_fd >= 0) {
    event_places.emplace(setup.state);
    if (!setup.run_begins) {
      options.event_tickets = event_places->Load();
    }
    options.retired.file = RetiredStateFile(setup.state);
    options.retired.keeps_living = setup.state.directory != setup.directory;
  }
  return options;
}

size_t CountSeries(const Layout& layout) {
  size_t series = 0;
  for (const FamilyLayout& family : layout.families) {
    series += family.series.size();
  }
  return series;
}

std::map<WorkerPlace, uint32_t> PidsOf(std::span<const WorkerProcess> processes) {
  std::map<WorkerPlace, uint32_t> pids;
  for (const WorkerProcess& process : processes) {
    const std::map<std::string, std::string> labels(process.identity.labels.begin(), process.identity.labels.end());
    const auto label = [&](const char* name) { return labels.contains(name) ? labels.at(name) : ""; };
    if (process.alive) {
      pids.emplace(WorkerPlace(label("role"), label("instance"), std::to_string(process.ordinal)), process.pid);
    }
  }
  return pids;
}

WriteQueue::Log RemoteLog() {
  return {.note = [](std::string_view event, const std::string& message) { LogInfo(event, message); },
          .warn = [](std::string_view event, const std::string& message) { LogWarning(event, message); }};
}

void LogConflict(const std::string& message) { LogWarning("metrics.left_out", message); }

}  // namespace

std::shared_ptr<const Naming> NamingOf(const AgentOptions& options) {
  if (options.mapping == nullptr) {
    return std::make_shared<PlainNaming>();
  }
  return options.mapping;
}

PushLanes::Pace PaceOf(const AgentOptions& options) {
  return {.interval = options.push_interval,
          .limit = options.push_timeout,
          .limit_if_away = std::min(options.push_timeout, options.connect_timeout)};
}

Agent::Agent(Setup setup, Clock& clock, PushRoutes routes)
    : setup_(std::move(setup)),
      clock_(clock),
      routes_(std::move(routes)),
      self_(AgentIdentity(setup_)),
      log_limiter_(std::make_shared<LogLimiter>()),
      event_log_(
          {.file = setup_.options.events_file, .warn = [](const std::string& message) { LogWarning("events", message); }}),
      history_({setup_.options.history, setup_.options.history_max_bytes}),
      segments_(SourceOptions(setup_, event_places_), NamingOf(setup_.options)),
      own_({.identity = self_, .version = setup_.version}),
      exec_(setup_.exec == nullptr ? nullptr : std::make_unique<ExecMetrics>(self_, *setup_.exec)),
      worker_metrics_({.processes = [this] { return segments_.processes(); },
                       .agent_version = setup_.version,
                       .run_id = setup_.run_id,
                       .ends = setup_.exec == nullptr ? nullptr : &setup_.exec->ends()}),
      worker_labels_(setup_.options.labels),
      labels_(setup_.options.labels),
      own_labels_(setup_.options.labels),
      exec_labels_(setup_.options.labels),
      collecting_with_(std::make_shared<const AgentOptions>(setup_.options)),
      remote_(setup_.state, "persia-metrics-agent/" + setup_.version, RemoteLog()),
      combiner_(LogConflict),
      process_(self_),
      scrape_combiner_(LogConflict),
      scrape_labels_(setup_.options.labels),
      collector_({.interval = setup_.options.push_interval,
                  .clock = &clock_,
                  .collect = [this] { return Collect(); },
                  .on_tick = [this](const std::shared_ptr<const Snapshot>& snapshot) { OnTick(snapshot); },
                  .on_skipped =
                      [this](uint64_t ticks) {
                        own_.TickSkipped(ticks);
                        pace_log_.Bad("late", "collecting was held up for longer than the push interval; ticks are left out");
                      }}),
      lanes_(own_, PaceOf(setup_.options)) {
  options_ = scraping_with_ = collecting_with_;
  lanes_.Use([this] { return routes_.transports; });
}

Agent::~Agent() {
  LogAllFloods();
  SetLogLimiter(nullptr);
}

Status Agent::Listen() {
  if (setup_.options.listen_address.empty()) {
    return Done{};
  }
  HttpServer::Options options;
  options.listen_address = setup_.options.listen_address;
  options.fall_back_to_free_port = setup_.options.listen_address_is_default;
  options.log = [](const std::string& message) { LogDebug("web", message); };
  options.warn = [](const std::string& message) { LogWarning("web.stalled", message); };
  if (!setup_.options.web_config_file.empty()) {
    web_access_ = std::make_unique<WebAccess>(setup_.options.web_config_file);
    if (Status status = web_access_->Open(); !status.ok()) {
      return status;
    }
    options.guard = [this](const ServerRequest& request) { return web_access_->Refuse(request); };
    options.tls = web_access_->tls();
  }
  auto server = HttpServer::Start(std::move(options), Routes());
  if (!server.ok()) {
    return Error{server.error()};
  }
  server_ = std::move(server).value();
  return Done{};
}

std::string Agent::listening_at() const { return server_ == nullptr ? "" : server_->address(); }

void Agent::Start() {
  SetLogLimiter(log_limiter_);
  remote_.Apply(setup_.options);
  lanes_.Start();
  collector_.Start();
}

Status Agent::Finish(RemoteWrite::Ending series) {
  const std::shared_ptr<const Snapshot> last = collector_.Stop();
  const auto options = CurrentOptions();
  Beside targets;
  targets.Run([&] {
    const PushLanes::Pace pace = PaceOf(*options);
    remote_.Finish(WithAgentLabel(last, remote_label_), pace.limit, pace.limit_if_away, series);
  });
  const Status arrived = lanes_.Finish(last);
  targets.Join();
  server_.reset();
  return arrived;
}

void Agent::SetLimits(const AgentOptions& options) {
  segments_.SetLimits(LimitsOf(options), options.max_segment_bytes, options.gauge_ttl,
                      setup_.options.on_instance_end == OnInstanceEnd::kDelete);
}

std::shared_ptr<const Snapshot> Agent::Collect() {
  const auto began = std::chrono::steady_clock::now();
  LookAfterDirectory();
  TakeOverForCollecting();
  const auto workers = segments_.Collect();
  WriteEvents();
  ReportSegments();
  WatchWorkers();
  ReportRemoteWrite();
  LogEndedFloods();
  own_.SetLogLinesSuppressed(log_limiter_->suppressed());
  if (setup_.inlet != nullptr) {
    const EmitInlet::Counts lines = setup_.inlet->counts();
    own_.SetFifoLines(lines.good, lines.bad);
  }
  const auto processes = worker_metrics_.Collect();
  const auto own = own_.Collect();
  auto all = combiner_.Combine({workers.ok() ? labels_.AddTo(workers.value()) : nullptr,
                                own.ok() ? own_labels_.AddTo(own.value()) : nullptr, worker_labels_.AddTo(processes.value()),
                                exec_ == nullptr ? nullptr : exec_labels_.AddTo(exec_->Collect().value())});
  const size_t series = CountSeries(*all->layout);
  own_.SetSeries(series);
  if (all->layout != collected_layout_) {
    collected_layout_ = all->layout;
    trims_due_ = 2;  // now, and once who pushes has made what it keeps of the layout
  }
  if (trims_due_ > 0) {
    --trims_due_;
    ReturnFreeMemory();
  }
  const auto took = std::chrono::steady_clock::now() - began;
  own_.CollectDone(Seconds(took));
  if (took < collecting_with_->push_interval) {
    pace_log_.Recovered("collecting keeps up with the push interval again");
  }
  std::map<WorkerPlace, uint32_t> pids = PidsOf(segments_.processes());
  const std::lock_guard lock(seen_mutex_);
  seen_ = {segments_.stats(), series, std::move(pids)};
  return all;
}

void Agent::ReportRemoteWrite() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  std::set<std::string> targets;
  for (const auto& [name, stats] : remote_.stats()) {
    targets.insert(name);
    own_.SetRemoteWrite(name, {.samples_sent = stats.sending.samples_sent,
                               .samples_refused = stats.sending.samples_refused,
                               .retries = stats.sending.retries,
                               .bytes = stats.sending.bytes,
                               .pending_samples = stats.pending_samples,
                               .pending_bytes = stats.pending_bytes,
                               .queue_bytes = stats.file_bytes,
                               .damaged_places = stats.corrupt_places,
                               .shards = stats.shards,
                               .highest_sent_ms = stats.sending.highest_sent_ms,
                               .oldest_pending_ms = stats.oldest_pending_ms.value_or(now.time_since_epoch().count()),
                               .dropped_samples = stats.dropped_samples});
  }
  own_.KeepRemoteWrite(targets);
}

void Agent::WriteEvents() {
  const std::vector<JobEvent> events = segments_.TakeEvents();
  event_log_.Add(events);
  own_.SetEventsLost(segments_.stats().events_lost);
  if (event_places_ && !events.empty()) {
    event_places_->Save(segments_.EventTickets());
  }
}

// A directory that somebody removed is made again, with the state in it, so that workers that come find it.
void Agent::LookAfterDirectory() {
  if (setup_.session == nullptr || !setup_.session->DirectoryIsGone()) {
    return;
  }
  const Status renewed = setup_.session->RenewDirectory();
  if (!renewed.ok()) {
    directory_log_.Bad("gone", "the directory " + setup_.directory + " was removed or replaced, and cannot be made again: " +
                                   renewed.error() + "; workers that run go on to be collected");
    return;
  }
  segments_.StateIsGone();
  if (!directory_log_.Recovered("the directory " + setup_.directory + " is there again")) {
    LogWarning("directory.gone", "the directory " + setup_.directory +
                                     " was removed or replaced; it is made again. Workers that run are collected on, but "
                                     "cannot grow; whoever clears it should leave it alone while the job runs");
  }
}

// Says what the source has to say, and counts it.
void Agent::ReportSegments() {
  for (const Diagnostic& diagnostic : segments_.TakeDiagnostics()) {
    LogWarning("segments." + diagnostic.kind, diagnostic.text);
  }
  const SegmentSourceStats& stats = segments_.stats();
  own_.SetSegments("live", stats.live);
  own_.SetSegments("ended", stats.dead);
  own_.SetSegments("other_run", stats.other_run);
  own_.SetSegmentsBroken(stats.bad);
  own_.SetRetiredProcesses(stats.retired);
  own_.SetRetiredSeriesDropped(stats.retired_series_refused);
  own_.SetDroppedSeries("max_series", stats.left_out.agent_limit);
  own_.SetDroppedSeries("max_series_per_instance", stats.left_out.instance_limit);
  own_.SetDroppedSeries("max_label_value_bytes", stats.left_out.label_value_limit);
  own_.SetQuarantinedSeries("definition", stats.left_out.definition);
  own_.SetQuarantinedSeries("collision", stats.left_out.collision + combiner_.series_left_out());
  std::map<std::string, uint64_t> refused;
  for (const std::string& reason : refused_reasons_) {
    refused[reason] = 0;  // what is gone goes back to 0
  }
  for (const RefusedSegment& segment : stats.refused) {
    ++refused[segment.problem.reason];
  }
  refused_reasons_.clear();
  for (const auto& [reason, count] : refused) {
    own_.SetSegmentsRefused(reason, count);
    refused_reasons_.push_back(reason);
  }
  own_.SegmentRecordsSkipped(stats.records_skipped - std::min(stats.records_skipped, records_skipped_));
  records_skipped_ = stats.records_skipped;
}

// Tells where workers are looked for if none comes, and when the last one has ended.
void Agent::WatchWorkers() {
  const SegmentSourceStats& stats = segments_.stats();
  if (stats.live + stats.dead + stats.retired > 0) {
    workers_seen_ = true;
    workers_log_.Recovered("the first worker is there");
  } else if (++ticks_without_workers_ == kTicksUntilHint) {
    workers_log_.Bad("none", "no worker's metrics are in " + setup_.directory +
                                 " yet; a worker that is not started by exec needs " +
                                 "PERSIA_METRICS_DIR=" + setup_.directory + " in its environment");
  }
  if (stats.live > 0 || !workers_seen_) {
    idle_since_.reset();
    return;
  }
  const Clock::TimePoint now = clock_.Now();
  idle_since_ = idle_since_.value_or(now);
  if (setup_.idle_limit && !idle_told_ && now - *idle_since_ >= *setup_.idle_limit) {
    idle_told_ = true;
    setup_.on_idle();
  }
}

// Whose identity another agent claims as well is told apart wherever it is seen.
std::shared_ptr<const Snapshot> Agent::WithAgentLabel(const std::shared_ptr<const Snapshot>& snapshot,
                                                      std::optional<IdentityLabels>& label) const {
  if (const std::string id = routes_.agent_label ? routes_.agent_label() : ""; !id.empty() && !label) {
    label.emplace(Labels{{"agent", id}});
  }
  return label ? label->AddTo(snapshot) : snapshot;
}

void Agent::OnTick(const std::shared_ptr<const Snapshot>& snapshot) {
  history_.Add(snapshot, clock_.Now());
  remote_.Offer(WithAgentLabel(snapshot, remote_label_));
  if (std::exchange(push_next_tick_, false)) {
    return lanes_.Insist(snapshot);
  }
  // Busy: whether a gateway is slow or away is known, and said, when the push under way has ended.
  if (!lanes_.Offer(snapshot)) {
    own_.TickSkipped();
  }
}

}  // namespace persia::agent

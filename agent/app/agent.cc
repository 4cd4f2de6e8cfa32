#include "app/agent.h"

#include <chrono>
#include <cstdint>
#include <utility>

#include "app/agent_setup.h"
#include "base/thread.h"
#include "web/status_json.h"

namespace persia::agent {

Agent::Agent(AgentSetup setup, Clock& clock)
    : setup_(std::move(setup)),
      clock_(clock),
      created_at_(clock.Now()),
      log_limiter_(std::make_shared<LogLimiter>()),
      options_(setup_.options),
      own_({.identity = AgentIdentity(setup_), .version = setup_.version}),
      event_log_(
          {.file = setup_.options.events_file, .warn = [](const std::string& message) { LogWarning("events", message); }}),
      history_({setup_.options.history, setup_.options.history_max_bytes}),
      remote_(setup_.state, "persia-metrics-agent/" + setup_.version),
      collection_(setup_, clock_, own_, event_log_, history_),
      collecting_with_(options_.Get()),
      collector_({.interval = setup_.options.push_interval,
                  .look_interval = kLookInterval,
                  .clock = &clock_,
                  .collect = [this](Depth depth) { return Collect(depth); },
                  .on_tick = [this](const std::shared_ptr<const Snapshot>& snapshot) { OnTick(snapshot); },
                  .on_look = [this](const std::shared_ptr<const Snapshot>& snapshot) { history_.Add(snapshot, clock_.Now()); },
                  .is_quiet = [this] { return collection_.IsQuiet(); },
                  .on_skipped =
                      [this](uint64_t ticks) {
                        own_.TickSkipped(ticks);
                        pace_log_.Bad("late", "a collection took longer than the push interval; ticks are skipped");
                      }}),
      pusher_({.own = own_, .pace = PaceOf(setup_.options), .host_is_missing = [this] { LogNoGateway(); }}),
      pages_({.setup = setup_,
              .options = options_,
              .collector = collector_,
              .collection = collection_,
              .history = history_,
              .event_log = event_log_,
              .pusher = pusher_,
              .own = own_}) {
  own_.SetConfigErrors(setup_.config_errors);
  if (setup_.gateway) pusher_.Use(setup_.gateway(setup_.options));
}

Agent::~Agent() {
  pages_.End();  // the server's threads do not wait any more
  SummarizeAllFloods();
  SetLogLimiter(nullptr);
}

Status Agent::Listen() {
  if (setup_.options.listen_address.empty()) return Done{};
  HttpServer::Options options;
  options.listen_address = setup_.options.listen_address;
  options.fall_back_to_free_port = setup_.options.listen_address_is_default;
  options.guard = [this](const ServerRequest& request) { return Guard(request); };
  options.log = [](const std::string& message) { LogDebug("web", message); };
  if (!setup_.options.web_config_file.empty()) {
    web_access_ = std::make_unique<WebAccess>(setup_.options.web_config_file);
    if (Status status = web_access_->Open(); !status.ok()) return status;
    options.tls = web_access_->tls();
  }
  auto server = HttpServer::Start(std::move(options), pages_.Routes());
  if (!server.ok()) return Error{server.error()};
  server_ = std::move(server).value();
  return Done{};
}

std::optional<ServerResponse> Agent::Guard(const ServerRequest& request) {
  std::optional<ServerResponse> refusal = web_access_ != nullptr ? web_access_->Refuse(request) : std::nullopt;
  const std::shared_ptr<const AgentOptions> options = options_.Get();
  const bool is_protected = web_access_ != nullptr && web_access_->IsProtected();
  if (!refusal && !is_protected) refusal = host_guard_.RefuseHost(request, options->web_external_hosts);
  return refusal ? std::move(refusal) : RefuseOrigin(request, options->web_external_hosts);
}

std::string Agent::listening_at() const { return server_ == nullptr ? "" : server_->address(); }

std::string Agent::PageUrl() const {
  if (server_ == nullptr) return "";
  return (web_access_ != nullptr && web_access_->tls() ? "https://" : "http://") + server_->address();
}

void Agent::Start() {
  SetLogLimiter(log_limiter_);
  remote_.Apply(setup_.options);
  pusher_.Start();
  collector_.Start();
}

Status Agent::Finish(RemoteWrite::Ending series) {
  const std::shared_ptr<const Snapshot> last = collector_.Stop();
  history_.Add(last, clock_.Now());
  collection_.End();
  pages_.End(setup_.kept_page ? setup_.kept_page() : "");
  const Pusher::Pace pace = PaceOf(*options_.Get());
  TaskThreads targets("remote finish");
  targets.Run([&] { remote_.Finish(last, pace.last_push, pace.last_push_if_away, series); });
  const Status arrived = pusher_.Finish(last);
  targets.Join();
  pages_.AwaitReaders();
  server_.reset();
  return arrived;
}

RunSummary Agent::Summary() const {
  const Collection::Summary last = collection_.summary();
  RunSummary summary{.job = setup_.options.job_name,
                     .run_id = setup_.run_id,
                     .attempt = setup_.attempt ? std::optional(setup_.attempt->number) : std::nullopt,
                     .agent_version = setup_.version,
                     .seconds = Seconds(clock_.Now() - created_at_),
                     .goodput = InSeconds(*last.goodput),
                     .deaths = DeathsJson(*last.health->deaths, setup_.attempt),
                     .slowest = SlowestJson(last.ranks->slowest)};
  if (setup_.exec != nullptr) {
    const ExecRecord::State command = setup_.exec->state();
    summary.exit_code = command.exit_code;
    summary.seconds = command.run_time_seconds;
  }
  return summary;
}

std::vector<ProcessId> Agent::LivingProcesses() const {
  std::vector<ProcessId> living;
  for (const Process& process : *collection_.summary().processes)
    if (process.alive) living.push_back(process.id);
  return living;
}

bool Agent::HadWorkers() const {
  const SegmentSourceStats segments = collection_.summary().segments;
  return segments.live + segments.dead + segments.retired > 0;
}

void Agent::Reconfigure(const AgentOptions& fresh) {
  pusher_.SetPace(PaceOf(fresh));
  // The gateway first: the next collection goes to that of these settings.
  if (setup_.gateway && !HaveSameGateway(fresh, *options_.Get()))
    pusher_.Use(setup_.gateway(fresh));
  else
    pusher_.TryAgain();
  options_.Set(fresh);
  collector_.SetInterval(fresh.push_interval);
}

void Agent::PushNow() {
  push_next_tick_ = true;
  collector_.SetInterval(options_.Get()->push_interval);
}

void Agent::LogNoGateway() const {
  const std::string page = PageUrl();
  LogInfo("gateway.none", "no gateway: gateway_address is not set, and its default, " + AgentOptions().gateway_address +
                              ", is unknown here" + (page.empty() ? "" : "; the values are at " + page + "/"));
}

std::shared_ptr<const Snapshot> Agent::Collect(Depth depth) {
  const auto began = std::chrono::steady_clock::now();
  if (auto options = options_.Get(); options != collecting_with_) {
    collection_.Use(*options);
    history_.SetOptions({options->history, options->history_max_bytes});
    remote_.Apply(*options);
    collecting_with_ = std::move(options);
    push_next_tick_ = true;
  }
  SummarizeEndedFloods();
  if (depth != Depth::kLook) CountOwn();
  const std::string agent_label = setup_.agent_label ? setup_.agent_label() : "";
  own_.SetIdentityConflict(!agent_label.empty());
  std::shared_ptr<const Snapshot> all = collection_.Collect(agent_label, depth);
  const auto took = std::chrono::steady_clock::now() - began;
  own_.CollectDone(Seconds(took));
  if (took < collecting_with_->push_interval) pace_log_.Recovered("collecting keeps up with the push interval again");
  return all;
}

void Agent::CountOwn() {
  own_.SetRemoteWrite(remote_.stats());
  own_.SetLogLinesSuppressed(log_limiter_->suppressed());
  for (const auto& [level, lines] : LogLinesWritten()) own_.SetLogLines(level, lines);
  if (setup_.emit_receiver == nullptr) return;
  const EmitReceiver::Counts lines = setup_.emit_receiver->counts();
  own_.SetFifoLines(lines.good, lines.bad);
}

void Agent::OnTick(const std::shared_ptr<const Snapshot>& snapshot) {
  history_.Add(snapshot, clock_.Now());
  remote_.Offer(snapshot);
  if (push_next_tick_.exchange(false)) return pusher_.Enqueue(snapshot);
  // Busy: the end of the running push shows whether the gateway is slow or unreachable, and is logged.
  if (!pusher_.Offer(snapshot)) own_.TickSkipped();
}

}  // namespace persia::agent

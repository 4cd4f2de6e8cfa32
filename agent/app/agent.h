// The agent: collects, pushes and serves, from Start to Finish.
//
//   Agent agent(std::move(setup), clock, routes);
//   Status listening = agent.Listen();   // after a failure only the pages are missing
//   agent.Start();
//   ...
//   agent.Finish();                      // one last collection and push, within the push timeout
//
// docs/architecture.md lists the threads. Each thread reads new settings before its next piece of work, so that it holds no
// lock while it works. Thread safety: Interrupt, Reconfigure, GatewaysMoved, PushNow, Report and Note...: any thread; all
// others: the thread that created the agent.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "app/agent_setup.h"
#include "app/collection.h"
#include "app/collector.h"
#include "app/live_options.h"
#include "app/remote_targets.h"
#include "app/web_pages.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "format/name_escaping.h"
#include "gateways/push_lanes.h"
#include "job/event_log.h"
#include "net/http_server.h"
#include "own/own_metrics.h"
#include "summary/run_summary.h"
#include "web/history.h"
#include "web/host_guard.h"
#include "web/web_access.h"

namespace persia::agent {

class Agent {
 public:
  using Setup = AgentSetup;

  Agent(AgentSetup setup, Clock& clock, PushRoutes routes);
  ~Agent();

  Status Listen();
  // The address of the web server; empty if there is none.
  [[nodiscard]] std::string listening_at() const;
  [[nodiscard]] bool listens_with_tls() const { return web_access_ != nullptr && web_access_->tls().has_value(); }
  void Start();
  // An error says why the last values did not arrive at the gateway. Samples that did not arrive at a database wait on disk,
  // and the log says how many. `series`: whether the series end in databases, too. REQUIRES: started.
  Status Finish(RemoteWrite::Ending series = RemoteWrite::Ending::kGoesOn);
  // The next collection and push are now, even if another push is running.
  void PushNow();
  // The page as one HTML file, with the newest values.
  [[nodiscard]] std::string Report() const { return pages_.Report(); }
  // Of the run. REQUIRES: Finish is over.
  [[nodiscard]] RunSummary Summary() const;
  // Whether a worker has recorded in this run. REQUIRES: Finish is over.
  [[nodiscard]] bool HadWorkers() const;
  // The segments, by the names of their files, that the last collection had. REQUIRES: Finish is over.
  [[nodiscard]] std::set<std::string> CountedFiles() const { return collection_.CountedFiles(); }
  // Ends the job's groups on the gateway. REQUIRES: Finish is over.
  Status EndGroups() { return lanes_.DeleteGroups(setup_.options.job_name); }
  // Ends every wait for a gateway or a database.
  void Interrupt() {
    lanes_.Interrupt();
    remote_.Interrupt();
  }
  // Applies changed settings: those that have a `take_over` in settings.cc. The next tick is immediate. REQUIRES: started.
  void Reconfigure(const AgentOptions& fresh);
  // The names of gateways have other addresses than before: the same as Reconfigure, with the settings in use.
  void GatewaysMoved();
  // The names of gateways were looked up, for persia_agent_gateway_lookups_total.
  void NoteLookup(bool good) { own_.GatewayLookedUp(good); }
  // For persia_agent_config_*.
  void NoteReload(bool good, size_t errors) { own_.ConfigReloaded(good, errors); }

 private:
  std::shared_ptr<const Snapshot> Collect(bool is_last);
  void OnTick(const std::shared_ptr<const Snapshot>& snapshot);
  void ReportRemoteWrite();
  std::optional<ServerResponse> Guard(const ServerRequest& request);
  void TakeOver(const AgentOptions& fresh) PERSIA_REQUIRES(reconfiguring_);

  const AgentSetup setup_;
  Clock& clock_;
  const Clock::TimePoint created_at_;
  const PushRoutes routes_;
  const std::shared_ptr<LogLimiter> log_limiter_;

  LiveOptions options_;
  OwnMetrics own_;
  EventLog event_log_;
  History history_;
  RemoteTargets remote_;

  // The collector thread's.
  Collection collection_;
  std::shared_ptr<const AgentOptions> collecting_with_;
  SnapshotEscaper escaper_;                   // for gateways and databases
  std::atomic<bool> push_next_tick_ = false;  // even if a push is running; any thread's
  StateLog pace_log_{"collect.late"};

  Mutex reconfiguring_;  // held by one reconfiguration at a time; guards no member

  Collector collector_;
  PushLanes lanes_;
  WebPages pages_;
  HostGuard host_guard_;
  std::unique_ptr<WebAccess> web_access_;  // null: the pages are open to everybody
  std::unique_ptr<HttpServer> server_;     // last: its threads use the rest
};

}  // namespace persia::agent

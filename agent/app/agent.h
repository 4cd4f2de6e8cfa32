// The agent: collects, pushes and serves, from Start to Finish.
//
//   Agent agent(std::move(setup), clock);
//   Status listening = agent.Listen();   // after a failure only the pages are missing
//   agent.Start();
//   ...
//   agent.Finish();                      // one last collection and push, within the push timeout
//
// docs/architecture.md lists the threads. Each thread reads new settings before its next piece of work, so that it holds no
// lock while it works. Thread safety: Interrupt, PushNow, Report and NoteReload: any thread; Reconfigure: any thread, one at a
// time; all others: the thread that created the agent.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/agent_setup.h"
#include "app/collection.h"
#include "app/collector.h"
#include "app/remote_targets.h"
#include "app/web_pages.h"
#include "base/log.h"
#include "base/timing.h"
#include "health/run_summary.h"
#include "job/event_log.h"
#include "net/http_server.h"
#include "own/own_metrics.h"
#include "push/pusher.h"
#include "web/history.h"
#include "web/web_access.h"

namespace persia::agent {

class Agent {
 public:
  using Setup = AgentSetup;

  Agent(AgentSetup setup, Clock& clock);
  ~Agent();

  Status Listen();
  // The address of the web server; empty if there is none.
  [[nodiscard]] std::string listening_at() const;
  // The URL of that server without a slash at its end; empty if there is none.
  [[nodiscard]] std::string PageUrl() const;
  void Start();
  // An error says why the last values did not arrive at the gateway. Samples that did not arrive at a database wait on disk,
  // and the log says how many. `series`: whether the series end in databases, too. REQUIRES: started.
  Status Finish(RemoteWrite::Ending series = RemoteWrite::Ending::kGoesOn);
  // The next collection and push are now, even if another push is running.
  void PushNow();
  // The page as one HTML file, with the newest values.
  [[nodiscard]] std::string Report() const { return pages_.Report(); }
  [[nodiscard]] std::vector<HealthReport::Reason> Losses() const { return pages_.Losses(); }
  // Of the run. REQUIRES: Finish is over.
  [[nodiscard]] RunSummary Summary() const;
  // Whether a worker has recorded in this run. REQUIRES: Finish is over.
  [[nodiscard]] bool HadWorkers() const;
  // The processes that run, as the last collection has them. REQUIRES: Finish is over.
  [[nodiscard]] std::vector<ProcessId> LivingProcesses() const;
  // The segments, by the names of their files, that the last collection had. REQUIRES: Finish is over.
  [[nodiscard]] std::set<std::string> CountedFiles() const { return collection_.CountedFiles(); }
  // Ends the job's groups on the gateway. REQUIRES: Finish is over.
  Status EndGroups() { return pusher_.DeleteGroups(setup_.options.job_name); }
  // Ends every wait for a gateway or a database.
  void Interrupt() {
    pusher_.Interrupt();
    remote_.Interrupt();
  }
  // Applies changed settings: those that are `reloadable` in settings.cc. The next tick is immediate. REQUIRES: started.
  void Reconfigure(const AgentOptions& fresh);
  // For persia_agent_config_*.
  void NoteReload(bool good, size_t errors) { own_.ConfigReloaded(good, errors); }

 private:
  std::shared_ptr<const Snapshot> Collect(Depth depth);
  void CountOwn();
  void OnTick(const std::shared_ptr<const Snapshot>& snapshot);
  std::optional<ServerResponse> Guard(const ServerRequest& request);
  // No gateway is set, and there is none at the default.
  void LogNoGateway() const;

  const AgentSetup setup_;
  Clock& clock_;
  const Clock::TimePoint created_at_;
  const std::shared_ptr<LogLimiter> log_limiter_;

  LiveOptions options_;
  OwnMetrics own_;
  EventLog event_log_;
  History history_;
  RemoteTargets remote_;

  // The collector thread's.
  Collection collection_;
  std::shared_ptr<const AgentOptions> collecting_with_;
  std::atomic<bool> push_next_tick_ = false;  // even if a push is running; any thread's
  StateLog pace_log_{"collect.late"};

  Collector collector_;
  Pusher pusher_;
  WebPages pages_;
  HostGuard host_guard_;
  std::unique_ptr<WebAccess> web_access_;  // null: the pages are open to everybody
  std::unique_ptr<HttpServer> server_;     // last: its threads use the rest
};

}  // namespace persia::agent

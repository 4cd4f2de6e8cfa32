// The agent at work: collects, pushes, serves, from Start to Finish.
//
//   Agent agent(std::move(setup), clock, transport);
//   Status listening = agent.Listen();   // a failure costs the pages only
//   agent.Start();
//   ...
//   agent.Finish();                      // one last collection and push, within the push time-out
//
// Four kinds of threads: the collector's, which alone reads sources; the push threads, one for each gateway, so that one that
// is slow or away delays neither collecting nor the others; those of each target of remote write, for the same reason; and the
// web server's, which share the newest collection.
// Thread safety: Interrupt: any thread; the rest: the thread that made it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>
#include "app/clock.h"
#include "app/collector.h"
#include "app/event_log.h"
#include "app/event_places.h"
#include "app/identity_labels.h"
#include "app/job_session.h"
#include "app/log.h"
#include "app/options.h"
#include "app/push_lanes.h"
#include "app/remote_targets.h"
#include "app/web_access.h"
#include "format/spare_text.h"
#include "format/text_format.h"
#include "history/history.h"
#include "inlet/emit_inlet.h"
#include "model/combine.h"
#include "net/http_server.h"
#include "pages/look_api.h"
#include "source/exec_metrics.h"
#include "source/own_metrics.h"
#include "source/segment_source.h"
#include "source/self_process.h"
#include "source/worker_metrics.h"

namespace persia::agent {

// Where the agent pushes, and how that changes.
struct PushRoutes {
  std::vector<PushTransport> transports{};  // at the start, one for each gateway; none: nothing is pushed
  // Whether these settings lead elsewhere, or otherwise, than those before; null: never. This and the next are called by one
  // thread at a time.
  std::function<bool(const AgentOptions&)> changes{};
  // Gives the transports for these settings. No push is under way when it is called.
  std::function<std::vector<PushTransport>(const AgentOptions&)> take{};
  // What the gateways refused is tried again with the next push; may be null.
  std::function<void()> retry_refused{};
  // The value of the label `agent` by which all series are told from another agent's; empty, or null: none.
  std::function<std::string()> agent_label{};
};

// How long pushes may take by these settings.
PushLanes::Pace PaceOf(const AgentOptions& options);

// How metrics are named by these settings. Never null.
std::shared_ptr<const Naming> NamingOf(const AgentOptions& options);

class Agent {
 public:
  struct Setup {
    AgentOptions options;
    std::string version;
    std::string directory;
    std::string run_id;
    std::optional<gid_t> group;  // of a shared directory
    StatePlace state;
    // Null: nobody looks after the directory. Called by the collector thread; outlives the agent.
    JobSession* session = nullptr;
    bool run_begins = false;  // what the state holds is over
    std::string ip_addr;
    // After so long without a living worker, once there was one, `on_idle` is called, once.
    std::optional<std::chrono::milliseconds> idle_limit;
    std::function<void()> on_idle;
    // What `exec` knows of its command; null if none is run. It outlives the agent.
    const ExecRecord* exec = nullptr;
    // The named pipe's reader, for its counts; null if there is none. It outlives the agent.
    const EmitInlet* inlet = nullptr;
    // What POST /-/reload calls, if it is enabled: gives what is wrong with the settings, one line each.
    std::function<std::vector<std::string>()> reload{};
  };

  Agent(Setup setup, Clock& clock, PushRoutes routes);
  ~Agent();

  Status Listen();
  // Where Listen took place; empty if nowhere.
  [[nodiscard]] std::string listening_at() const;
  [[nodiscard]] bool listens_with_tls() const { return web_access_ != nullptr && web_access_->tls().has_value(); }
  void Start();
  // An error says why the last values did not arrive at the gateway; what did not arrive elsewhere is in the log, and waits on
  // disk. `series`: whether they end in databases, too. REQUIRES: started.
  Status Finish(RemoteWrite::Ending series = RemoteWrite::Ending::kGoesOn);
  // Ends the job's groups on the gateway. REQUIRES: Finish is over.
  Status EndGroups() { return lanes_.EndGroups(); }
  // Nobody wants to wait for the gateway any longer.
  void Interrupt() {
    lanes_.Interrupt();
    remote_.Interrupt();
  }
  // Goes on with other settings: those that have a `take_over` in settings.cc. Each thread takes them over before what it does
  // next, and a tick comes at once. REQUIRES: started. Any thread.
  void Reconfigure(const AgentOptions& fresh);
  // The names of gateways stand for other addresses than before: as Reconfigure, with the settings in use. Any thread.
  void GatewaysMoved();
  // The names of gateways were looked up, for persia_agent_gateway_lookups_total. Any thread.
  void NoteLookup(bool good) { own_.GatewayLookedUp(good); }
  // For persia_agent_config_*. Any thread.
  void NoteReload(bool good) { own_.ConfigReloaded(good); }

 private:
  // What the pages show of the last collection.
  struct Seen {
    SegmentSourceStats segments;
    size_t series = 0;
    std::map<WorkerPlace, uint32_t> pids;
  };

  std::shared_ptr<const Snapshot> Collect();
  void LookAfterDirectory();
  void WriteEvents();
  void ReportSegments();
  void WatchWorkers();
  void ReportRemoteWrite();
  std::shared_ptr<const AgentOptions> CurrentOptions();
  void SetLimits(const AgentOptions& options);
  void TakeOver(const AgentOptions& fresh);
  void TakeOverForCollecting();
  void TakeOverForScraping();
  ServerResponse ReloadByHttp();
  std::shared_ptr<const Snapshot> WithAgentLabel(const std::shared_ptr<const Snapshot>& snapshot,
                                                 std::optional<IdentityLabels>& label) const;
  void OnTick(const std::shared_ptr<const Snapshot>& snapshot);
  std::shared_ptr<const std::string> Exposition();
  AgentStatus CurrentStatus();
  std::vector<Route> ApiRoutes();
  std::vector<Route> Routes();

  const Setup setup_;
  Clock& clock_;
  const PushRoutes routes_;
  const Identity self_;

  const std::shared_ptr<LogLimiter> log_limiter_;

  EventLog event_log_;
  History history_;

  // The collector thread's.
  std::optional<EventPlaces> event_places_;  // none without a state
  SegmentSource segments_;
  OwnMetrics own_;
  std::unique_ptr<ExecMetrics> exec_;  // null if no command is run
  WorkerMetrics worker_metrics_;
  IdentityLabels worker_labels_;
  IdentityLabels labels_;
  IdentityLabels own_labels_;
  IdentityLabels exec_labels_;
  std::shared_ptr<const AgentOptions> collecting_with_;
  std::shared_ptr<const Layout> collected_layout_;  // the last one
  int trims_due_ = 0;
  bool push_next_tick_ = false;  // whatever is under way
  RemoteTargets remote_;
  std::optional<IdentityLabels> remote_label_;  // once another agent has the plain labels
  SnapshotCombiner combiner_;
  uint64_t ticks_without_workers_ = 0;
  uint64_t records_skipped_ = 0;
  std::vector<std::string> refused_reasons_;
  bool workers_seen_ = false;
  std::optional<Clock::TimePoint> idle_since_;
  bool idle_told_ = false;
  StateLog workers_log_{"workers.none"};
  StateLog directory_log_{"directory.gone"};
  StateLog pace_log_{"collect.late"};

  std::mutex reconfiguring_;  // one at a time
  std::mutex options_mutex_;
  std::shared_ptr<const AgentOptions> options_;  // guarded by options_mutex_

  std::mutex scrape_mutex_;  // guards what follows
  SelfProcess process_;
  SnapshotCombiner scrape_combiner_;
  IdentityLabels scrape_labels_;
  std::shared_ptr<const AgentOptions> scraping_with_;
  std::optional<IdentityLabels> agent_label_;  // once another agent has the plain labels
  TextRenderer renderer_;
  std::shared_ptr<const Snapshot> rendered_;
  std::shared_ptr<const std::string> exposition_;
  SpareText spare_exposition_;

  std::mutex seen_mutex_;
  Seen seen_;

  Collector collector_;
  PushLanes lanes_;
  std::unique_ptr<WebAccess> web_access_;  // null: everybody may read the pages
  std::unique_ptr<HttpServer> server_;     // last: its threads use the rest
};

}  // namespace persia::agent

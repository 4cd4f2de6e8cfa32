// The agent of one job with its gateway, named pipe and reload, for `run` and `exec`.
//
//   JobAgent agent({.config = config, .sources = sources, .session = session, ...});
//   agent.Listen(); agent.Start(); ... agent.Finish(signals, delete_groups); agent.EndRun();
//
// Thread safety: methods from one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/agent.h"
#include "base/result.h"
#include "base/timing.h"
#include "cli/signal_reader.h"
#include "config/config.h"
#include "job/emit_receiver.h"
#include "job/identity_claim.h"
#include "job/job_session.h"
#include "model/ends.h"
#include "push/group_ledger.h"

namespace persia::agent {

class JobAgent {
 public:
  struct Setup {
    const Config& config;  // outlives the JobAgent, as does `session`
    const ConfigSources& sources;
    JobSession& session;
    std::unique_ptr<EmitReceiver> receiver{};  // null: no named pipe
    // `on_idle` is called when no worker has been alive for this long.
    std::optional<std::chrono::milliseconds> idle_limit{};
    std::function<void()> on_idle{};
    ExecRecord* exec = nullptr;  // of the command that `exec` runs
  };

  explicit JobAgent(Setup setup);

  // Serves the pages.
  // Publishes the page's address in agent.conf, too.
  Status Listen();
  // Logs the sources and the destinations of the job's metrics, and starts the threads.
  void Start();
  Reloader& reloader() { return *reloader_; }

  // Goes on until then, or until a signal asks to end; collects and pushes first.
  void Linger(SignalReader& signals, std::chrono::steady_clock::time_point until);
  // The last collection and push. `delete_groups`: then deletes the job's groups on the gateway. A signal that asks to end
  // interrupts both.
  void Finish(SignalReader& signals, bool delete_groups);
  // Whether a worker has recorded in this run. REQUIRES: Finish is over.
  [[nodiscard]] bool HadWorkers() const { return agent_->HadWorkers(); }
  // Warns of processes of the job that run on after the command: they may end in a moment, for which it waits. REQUIRES: Finish
  // is over.
  void TellOfLiving() const;
  // Ends the run and removes its segments.
  void EndRun();
  // Logs the summary of the run, and writes the summary or the page to report_file, or the page to the reports that are kept.
  // REQUIRES: Finish is over.
  void WriteReport();

 private:
  Agent::Setup AgentSetup(Setup& setup);
  void ClaimIdentity(const Identity& own, const AgentOptions& options, std::chrono::milliseconds patience);
  void LogStart() const;
  // The file of the report; empty: there is none.
  [[nodiscard]] std::string ReportPath() const;
  std::string KeptPage();

  const Config& config_;
  JobSession& session_;
  SystemClock clock_;
  IdentityClaim claim_;
  std::unique_ptr<GroupLedger> ledger_;
  std::unique_ptr<EmitReceiver> receiver_;
  const bool continues_run_;               // as the log says it
  std::optional<RunAttempt> new_attempt_;  // of a run that goes on, if this is its first agent
  const size_t start_errors_;              // settings that could not be applied at the start: the pipe, state_dir
  std::unique_ptr<Reloader> reloader_;     // before the agent, whose pages call it
  std::unique_ptr<Agent> agent_;
  std::string report_path_;  // since Finish
};

// Describes what else uses the session's directory. REQUIRES: session.other_agent() or session.other_job().
std::string OtherAgentMessage(const JobSession& session);

}  // namespace persia::agent

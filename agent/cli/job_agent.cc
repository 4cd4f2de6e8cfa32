#include "cli/job_agent.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "app/agent_setup.h"
#include "base/log.h"
#include "base/owned_fd.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/version.h"
#include "config/remote_write_settings.h"
#include "config/values.h"
#include "exposure/identities.h"
#include "files/durable_file.h"
#include "health/phrases.h"
#include "health/summary_text.h"
#include "kernel/proc_reader.h"
#include "web/kept_reports.h"

namespace persia::agent {
namespace {

// Everybody may read a report whose directory they can reach.
constexpr mode_t kReportMode = 0644;
constexpr std::string_view kNoReport = "off";  // the value of report_file
constexpr std::string_view kSummaryEnding = ".json";
// How long a killed agent may hold its identity.
constexpr std::chrono::milliseconds kClaimPatience(250);

std::unique_ptr<GroupLedger> OpenLedger(const JobSession& session) {
  const StateLocation place = session.state_location();
  return std::make_unique<GroupLedger>(GroupLedger::Options{.directory_fd = place.directory_fd,
                                                            .directory = place.directory,
                                                            .name = place.FileName("groups"),
                                                            .mode = place.mode,
                                                            .run_id = session.run_id()});
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// The file has the old content or the new one.
Status ReplaceFile(const std::string& path, std::string_view content) {
  const std::string directory = DirectoryOf(path);
  const OwnedFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return SystemError("cannot open " + Quoted(directory));
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto written =
      ReplaceDurable({.directory_fd = fd.get(), .directory = directory, .name = name}, kReportMode, content, {});
  return written.ok() ? Status(Done{}) : Status(Error{written.error()});
}

}  // namespace

JobAgent::JobAgent(Setup setup)
    : config_(setup.config),
      session_(setup.session),
      ledger_(OpenLedger(session_)),
      receiver_(std::move(setup.receiver)),
      continues_run_(session_.continued() &&
                     (setup.exec == nullptr || setup.exec->state().agent_restarts > 0 || session_.HasState())),
      start_errors_((!config_.options.fifo.empty() && receiver_ == nullptr ? 1 : 0) +
                    (session_.state_error().empty() ? 0 : 1)) {
  Agent::Setup agent_setup = AgentSetup(setup);
  const Identity identity = AgentIdentity(agent_setup);
  ClaimIdentity(identity, config_.options, kClaimPatience);
  agent_ = std::make_unique<Agent>(std::move(agent_setup), clock_);
  const auto apply = [this, identity](const AgentOptions& fresh) {
    ClaimIdentity(identity, fresh, {});
    agent_->Reconfigure(fresh);
  };
  reloader_ = std::make_unique<Reloader>(Reloader::Options{
      .sources = setup.sources, .current = config_.options, .apply = apply, .note = [this](bool good, size_t errors) {
        agent_->NoteReload(good, errors + start_errors_);
      }});
}

Agent::Setup JobAgent::AgentSetup(Setup& setup) {
  const AgentOptions& options = config_.options;
  Agent::Setup out;
  out.options = options;
  out.config_errors = config_.errors.size() + start_errors_;
  out.version = kVersion;
  out.directory = session_.directory().path();
  out.run_id = session_.run_id();
  out.group = session_.directory().group();
  out.state = session_.state_location();
  out.session = &session_;
  out.run_begins = !session_.continued();
  if (setup.exec != nullptr && session_.attempt() > 0) {
    out.attempt = {.number = session_.attempt(), .began = setup.exec->began_at()};
    if (session_.run_began() > 0) out.attempt->run_began = std::chrono::system_clock::from_time_t(session_.run_began());
    if (continues_run_ && session_.attempt() > 1 && setup.exec->state().agent_restarts == 0) new_attempt_ = out.attempt;
  }
  out.ip_addr = options.ip_addr.empty() ? OwnAddress(options) : options.ip_addr;
  out.idle_limit = setup.idle_limit;
  out.on_idle = std::move(setup.on_idle);
  out.exec = setup.exec;
  out.emit_receiver = receiver_.get();
  out.gateway = [this](const AgentOptions& now) { return MakeGateway(now, *ledger_); };
  out.agent_label = [this] { return ledger_->adds_agent_label() ? ledger_->agent_id() : ""; };
  out.kept_page = [this] { return KeptPage(); };
  out.reload = [this] { return reloader_->Reload(); };
  return out;
}

// For the rest of the run: without the label, this agent's series would continue those of the other.
void JobAgent::ClaimIdentity(const Identity& own, const AgentOptions& options, std::chrono::milliseconds patience) {
  const Identity identity = ExposedIdentity(own, {.job = own.job, .labels = options.labels});
  const std::string place = options.gateway_address + "; " + ToText(options.remote_write);
  if (ledger_->adds_agent_label() || claim_.Take(identity, place, patience)) return;
  ledger_->AddAgentLabel();
  LogWarning("identity.conflict",
             "another agent of this host has the identity job=" + identity.job + ", " + ToText(identity.labels) +
                 "; this one adds the label agent=" + Quoted(ledger_->agent_id()) +
                 " to all its series until the run ends; give each agent its own job_name, REPLICA_INDEX, ip_addr or labels");
}

Status JobAgent::Listen() {
  Status listening = agent_->Listen();
  if (const Status published = session_.PublishPage(agent_->PageUrl()); !published.ok())
    LogWarning("web", "persia-metrics-agent top does not find the page: " + published.error());
  return listening;
}

void JobAgent::Start() {
  LogStart();
  agent_->Start();
}

void JobAgent::LogStart() const {
  for (const std::string& note : config_.notes) LogWarning("config.note", note);
  if (const auto disk = session_.directory().DiskFilesystem()) {
    LogWarning("job.disk",
               "the workers' segments are in " + session_.directory().path() + ", on " + *disk +
                   ": a training step may wait for this disk. Set metrics_dir to a directory on a tmpfs, such as one "
                   "in /dev/shm");
  }
  const AgentOptions& options = config_.options;
  if (const std::string& report = options.report_file;
      !report.empty() && report != kNoReport && access(DirectoryOf(report).c_str(), W_OK) != 0)
    LogWarning("report", SystemError("report_file: " + Quoted(report) + " cannot be written at the end").message);
  const std::string pages = agent_->PageUrl();
  LogInfo("agent.started",
          "job " + Quoted(options.job_name) + (continues_run_ ? " continues run " : " starts run ") + session_.run_id() +
              (pages.empty() ? "" : ", pages on " + pages + "/") + ", workers in " + session_.directory().path() +
              (options.has_gateway_address || !options.Pushes() ? ", gateway " + options.gateway_address : "") +
              (config_.file.empty() ? "" : ", settings from " + config_.file));
  if (!new_attempt_) return;
  LogInfo("run.continued", "this is " + AttemptText(*new_attempt_) +
                               ": its counts, deaths and goodput go on; to begin a new run, give another --job or --run-id");
}

void JobAgent::Linger(SignalReader& signals, std::chrono::steady_clock::time_point until) {
  agent_->PushNow();
  const std::string page = agent_->PageUrl();
  LogInfo("agent.lingers", "the command has ended; the agent goes on for " + ToText(config_.options.linger) + " s" +
                               (page.empty() ? "" : ", with its page on " + page + "/") + "; SIGINT or SIGTERM ends it");
  while (const auto signal = signals.Next(until))
    if (signal->IsEnd()) return;
}

void JobAgent::Finish(SignalReader& signals, bool delete_groups) {
  std::atomic<bool> done = false;
  TaskThreads ending("finish");
  ending.Run([&] {
    if (receiver_ != nullptr) receiver_->Stop();  // the last collection includes the lines that are left in the pipe
    const auto series = delete_groups ? RemoteWrite::Ending::kEnds : RemoteWrite::Ending::kGoesOn;
    if (const Status arrived = agent_->Finish(series); !arrived.ok())
      LogWarning("push.last", "the last values did not arrive at " + arrived.error());
    if (delete_groups) {
      const Status ended = agent_->EndGroups();
      ended.ok() ? LogInfo("groups.end", "the job has ended; its groups on the gateway are deleted")
                 : LogWarning("groups.end", ended.error());
    }
    done = true;
    signals.Wake();
  });
  while (!done) {
    const auto signal = signals.Next();
    if (signal && signal->IsEnd()) agent_->Interrupt();
  }
  ending.Join();
}

// A run without a worker leaves none. Nothing is read from a disk here: it may hang.
std::string JobAgent::ReportPath() const {
  if (config_.options.report_file == kNoReport) return "";
  if (!config_.options.report_file.empty()) return config_.options.report_file;
  const Environment environment = ProcessEnvironment();
  const std::string directory =
      KeptReportsDirectory(environment("HOME").value_or(""), environment("XDG_STATE_HOME").value_or(""));
  if (directory.empty() || !agent_->HadWorkers()) return "";
  char host[HOST_NAME_MAX + 1]{};
  gethostname(host, sizeof host - 1);  // it has a name, or an empty one
  return directory + "/" + KeptReportName(config_.options.job_name, host, std::chrono::system_clock::now());
}

// An open page shows an absolute path: its reader may be in another directory.
std::string JobAgent::KeptPage() {
  report_path_ = ReportPath();
  std::error_code unknown;
  const bool is_page = !report_path_.empty() && !report_path_.ends_with(kSummaryEnding);
  return is_page ? std::filesystem::absolute(report_path_, unknown).string() : "";
}

void JobAgent::WriteReport() {
  const RunSummary summary = agent_->Summary();
  for (const std::string& line : SummaryLines(summary)) LogInfo("run.summary", line);
  for (const HealthReport::Reason& loss : agent_->Losses()) LogWarning("values.lost", loss.text);
  SummarizeAllFloods();  // the last line names the report
  const std::string& path = report_path_;
  if (path.empty()) return;
  if (config_.options.report_file.empty()) {
    if (const Status made = MakeKeptReportsDirectory(DirectoryOf(path)); !made.ok())
      return LogInfo("report", "no report is kept: " + made.error() + "; set report_file");
  }
  const bool is_summary = path.ends_with(kSummaryEnding);
  const std::string content =
      is_summary ? SummaryJson(summary).dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : agent_->Report();
  if (const Status written = ReplaceFile(path, content); !written.ok()) {
    LogError("report", "the report is not written: " + written.error());
  } else {
    if (config_.options.report_file.empty()) RemoveOldReports(DirectoryOf(path));
    LogInfo("report", (is_summary ? "the summary is in " : "the page is in ") + path);
  }
}

void JobAgent::TellOfLiving() const {
  constexpr std::chrono::milliseconds kPause(50);
  constexpr int kPauses = 20;
  ProcReader proc;
  std::vector<ProcessId> living = agent_->LivingProcesses();
  const auto has_ended = [&proc](const ProcessId& process) {
    const auto stat = proc.StatOf(process);
    return !stat || stat->exits;
  };
  for (int pauses = 0; pauses < kPauses; ++pauses) {
    std::erase_if(living, has_ended);
    if (living.empty()) return;
    std::this_thread::sleep_for(kPause);
  }
  constexpr size_t kMost = 8;
  std::string pids;
  for (size_t i = 0; i < std::min(living.size(), kMost); ++i) pids += (i > 0 ? ", " : "") + std::to_string(living[i].pid);
  if (living.size() > kMost) pids += " and " + std::to_string(living.size() - kMost) + " more";
  const bool is_one = living.size() == 1;
  LogWarning("workers.left", std::to_string(living.size()) +
                                 (is_one ? " process of the job still runs" : " processes of the job still run") +
                                 ", and no agent collects from " + (is_one ? "it" : "them") + ": pid " + pids +
                                 ". A command that a script starts with & ignores Ctrl-C");
}

void JobAgent::EndRun() {
  const auto ended = session_.EndRun(agent_->CountedFiles());
  if (!ended.ok()) {
    LogWarning("run.end", ended.error());
    return;
  }
  LogInfo("run.ended", "run " + session_.run_id() + " has ended");
  if (const size_t kept = ended.value().kept; kept > 0) {
    LogWarning("run.end", std::to_string(kept) + " segments of processes that ended are not in the totals, and are kept in " +
                              session_.directory().path());
  }
}

std::string OtherAgentMessage(const JobSession& session) {
  if (!session.other_job().empty()) {
    return session.other_job() + " uses " + session.directory().path() +
           "; this job is not collected: give it a job_name, or another metrics_dir";
  }
  std::string message = "the agent with pid " + *session.other_agent() + " collects in " + session.directory().path();
  if (const std::string& page = session.page(); !page.empty()) message += ", with its page on " + page + "/,";
  if (session.other_run())
    return message + " for another run; run " + session.run_id() + " is not collected: give it another job name or metrics_dir";
  return message + " already; this agent does not collect";
}

}  // namespace persia::agent

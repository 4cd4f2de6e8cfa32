#include "health/job_health.h"

#include <algorithm>

#include "base/log.h"
#include "model/exit_reason.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;

// A worker that restarts this often in this time is a problem of its own.
constexpr size_t kManyRestarts = 3;
constexpr std::chrono::minutes kRestartWindow(15);

std::string LabelOf(const Identity& identity, std::string_view name) {
  const auto found = std::ranges::find(identity.labels, name, &Labels::value_type::first);
  return found == identity.labels.end() ? "" : found->second;
}

WorkerKey KeyOf(const WorkerProcess& process) {
  return {LabelOf(process.identity, "role"), LabelOf(process.identity, "instance"), std::to_string(process.ordinal)};
}

// "trainer rep_2", and the number of a further process of it.
std::string NameOf(const WorkerKey& key) {
  const auto& [role, instance, process] = key;
  return role + (role.empty() ? "" : " ") + instance + (process == "0" ? "" : ", process " + process);
}

std::string SecondsText(std::chrono::milliseconds duration) {
  return std::to_string(std::chrono::duration_cast<seconds>(duration).count()) + " s";
}

// Further processes of a rank, such as data loaders, may end by _exit as they should.
bool IsDeath(const WorkerProcess& process) {
  const std::string& exit = process.last_exit;
  return !exit.empty() && !IsCleanExit(exit) && (process.ordinal == 0 || exit != kUnknownEnd);
}

std::string EndText(const std::string& exit) {
  if (exit == kUnknownEnd) return "it ended by a signal or _exit";
  if (exit == kExitOfUnknownCode) return "a normal exit";
  return exit.starts_with("exit_") ? "exit code " + exit.substr(5) : exit;
}

}  // namespace

std::string_view Name(WorkerState state) {
  switch (state) {
    case WorkerState::kRunning:
      return "running";
    case WorkerState::kIdle:
      return "idle";
    case WorkerState::kHung:
      return "hung";
    case WorkerState::kExited:
      return "exited";
    case WorkerState::kDied:
      return "died";
  }
  return "";
}

std::string_view Name(JobState state) {
  switch (state) {
    case JobState::kWaiting:
      return "waiting";
    case JobState::kRunning:
      return "running";
    case JobState::kDegraded:
      return "degraded";
    case JobState::kHung:
      return "hung";
    case JobState::kFailed:
      return "failed";
    case JobState::kFinished:
      return "finished";
  }
  return "";
}

void JobHealth::Look(std::span<const WorkerProcess> processes, const Moment& moment) {
  ++looks_;
  now_ = moment.wall;
  judge_.Look(processes, moment.steady, moment.settings);
  auto report = std::make_shared<HealthReport>();
  report->hang_after = judge_.hang_after();
  report->exit_code = moment.exit_code;
  for (size_t i = 0; i < processes.size(); ++i) {
    LookAt(processes[i], i, moment, *report);
  }
  std::erase_if(known_, [&](const auto& known) { return known.second.look != looks_; });
  SumUp(processes, moment, *report);
  report->since = looks_ > 1 && report->state == report_->state ? report_->since : now_;
  report_ = std::move(report);
}

void JobHealth::LookAt(const WorkerProcess& process, size_t index, const Moment& moment, HealthReport& report) {
  const WorkerKey key = KeyOf(process);
  const std::string who = NameOf(key);
  const auto [found, is_new] = known_.try_emplace(key);
  Known& known = found->second;
  const bool is_other = is_new || known.pid != process.pid || known.start_ticks != process.start_ticks;
  if (is_other) {
    // Its predecessor ended since the last Look, and may have started since then, too.
    const bool was_seen = !is_new && !known.end_is_reported;
    if (process.alive && (was_seen || (is_new && looks_ > 1)) && !process.last_exit.empty()) {
      ReportEnd(process, who, process.last_exit, IsDeath(process));
    }
    const bool is_restart = process.alive ? process.predecessors > 0 : process.predecessors > 1;
    if (is_restart && looks_ > 1) {
      known.restarts.push_back(moment.steady);
      if (known.restarts.size() > kManyRestarts) known.restarts.erase(known.restarts.begin());
    }
    known = {.pid = process.pid, .start_ticks = process.start_ticks, .restarts = std::move(known.restarts)};
    known.shown.since = now_;
    if (looks_ == 1) {
      known.end_is_reported = !process.alive;  // by the agent before this one
    } else if (is_restart) {
      Report(process, false, "worker_restarted",
             who + " started again, pid " + std::to_string(process.pid) + ", restart " + std::to_string(process.predecessors));
    } else {
      Report(process, false, "worker_started", who + " started, pid " + std::to_string(process.pid));
    }
  }
  known.look = looks_;
  known.alive = process.alive;
  WorkerState state = WorkerState::kExited;
  if (process.alive) {
    const HangJudge::Verdict verdict = judge_.Of(index);
    state = verdict == HangJudge::Verdict::kHung        ? WorkerState::kHung
            : verdict == HangJudge::Verdict::kNotJudged ? WorkerState::kIdle
                                                        : WorkerState::kRunning;
  } else if (IsDeath(process)) {
    state = WorkerState::kDied;
  }
  if (!process.alive && !known.end_is_reported && !process.last_exit.empty()) {
    known.end_is_reported = true;
    ReportEnd(process, who, process.last_exit, state == WorkerState::kDied);
  }
  if (state == WorkerState::kHung && known.shown.state != WorkerState::kHung) {
    Report(process, true, "worker_hung",
           who + " hangs: none of its metrics has changed for " + SecondsText(judge_.Unchanged(index)) +
               ", while others of its job go on",
           "unchanged for " + SecondsText(judge_.Unchanged(index)));
  } else if (process.alive && state != WorkerState::kHung && known.shown.state == WorkerState::kHung && !is_other) {
    Report(process, false, "worker_recovered", who + (judge_.job_hangs() ? " hangs together with its job" : " goes on"));
  }
  if (state != known.shown.state && !is_other) known.shown.since = now_;
  known.shown.state = state;
  report.workers[key] = known.shown;
}

void JobHealth::ReportEnd(const WorkerProcess& process, const std::string& who, const std::string& exit, bool died) {
  if (died) {
    Report(process, true, "worker_died", who + " died: " + EndText(exit), exit);
  } else {
    Report(process, false, "worker_exited", who + " has ended: " + EndText(exit), exit);
  }
}

void JobHealth::Report(const WorkerProcess& process, bool warns, const std::string& name, const std::string& text,
                       const std::string& reason) {
  JobEvent& event = Report("worker", warns, name, text);
  event.identity = process.identity;
  event.pid = process.pid;
  event.metadata.emplace_back("process", static_cast<int64_t>(process.ordinal));
  if (!reason.empty()) event.metadata.emplace_back("reason", reason);
}

// The event of the log is `subject`, a dot, and the name after its first word.
JobEvent& JobHealth::Report(const char* subject, bool warns, const std::string& name, const std::string& text) {
  const std::string event = std::string(subject) + '.' + name.substr(name.find('_') + 1);
  warns ? LogWarning(event, text) : LogInfo(event, text);
  JobEvent& happened = events_.emplace_back();
  happened.unix_ms =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch()).count());
  happened.type = "persia.agent";
  happened.name = name;
  happened.metadata.emplace_back("text", text);
  return happened;
}

void JobHealth::SumUp(std::span<const WorkerProcess> processes, const Moment& moment, HealthReport& report) {
  if (judge_.job_hangs() != job_hangs_) {
    job_hangs_ = judge_.job_hangs();
    job_hangs_since_ = now_;
    const std::string after = SecondsText(judge_.hang_after());
    Report("job", job_hangs_, job_hangs_ ? "job_hung" : "job_recovered",
           job_hangs_ ? "the job hangs: no metric of any process has changed for " + after : "the job goes on");
  }
  const bool interrupted = moment.exit_code && IsInterruption(*moment.exit_code);
  const bool failed = moment.exit_code.value_or(0) != 0 && !interrupted;
  if (moment.exit_code && !std::exchange(command_ended_, true)) {
    Report("command", failed, "command_ended", "the command has ended with exit code " + std::to_string(*moment.exit_code))
        .metadata.emplace_back("exit_code", static_cast<int64_t>(*moment.exit_code));
  }
  bool any_alive = false;
  bool any_died = false;
  std::vector<HealthReport::Reason> died, hung, restarting;
  for (const WorkerProcess& process : processes) {
    const WorkerKey key = KeyOf(process);
    const HealthReport::Worker& worker = report.workers.at(key);
    any_alive = any_alive || process.alive;
    any_died = any_died || worker.state == WorkerState::kDied;
    if (process.died) died.push_back({"died", NameOf(key) + " died: " + EndText(process.last_exit), key, worker.since});
    if (worker.state == WorkerState::kHung) hung.push_back({"hung", NameOf(key) + " hangs", key, worker.since});
    const auto& restarts = known_.at(key).restarts;
    if (restarts.size() == kManyRestarts && moment.steady - restarts.front() < kRestartWindow) {
      restarting.push_back({"restarting", NameOf(key) + " restarts again and again", key, {}});
    }
  }
  if (failed) report.reasons.push_back({"failed", "the command ended with exit code " + std::to_string(*moment.exit_code)});
  if (interrupted) report.reasons.push_back({"failed", "the command was interrupted"});
  if (job_hangs_) {
    report.reasons.push_back(
        {"job_hung", "no metric of any process has changed for " + SecondsText(judge_.hang_after()), {}, job_hangs_since_});
  }
  for (auto* some : {&died, &hung, &restarting}) {
    std::ranges::move(*some, std::back_inserter(report.reasons));
  }
  if (report.reasons.size() > HealthReport::kMaxReasons) report.reasons.resize(HealthReport::kMaxReasons);
  const bool ended = moment.exit_code || (!any_alive && !processes.empty() && !moment.has_command);
  if (ended) {
    // A command tells by its exit code, even if some of its processes died.
    const bool is_bad = moment.exit_code ? failed : any_died;
    report.state = is_bad ? JobState::kFailed : JobState::kFinished;
  } else if (processes.empty()) {
    report.state = JobState::kWaiting;
  } else if (job_hangs_) {
    report.state = JobState::kHung;
  } else {
    const bool is_well = died.empty() && hung.empty() && restarting.empty() && (any_alive || !any_died);
    report.state = is_well ? JobState::kRunning : JobState::kDegraded;
  }
}

}  // namespace persia::agent

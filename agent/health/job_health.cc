#include "health/job_health.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/ends.h"
#include "model/events.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;

// A worker that restarts this often in this time is a problem of its own.
constexpr size_t kManyRestarts = 3;
constexpr std::chrono::minutes kRestartWindow(15);

// Of a process that lives.
WorkerState StateOf(const Process& process) {
  constexpr uint64_t kAgain = 2;
  if (process.verdict == HangVerdict::kHung) return WorkerState::kHung;
  if (process.verdict != HangVerdict::kNotJudged) return WorkerState::kRunning;
  if (process.unchanged >= HangJudge::kLeast) return WorkerState::kIdle;
  return process.changes >= kAgain ? WorkerState::kRunning : WorkerState::kStarting;
}

// That asked the job to end, or by which its command has ended; empty: none did.
std::string SignalOf(const JobHealth::Moment& moment) {
  if (moment.exit_code == 0) return "";
  if (moment.interruption) return moment.interruption->signal;
  return moment.exit_code == 130 ? "SIGINT" : moment.exit_code == 143 ? "SIGTERM" : "";
}

std::optional<HealthReport::TimePoint> HungSince(const HealthMemory& memory, const Process& process) {
  for (const HealthMemory::Known& known : memory.processes)
    if (known.id == process.id && known.ordinal == process.ordinal) return known.hung_since;
  return std::nullopt;
}

}  // namespace

void JobHealth::Look(std::span<Process> processes, const Moment& moment) {
  ++looks_;
  now_ = moment.wall;
  if (std::exchange(interruption_is_told_, moment.interruption.has_value()) < moment.interruption.has_value()) {
    const std::string text = "the job is asked to end by " + moment.interruption->signal;
    events_.push_back(LoggedAgentEvent(LogLevel::kInfo, "job_interrupted", text, now_));
  }
  ReportEnds(processes, moment);
  judge_.Look(processes, moment.steady, moment.settings);
  auto report = std::make_shared<HealthReport>();
  report->hang_after = judge_.hang_after();
  report->exit_code = moment.exit_code;
  report->deaths = deaths_;
  for (const Process& process : processes) LookAt(process, moment, *report);
  const std::string found = looks_ == 1 ? WhichRunAlready(processes) : "";
  if (!found.empty()) LogInfo("worker.found", found);
  std::erase_if(known_, [&](const auto& known) { return known.second.look != looks_; });
  SumUp(processes, moment, *report);
  Remember(processes, *report);
  report->since = looks_ > 1 && report->state == report_->state ? report_->since : now_;
  if (report->state == JobState::kHung) report->since = job_hangs_since_;
  report_ = std::move(report);
}

// Reports the start of a process that was not known.
JobHealth::Known& JobHealth::Meet(const Process& process, const Moment& moment) {
  const WorkerKey key = WorkerKeyOf(process);
  const std::string who = ProcessName(key);
  Known& known = known_[key];
  if (known.look != 0 && known.id == process.id) return known;
  const uint64_t restart = process.predecessors - std::min<uint64_t>(process.predecessors, process.alive ? 0 : 1);
  const bool is_restart = restart > 0;
  // Data loaders come anew in each epoch.
  const bool is_routine = process.ordinal > 0 && IsCleanExit(process.last_exit);
  if (is_restart && !is_routine && looks_ > 1) {
    known.restarts.push_back(moment.steady);
    if (known.restarts.size() > kManyRestarts) known.restarts.erase(known.restarts.begin());
  }
  known = {
      .id = process.id, .shown = {.since = now_}, .restarts = std::move(known.restarts), .first_look = looks_, .look = looks_};
  if (looks_ == 1) {
    if (const auto since = HungSince(memory_, process)) known.shown = {.state = WorkerState::kHung, .since = *since};
  } else if (is_restart) {
    Report(LogLevel::kInfo, process, "worker_restarted",
           who + " started again, pid " + std::to_string(process.id.pid) + ", restart " + std::to_string(restart));
  } else {
    Report(LogLevel::kInfo, process, "worker_started", who + " started, pid " + std::to_string(process.id.pid));
  }
  return known;
}

void JobHealth::LookAt(const Process& process, const Moment& moment, HealthReport& report) {
  const WorkerKey key = WorkerKeyOf(process);
  const std::string who = ProcessName(key);
  Known& known = Meet(process, moment);
  const bool is_other = known.first_look == looks_;
  known.look = looks_;
  known.alive = process.alive;
  WorkerState state = WorkerState::kExited;
  if (process.alive)
    state = StateOf(process);
  else if (HasDied(process, moment))
    state = WorkerState::kDied;
  if (!process.alive && !known.ended_at) known.ended_at = process.ended_at == TimePoint() ? now_ : process.ended_at;
  const Process* const dead = state == WorkerState::kDied ? KnownDeathOf(process) : nullptr;
  if (dead != nullptr && dead->end->at != TimePoint()) known.ended_at = dead->end->at;
  if (state == WorkerState::kHung && known.shown.state != WorkerState::kHung) {
    Report(LogLevel::kWarning, process, "worker_hung",
           who + " hangs: none of its metrics has changed for " + DurationText(process.unchanged) +
               ", while others of its job go on" + (process.phase.empty() ? "" : "; it has been " + PhaseText(process)) +
               LookAtHangOf(process, moment.is_stopped),
           "unchanged for " + DurationText(process.unchanged));
  } else if (process.alive && state != WorkerState::kHung && known.shown.state == WorkerState::kHung && !is_other) {
    Report(LogLevel::kInfo, process, "worker_recovered",
           who + (process.unchanged.count() > 0 ? " does not count as hung any more" : " goes on"));
  }
  if (state != known.shown.state && !is_other)
    known.shown.since = state == WorkerState::kHung ? now_ - process.unchanged : now_;
  if (known.ended_at) known.shown.since = *known.ended_at;
  known.shown.state = state;
  report.workers[key] = known.shown;
}

// Before the judgement of this Look: whether a process hung until it ended was found in the last one. The start of a process
// that ended before it was known is reported first.
void JobHealth::ReportEnds(std::span<const Process> processes, const Moment& moment) {
  std::vector<Process> ends(moment.ends.begin(), moment.ends.end());
  for (Process& ended : ends) {
    ended.end->hung_for = HungFor(ended);
    if (const auto awaited = awaited_.find(LabelValueOf(ended.identity, "role")); awaited != awaited_.end())
      ended.end->awaited = awaited->second;
  }
  const DeathRecorder::Moment now{
      .exit_of = moment.exit_of, .is_last = moment.exit_code.has_value(), .interruption = moment.interruption};
  for (const Process& ended : recorder_.Look(std::move(ends), now)) {
    const auto listed = std::ranges::find_if(processes, [&](const Process& process) {
      return process.id == ended.id && !process.alive && WorkerKeyOf(process) == WorkerKeyOf(ended);
    });
    if (listed != processes.end()) Meet(*listed, moment);
    ReportEnd(ended, moment);
  }
  if (std::exchange(shown_changes_, recorder_.changes()) != recorder_.changes()) {
    memory_.deaths = recorder_.memory();
    deaths_ = std::make_shared<const std::vector<Process>>(recorder_.memory().deaths);
  }
}

void JobHealth::ReportEnd(const Process& ended, const Moment& moment) {
  const std::string& exit = ended.end->exit;
  const std::string who = ProcessName(WorkerKeyOf(ended));
  if (!ended.end->death) {
    const bool was_asked = moment.interruption && !IsCleanExit(exit);
    const std::string after = was_asked ? ", after " + moment.interruption->signal + " to the job" : "";
    Report(LogLevel::kInfo, ended, "worker_exited", who + " has ended: " + ExitText(exit) + after, exit);
    return;
  }
  const Death& death = *ended.end->death;
  JobEvent& event =
      Report(LogLevel::kWarning, ended, "worker_died",
             who + " died: " + SentenceOf(ended) + "; pid " + std::to_string(ended.id.pid) + kLookAt + death.look_at, exit);
  auto& metadata = event.metadata;
  metadata.emplace_back("cause", std::string(Name(death.cause)));
  if (!ended.phase.empty()) metadata.emplace_back("phase", ended.phase);
  if (ended.step) metadata.emplace_back("step", *ended.step);
}

std::optional<seconds> JobHealth::HungFor(const Process& ended) const {
  const auto found = known_.find(WorkerKeyOf(ended));
  if (found == known_.end() || found->second.id != ended.id || !found->second.alive) return std::nullopt;
  const bool hung = found->second.shown.state == WorkerState::kHung;
  if (!hung && !job_hangs_) return std::nullopt;
  const TimePoint since = hung ? found->second.shown.since : job_hangs_since_;
  return std::chrono::duration_cast<seconds>(now_ - since);
}

const Process* JobHealth::KnownDeathOf(const Process& process) const {
  const auto found = std::ranges::find_if(
      *deaths_, [&](const Process& dead) { return dead.id == process.id && WorkerKeyOf(dead) == WorkerKeyOf(process); });
  return found == deaths_->end() ? nullptr : &*found;
}

// In this attempt of the run. Of more deaths than are listed, its end tells.
bool JobHealth::HasDied(const Process& process, const Moment& moment) const {
  const bool is_of_earlier_attempt = moment.began && process.ended_at != TimePoint() && process.ended_at < *moment.began;
  const bool are_all_listed = deaths_->size() < DeathMemory::kMaxDeaths;
  return !is_of_earlier_attempt &&
         (KnownDeathOf(process) != nullptr || (!are_all_listed && IsDeath(process.last_exit, process.ordinal)));
}

// With what is known of its death, if it died.
std::string JobHealth::EndTextOf(const Process& process) const {
  const Process* const dead = KnownDeathOf(process);
  return dead == nullptr ? ExitText(process.last_exit) : SentenceOf(*dead);
}

void JobHealth::ReportCommand(int exit_code, const std::string& signal) {
  const LogLevel level = exit_code != 0 && signal.empty() ? LogLevel::kWarning : LogLevel::kInfo;
  const std::string text = "the command has ended with exit code " + std::to_string(exit_code) +
                           (signal.empty() ? "" : ", " + InterruptionText(signal));
  JobEvent& event = events_.emplace_back(LoggedAgentEvent(level, "command_ended", text, now_));
  event.metadata.emplace_back("exit_code", static_cast<int64_t>(exit_code));
}

JobEvent& JobHealth::Report(LogLevel level, const Process& process, const char* name, const std::string& text,
                            const std::string& reason) {
  JobEvent& event = events_.emplace_back(LoggedAgentEvent(level, name, text, now_));
  event.identity = process.identity;
  event.pid = process.id.pid;
  event.metadata.emplace_back("process", static_cast<int64_t>(process.ordinal));
  if (!reason.empty()) event.metadata.emplace_back("reason", reason);
  return event;
}

// None: the job does not hang.
std::optional<HealthReport::Reason> JobHealth::HangOfJob(std::span<const Process> processes, const Moment& moment) {
  awaited_.clear();
  if (!judge_.job_hangs()) {
    // Ranks that have ended do not go on.
    const auto goes_on = [&](const Process& process) {
      return process.alive && IsRankPlace(WorkerKeyOf(process)) && process.unchanged < judge_.hang_after();
    };
    const bool ends = moment.exit_code || moment.interruption;
    if (std::exchange(job_hangs_, false) && !ends && std::ranges::any_of(processes, goes_on))
      events_.push_back(LoggedAgentEvent(LogLevel::kInfo, "job_recovered", "the job goes on", now_));
    return std::nullopt;
  }
  const AwaitedRanks awaited = WhomOthersAwait(processes);
  for (const auto* ranks : {&awaited.dead, &awaited.living})
    for (const Process* rank : *ranks)
      awaited_.try_emplace(LabelValueOf(rank->identity, "role"), ProcessName(WorkerKeyOf(*rank)));
  const std::string unchanged =
      "no metric of any process has changed for " + DurationText(judge_.job_unchanged().value_or(judge_.hang_after()));
  const std::string look_at = LookAtHangOfJob(processes, awaited, moment.is_stopped);
  if (!std::exchange(job_hangs_, true)) {
    job_hangs_since_ = now_ - judge_.job_unchanged().value_or(judge_.hang_after());
    const std::string hang = "the job hangs: " + unchanged + (awaited.empty() ? "" : "; " + SentenceOf(awaited));
    events_.push_back(LoggedAgentEvent(LogLevel::kWarning, "job_hung", hang + look_at, now_));
  }
  return HealthReport::Reason{"job_hung", (awaited.empty() ? unchanged : SentenceOf(awaited)) + look_at, {}, job_hangs_since_};
}

void JobHealth::SumUp(std::span<const Process> processes, const Moment& moment, HealthReport& report) {
  const std::optional<HealthReport::Reason> job_hang = HangOfJob(processes, moment);
  const std::string signal = SignalOf(moment);
  const bool failed = moment.exit_code.value_or(0) != 0 && signal.empty();
  if (moment.exit_code && !std::exchange(command_ended_, true)) ReportCommand(*moment.exit_code, signal);
  bool any_alive = false;
  bool any_died = false;
  std::vector<HealthReport::Reason> died, hung, restarting;
  for (const Process& process : processes) {
    const WorkerKey key = WorkerKeyOf(process);
    const HealthReport::Worker& worker = report.workers.at(key);
    any_alive = any_alive || process.alive;
    any_died = any_died || worker.state == WorkerState::kDied;
    if (process.died && worker.state == WorkerState::kDied)
      died.push_back({"died", ProcessName(key) + " died: " + EndTextOf(process), key, worker.since});
    if (worker.state == WorkerState::kHung) {
      const std::string phase = process.phase.empty() ? "" : ", " + PhaseText(process);
      hung.push_back(
          {"hung", ProcessName(key) + " hangs" + phase + LookAtHangOf(process, moment.is_stopped), key, worker.since});
    }
    const auto& restarts = known_.at(key).restarts;
    if (restarts.size() == kManyRestarts && moment.steady - restarts.front() < kRestartWindow)
      restarting.push_back({"restarting", ProcessName(key) + " restarts again and again", key, {}});
  }
  std::ranges::stable_sort(died, {}, &HealthReport::Reason::since);
  report.asked_to_end_by = signal;
  if (!signal.empty() && !moment.exit_code)
    report.reasons.push_back({"interrupted", InterruptionText(signal) + "; its command has not ended yet"});
  if (moment.exit_code || (!any_alive && !moment.has_command && (!processes.empty() || moment.any_has_ended))) {
    End(processes, moment.exit_code ? std::optional(failed) : std::nullopt, report);
    return;
  }
  // The others of a rank that died hang because of that.
  std::ranges::move(died, std::back_inserter(report.reasons));
  if (job_hang) report.reasons.push_back(*job_hang);
  for (auto* some : {&hung, &restarting}) std::ranges::move(*some, std::back_inserter(report.reasons));
  if (report.reasons.size() > HealthReport::kMaxReasons) report.reasons.resize(HealthReport::kMaxReasons);
  if (processes.empty()) {
    report.state = JobState::kWaiting;
  } else if (job_hangs_) {
    report.state = JobState::kHung;
  } else {
    const bool is_well = died.empty() && hung.empty() && restarting.empty() && (any_alive || !any_died);
    report.state = is_well ? JobState::kRunning : JobState::kDegraded;
  }
}

// A command tells by its exit code how the job ended, even if some of its processes died.
void JobHealth::End(std::span<const Process> processes, std::optional<bool> command_failed, HealthReport& report) {
  const std::vector<HealthReport::Reason> deaths = LastDeaths(processes, report);
  const bool failed = command_failed.value_or(!deaths.empty() || report_->state == JobState::kFailed);
  report.state = failed ? JobState::kFailed : JobState::kFinished;
  if (!failed && report.asked_to_end_by.empty()) return;
  if (deaths.empty()) {
    if (!command_failed) report.reasons = report_->reasons;  // of processes that are not listed any more
    return;
  }
  report.reasons.push_back(deaths.front());
  if (deaths.size() == 1) return;
  const bool is_first = deaths[1].since > deaths[0].since;
  report.reasons.push_back({"died", "and " + std::to_string(deaths.size() - 1) + " more ended " +
                                        (is_first ? "after it" : "within the same collection or after it")});
}

// Of the processes that the launcher started last, those that died, in the order in which they did.
std::vector<HealthReport::Reason> JobHealth::LastDeaths(std::span<const Process> processes, const HealthReport& report) const {
  std::map<std::string, uint32_t> restart_counts;  // the highest, by role
  for (const Process& process : processes) {
    uint32_t& highest = restart_counts[std::get<0>(WorkerKeyOf(process))];
    highest = std::max(highest, process.restart_count);
  }
  std::vector<std::pair<int, HealthReport::Reason>> deaths;
  for (const Process& process : processes) {
    const WorkerKey key = WorkerKeyOf(process);
    const HealthReport::Worker& worker = report.workers.at(key);
    const bool is_of_last = process.restart_count == restart_counts[std::get<0>(key)];
    if (process.ordinal != 0 || worker.state != WorkerState::kDied || !is_of_last) continue;
    deaths.emplace_back(Precedence(process.last_exit),
                        HealthReport::Reason{"died", ProcessName(key) + " died: " + EndTextOf(process), key, worker.since});
  }
  std::ranges::stable_sort(deaths, {}, [](const auto& death) { return std::pair(death.second.since, death.first); });
  std::vector<HealthReport::Reason> reasons;
  for (auto& [rank, reason] : deaths) reasons.push_back(std::move(reason));
  return reasons;
}

void JobHealth::Remember(std::span<const Process> processes, const HealthReport& report) {
  std::vector<WorkerKey> hung;
  for (const auto& [key, worker] : report.workers)
    if (worker.state == WorkerState::kHung) hung.push_back(key);
  const auto job_hangs_since = job_hangs_ ? std::optional(job_hangs_since_) : std::nullopt;
  const bool is_same = looks_ > 1 && hung == remembered_hung_ && job_hangs_since == memory_.job_hangs_since &&
                       judge_.longest_pause() == memory_.longest_pause;
  if (is_same) return;
  remembered_hung_ = std::move(hung);
  memory_ = {.longest_pause = judge_.longest_pause(), .job_hangs_since = job_hangs_since, .deaths = recorder_.memory()};
  if (!job_hangs_ && remembered_hung_.empty()) return;
  for (const Process& process : processes) {
    if (!process.alive) continue;
    const HealthReport::Worker& worker = report.workers.at(WorkerKeyOf(process));
    const bool is_hung = worker.state == WorkerState::kHung;
    const bool has_stopped = process.judged_changes > 0 && (job_hangs_ || is_hung);
    memory_.processes.push_back({.id = process.id,
                                 .ordinal = process.ordinal,
                                 .changes = process.judged_changes,
                                 .unchanged_since = has_stopped ? std::optional(now_ - process.unchanged) : std::nullopt,
                                 .hung_since = is_hung ? std::optional(worker.since) : std::nullopt});
  }
}

void JobHealth::Restore(const HealthMemory& memory, TimePoint now) {
  recorder_.Restore(memory.deaths);
  if (looks_ > 0) return;
  memory_ = memory;
  judge_.Restore(memory, now);
  job_hangs_ = memory.job_hangs_since.has_value();
  job_hangs_since_ = memory.job_hangs_since.value_or(now);
}

}  // namespace persia::agent

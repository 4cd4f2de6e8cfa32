#include "health/rank_verdicts.h"

#include <algorithm>

#include "health/phrases.h"
#include "model/agent_event.h"

namespace persia::agent {

std::string SentenceOf(const StragglerJudge::Verdict& verdict) {
  return RankName(verdict.identity) + ": " + NumberText(verdict.seconds_per_step) + " s longer in " + PhaseName(verdict.phase) +
         " than the others in each step of " + NumberText(verdict.step_seconds) + " s; " + OthersWait(verdict.waiting) +
         " for it in sync";
}

void RankVerdicts::Look(std::span<const WorkerProcess> processes, const Moment& moment) {
  now_ = moment.wall;
  stragglers_.Look(processes, moment.steady, moment.interval);
  awaited_.Look(processes, moment.steady, {.hang_after = moment.hang_after, .is_stopped = moment.is_stopped});
  auto report = std::make_shared<RankReport>();
  report->ranks = stragglers_.ranks();
  report->judged = stragglers_.judged();
  for (const WorkerProcess& process : processes) {
    if (!IsRank(process) || process.phase.empty()) continue;
    // An agent that has no other ranks does not judge a rank that waits too long; the rules do.
    const std::chrono::milliseconds still = awaited_.Still(process);
    const bool waits = process.phase == kSyncPhase && moment.hang_after.count() > 0 && still >= moment.hang_after / 2;
    const bool is_stopped = waits && moment.is_stopped && moment.is_stopped(process);
    report->present.push_back({process.identity, is_stopped ? std::string(kStoppedPhase) : process.phase, still});
  }
  LookForStragglers(*report);
  LookForHangs(*report);
  report_ = std::move(report);
}

// While ranks hang they take no steps, so a straggler stays one.
void RankVerdicts::LookForStragglers(RankReport& report) {
  const auto find = [](const std::vector<RankReport::Straggler>& in, const StragglerJudge::Verdict& like) {
    return std::ranges::find_if(in, [&](const RankReport::Straggler& one) { return one.verdict.identity == like.identity; });
  };
  for (const StragglerJudge::Verdict& verdict : stragglers_.verdicts()) {
    const auto known = find(report_->stragglers, verdict);
    const bool is_new = known == report_->stragglers.end();
    report.stragglers.push_back({verdict, is_new ? now_ : known->since});
    if (is_new) Report(LogLevel::kWarning, "straggler_found", verdict.identity, verdict.phase, SentenceOf(verdict));
  }
  for (const auto& [verdict, since] : report_->stragglers) {
    if (find(report.stragglers, verdict) != report.stragglers.end()) continue;
    Report(LogLevel::kInfo, "straggler_gone", verdict.identity, verdict.phase,
           RankName(verdict.identity) + ": the others do not wait for it any more");
  }
}

void RankVerdicts::LookForHangs(RankReport& report) {
  const auto find = [](const std::vector<RankReport::Awaited>& in, const AwaitedJudge::Verdict& like) {
    return std::ranges::find_if(in, [&](const RankReport::Awaited& one) { return one.verdict.rank == like.rank; });
  };
  for (const AwaitedJudge::Verdict& verdict : awaited_.verdicts()) {
    const auto known = find(report_->awaited, verdict);
    const bool is_new = known == report_->awaited.end();
    report.awaited.push_back({verdict, is_new ? now_ - verdict.waited : known->since});
    if (is_new) Report(LogLevel::kWarning, "rank_awaited", verdict.identity, verdict.phase, SentenceOf(verdict));
  }
  for (const auto& [verdict, since] : report_->awaited) {
    if (find(report.awaited, verdict) != report.awaited.end()) continue;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now_ - since);
    Report(LogLevel::kInfo, "rank_caught_up", verdict.identity, verdict.phase,
           RankName(verdict.identity) + ": the others do not wait for it any more, after " + SecondsText(waited));
  }
}

void RankVerdicts::Report(LogLevel level, const char* name, const Identity& identity, const std::string& phase,
                          const std::string& text) {
  JobEvent& event = events_.emplace_back(LoggedAgentEvent(level, name, text, now_));
  event.identity = identity;
  event.metadata.emplace_back("phase", phase);
}

}  // namespace persia::agent

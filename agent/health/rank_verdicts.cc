#include "health/rank_verdicts.h"

#include <algorithm>
#include <set>

#include "health/phrases.h"
#include "model/events.h"

namespace persia::agent {
namespace {

using Seconds = std::chrono::duration<double>;

// "120 ms longer in data than the others in each step of 500 ms"
std::string LongerText(const StragglerJudge::Verdict& verdict) {
  return DurationText(Seconds(verdict.seconds_per_step)) + " longer " + InPhase(verdict.phase) +
         " than the others in each step of " + DurationText(Seconds(verdict.step_seconds));
}

// Whether the rank lives, and another one that may wait for it.
bool HasOthers(std::span<const Process> processes, const Identity& identity) {
  const auto is_of_role = [&](const Process& process) {
    return IsRank(process) && LabelValueOf(process.identity, "role") == LabelValueOf(identity, "role");
  };
  const auto is_it = [&](const Process& process) { return is_of_role(process) && process.identity == identity; };
  return std::ranges::any_of(processes, is_it) && std::ranges::count_if(processes, is_of_role) > 1;
}

}  // namespace

std::string SentenceOf(const StragglerJudge::Verdict& verdict) {
  return RankName(verdict.identity) + ": " + LongerText(verdict) + "; " + OthersWait(verdict.waiting) + " for it in sync";
}

std::string SentenceOf(const RankReport::Slowest& slowest) {
  const StragglerJudge::Verdict& verdict = slowest.verdict;
  return RankName(verdict.identity) + " was the slowest rank: for " + DurationText(slowest.time) + ", it was " +
         LongerText(verdict);
}

bool RankReport::StandsStill(const std::string& role) const {
  const auto is_of_role = [&](const auto& rank) { return LabelValueOf(rank.identity, "role") == role; };
  return std::ranges::find(standstills, role, &Standstill::role) != standstills.end() ||
         std::ranges::any_of(standing, is_of_role) ||
         std::ranges::any_of(awaited, [&](const Awaited& one) { return is_of_role(one.verdict); });
}

void RankVerdicts::Look(std::span<const Process> processes, const Moment& moment) {
  now_ = moment.wall;
  stragglers_.Look(processes, moment.steady, moment.interval);
  awaited_.Look(processes, moment.steady, {.hang_after = moment.hang_after, .is_stopped = moment.is_stopped});
  auto report = std::make_shared<RankReport>();
  report->ranks = stragglers_.ranks();
  report->judged = stragglers_.judged();
  for (const Process& process : processes) {
    if (!IsRank(process) || process.phase.empty()) continue;
    // An agent that has no other ranks does not judge a rank that waits too long; the rules do.
    const std::chrono::milliseconds still = awaited_.Still(process);
    const bool waits = process.phase == kSyncPhase && moment.hang_after.count() > 0 && still >= moment.hang_after / 2;
    const bool is_stopped = waits && moment.is_stopped && moment.is_stopped(process);
    report->present.push_back({process.identity, is_stopped ? std::string(kStoppedPhase) : process.phase, still});
  }
  LookForStragglers(processes, *report);
  LookForHangs(processes, *report);
  LookForStandstills(processes, moment, *report);
  CountStragglers(moment, *report);
  report_ = std::move(report);
}

// While ranks hang they take no steps, so a straggler stays one.
void RankVerdicts::LookForStragglers(std::span<const Process> processes, RankReport& report) {
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
    if (find(report.stragglers, verdict) != report.stragglers.end() || !HasOthers(processes, verdict.identity)) continue;
    Report(LogLevel::kInfo, "straggler_gone", verdict.identity, verdict.phase,
           RankName(verdict.identity) + ": the others do not wait for it any more");
  }
}

void RankVerdicts::LookForHangs(std::span<const Process> processes, RankReport& report) {
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
    if (find(report.awaited, verdict) != report.awaited.end() || !HasOthers(processes, verdict.identity)) continue;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now_ - since);
    Report(LogLevel::kInfo, "rank_caught_up", verdict.identity, verdict.phase,
           RankName(verdict.identity) + ": the others do not wait for it any more, after " + DurationText(waited));
  }
}

void RankVerdicts::LookForStandstills(std::span<const Process> processes, const Moment& moment, RankReport& report) {
  standstills_.Look(processes, moment.steady, moment.hang_after);
  report.job_stands = standstills_.job_stands();
  report.numbers_steps = standstills_.by_steps();
  for (const auto& [role, unmoved] : standstills_.roles()) {
    std::set<std::string> phases;
    for (const RankReport::Present& rank : report.present)
      if (LabelValueOf(rank.identity, "role") == role) phases.insert(rank.phase);
    phases.erase(std::string(kStoppedPhase));
    std::string where = SentenceOf(WhomOthersAwait(processes, role));
    if (where.empty() && phases.size() == 1) where = "each rank is " + InPhase(*phases.begin());
    report.standstills.push_back({role, unmoved, std::move(where)});
  }
  for (const auto& [identity, unmoved] : standstills_.ranks()) report.standing.push_back({identity, unmoved, now_ - unmoved});
}

// Of the verdicts that stood since the last Look.
void RankVerdicts::CountStragglers(const Moment& moment, RankReport& report) {
  const auto passed =
      std::chrono::duration_cast<std::chrono::milliseconds>(moment.steady - std::exchange(last_look_, moment.steady));
  for (const auto& [verdict, since] : report_->stragglers) {
    if (report_->StandsStill(LabelValueOf(verdict.identity, "role"))) continue;
    RankReport::Slowest& slow = slow_times_[{verdict.identity, verdict.phase}];
    slow.verdict = verdict;
    slow.time += passed;
  }
  const auto longest = std::ranges::max_element(slow_times_, {}, [](const auto& slow) { return slow.second.time; });
  if (longest != slow_times_.end()) report.slowest = longest->second;
}

void RankVerdicts::Report(LogLevel level, const char* name, const Identity& identity, const std::string& phase,
                          const std::string& text) {
  JobEvent& event = events_.emplace_back(LoggedAgentEvent(level, name, text, now_));
  event.identity = identity;
  event.metadata.emplace_back("phase", phase);
}

}  // namespace persia::agent

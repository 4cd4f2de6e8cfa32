#include "web/sentences.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>

#include "health/phrases.h"

namespace persia::agent {
namespace {

using Reason = HealthReport::Reason;

WorkerKey MainProcessOf(const Identity& identity) {
  return {LabelValueOf(identity, "role"), LabelValueOf(identity, "instance"), "0"};
}

std::string RateText(double per_second) { return NumberText(per_second) + " /s"; }

std::string ComparedText(const Throughput::Slowest& slowest) {
  return RateText(slowest.now) + ", the median is " + RateText(slowest.median);
}

// The rank that the others wait for says more than that it, or the job, hangs.
std::vector<Reason> ReasonsOfRunningJob(const AgentStatus& status) {
  std::vector<Reason> hangs;
  for (const auto& [verdict, since] : status.ranks->awaited)
    hangs.push_back({"hung", SentenceOf(verdict), MainProcessOf(verdict.identity), since});
  hangs.resize(std::min(hangs.size(), HealthReport::kMaxReasons));
  std::vector<Reason> reasons;
  for (const Reason& reason : status.health->reasons) {
    const bool is_told = std::ranges::any_of(hangs, [&](const Reason& hang) {
      return reason.kind == "job_hung" || (reason.kind == "hung" && reason.worker == hang.worker);
    });
    if (!is_told) reasons.push_back(reason);
  }
  std::ranges::move(hangs, std::back_inserter(reasons));
  constexpr std::array<std::string_view, 4> kOrder{"died", "job_hung", "hung", "restarting"};
  std::ranges::stable_sort(reasons, {}, [&](const Reason& reason) { return std::ranges::find(kOrder, reason.kind); });
  return reasons;
}

// Those that make no steps at all; else by the phases; without them, by the counter of the progress.
std::vector<Reason> SlowRanks(const AgentStatus& status) {
  std::vector<Reason> slow;
  if (status.health->state == JobState::kHung) return slow;
  for (const auto& [identity, unmoved, since] : status.ranks->standing) {
    const WorkerKey rank = MainProcessOf(identity);
    const auto health = status.health->workers.find(rank);
    if (health != status.health->workers.end() && health->second.state == WorkerState::kHung) continue;
    slow.push_back(
        {"slow", ProcessName(rank) + " has made no step for " + DurationText(unmoved) + ", while others go on", rank, since});
  }
  slow.resize(std::min(slow.size(), HealthReport::kMaxReasons));
  for (const auto& [verdict, since] : status.ranks->stragglers) {
    if (status.ranks->StandsStill(LabelValueOf(verdict.identity, "role"))) continue;
    slow.push_back({"slow", SentenceOf(verdict), MainProcessOf(verdict.identity), since});
  }
  if (!slow.empty() || !status.throughput || !status.throughput->slowest) return slow;
  const Throughput::Slowest& slowest = *status.throughput->slowest;
  if (status.ranks->StandsStill(slowest.role)) return slow;
  const WorkerKey rank{slowest.role, slowest.instance, "0"};
  slow.push_back({"slow", ProcessName(rank) + " is slower than the others: " + ComparedText(slowest), rank, {}});
  return slow;
}

// The ranks that live, by their states.
size_t RanksIn(const HealthReport& health, std::initializer_list<WorkerState> states) {
  return static_cast<size_t>(std::ranges::count_if(
      health.workers,
      [&](const auto& worker) {
        return IsRankPlace(worker.first) && std::ranges::find(states, worker.second.state) != states.end();
      }));
}

size_t RunningRanks(const HealthReport& health) {
  return RanksIn(health, {WorkerState::kRunning, WorkerState::kStarting, WorkerState::kIdle, WorkerState::kHung});
}

// "no step for 15 s; each rank is in eval"; empty: ranks move, or a hang is told already.
std::string StandstillOf(const AgentStatus& status, const std::vector<Reason>& reasons) {
  const RankReport& ranks = *status.ranks;
  const bool is_told =
      std::ranges::any_of(reasons, [](const Reason& reason) { return reason.kind == "hung" || reason.kind == "job_hung"; });
  if (is_told || ranks.standstills.empty()) return "";
  const RankReport::Standstill& longest = *std::ranges::max_element(ranks.standstills, {}, &RankReport::Standstill::unmoved);
  std::string text = ranks.numbers_steps ? "no step" : "no change of a metric";
  if (!ranks.job_stands) text += " of any " + longest.role;
  text += " for " + DurationText(longest.unmoved);
  return longest.where.empty() ? text : text + "; " + longest.where;
}

std::string OfRanks(size_t some, size_t all) {
  return std::to_string(some) + " of " + std::to_string(all) + (all == 1 ? " rank" : " ranks");
}

}  // namespace

std::string TitleOf(const HealthReport& health) {
  const bool was_asked = IsOver(health) && !health.asked_to_end_by.empty();
  std::string title(was_asked ? InterruptionText(health.asked_to_end_by) : std::string(Name(health.state)));
  title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return IsOver(health) && health.exit_code ? title + ", exit " + std::to_string(*health.exit_code) : title;
}

std::vector<Reason> ReasonsOf(const AgentStatus& status) {
  const bool is_over = IsOver(*status.health);
  std::vector<Reason> reasons = is_over ? status.health->reasons : ReasonsOfRunningJob(status);
  for (const auto& [first, others] : status.not_finite->families)
    reasons.push_back({"not_finite", SentenceOf(first, others), MainProcessOf(first.identity), first.since});
  if (!is_over) std::ranges::move(SlowRanks(status), std::back_inserter(reasons));
  std::ranges::copy(status.losses, std::back_inserter(reasons));
  return reasons;
}

std::string HeadlineOf(const Reason& reason) {
  if (reason.kind == "lost") return reason.text.substr(0, reason.text.find(": "));
  if (reason.kind != "died") return reason.text.substr(0, reason.text.find(kLookAt));
  return reason.text.substr(0, std::min(reason.text.find("; "), reason.text.find(" (")));
}

std::string SituationOf(const AgentStatus& status) {
  const HealthReport& health = *status.health;
  if (health.state == JobState::kWaiting) return "no worker has started yet";
  if (health.state != JobState::kRunning && health.state != JobState::kDegraded) return "";
  const std::vector<Reason> reasons = ReasonsOf(status);
  if (std::string standstill = StandstillOf(status, reasons); !standstill.empty()) return standstill;
  if (std::ranges::any_of(reasons, [](const Reason& reason) { return reason.kind != "lost"; })) return "";
  const size_t all = RunningRanks(health);
  if (all == 0) {
    const bool any = std::ranges::any_of(health.workers, [](const auto& worker) { return IsRankPlace(worker.first); });
    return any ? "no rank is up" : "no rank has started yet";
  }
  if (const size_t idle = RanksIn(health, {WorkerState::kIdle}); idle > 0)
    return "none died or hangs; " + OfRanks(idle, all) + " idle: no change of their metrics for a minute or longer";
  const size_t starting = RanksIn(health, {WorkerState::kStarting});
  return starting > 0 ? OfRanks(starting, all) + " starting" : "all workers are well";
}

std::string ComparisonOf(const AgentStatus& status) {
  const HealthReport& health = *status.health;
  const size_t ranks = RunningRanks(health);
  const bool has_trouble = std::ranges::any_of(health.workers, [](const auto& worker) {
    return worker.second.state == WorkerState::kDied || worker.second.state == WorkerState::kHung;
  });
  if (IsOver(health)) return status.ranks->slowest ? SentenceOf(*status.ranks->slowest) : "";
  const RankReport& report = *status.ranks;
  const bool stands =
      health.state == JobState::kHung || !report.standstills.empty() || !report.standing.empty() || !report.awaited.empty();
  if (ranks < 2 || has_trouble || stands) return "";
  if (!status.ranks->stragglers.empty()) {
    const StragglerJudge::Verdict& slow = status.ranks->stragglers.front().verdict;
    const double share = slow.step_seconds > 0 ? slow.seconds_per_step / slow.step_seconds : 0;
    return LabelValueOf(slow.identity, "instance") + " is slower " + InPhase(slow.phase) + ", by " +
           std::to_string(std::lround(100 * share)) + " % of a step";
  }
  if (status.throughput && status.throughput->slowest)
    return status.throughput->slowest->instance + " is slower: " + ComparedText(*status.throughput->slowest);
  // Ranks that meet at each step are judged by what their steps consist of.
  size_t judged = 0;
  bool is_undecided = false;
  for (const StragglerJudge::Judged& role : status.ranks->judged) {
    if (role.ranks < 2) continue;
    if (role.measured < role.needed)
      return "measuring the ranks, " + std::to_string(role.measured) + " of " + std::to_string(role.needed) + " steps";
    judged += role.ranks;
    is_undecided = is_undecided || role.is_undecided;
  }
  if (is_undecided) return "one of the ranks may be slower";
  return judged == ranks ? "all ranks are equally fast" : "";
}

}  // namespace persia::agent

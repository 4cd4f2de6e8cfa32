#include "health/awaited.h"

#include <algorithm>
#include <utility>

#include "health/phrases.h"

namespace persia::agent {
namespace {

// The step of most ranks; of two that are equally frequent, the lower one. None: no rank numbers its steps.
std::optional<double> StepOfMost(const std::vector<const WorkerProcess*>& ranks) {
  std::map<double, size_t> counts;
  for (const WorkerProcess* rank : ranks) {
    if (rank->step) ++counts[*rank->step];
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  return most == counts.end() ? std::nullopt : std::optional(most->first);
}

}  // namespace

void AwaitedJudge::Look(std::span<const WorkerProcess> processes, const Settings& settings) {
  before_ = std::exchange(verdicts_, {});
  if (settings.hang_after.count() <= 0) return;
  struct Role {
    Members waiting;
    Members others;
  };
  std::map<std::string, Role> roles;
  for (const WorkerProcess& process : processes) {
    if (!IsRank(process)) continue;
    Role& role = roles[LabelValueOf(process.identity, "role")];
    (process.phase == kSyncPhase ? role.waiting : role.others).push_back(&process);
  }
  for (auto& [name, role] : roles) JudgeRole(role.waiting, role.others, settings);
}

void AwaitedJudge::JudgeRole(const Members& waiting, const Members& others, const Settings& settings) {
  if (waiting.empty() || waiting.size() + others.size() < 2) return;
  const auto [shortest, longest] = std::ranges::minmax(waiting, {}, &WorkerProcess::in_phase);
  if (longest->in_phase < settings.hang_after || shortest->in_phase < settings.hang_after / 2) return;
  const Milliseconds waited = longest->in_phase;
  if (!others.empty()) {
    Members named = others;
    std::ranges::stable_sort(named, std::ranges::greater(), &WorkerProcess::in_phase);
    named.resize(std::min(named.size(), kMostNamed));
    for (const WorkerProcess* rank : named) Name(*rank, waited, waiting.size(), rank->phase);
    return;
  }
  Members stopped;
  for (const WorkerProcess* rank : waiting) {
    if (settings.is_stopped && stopped.size() < kMostNamed && settings.is_stopped(*rank)) stopped.push_back(rank);
  }
  if (stopped.size() == waiting.size()) return;
  for (const WorkerProcess* rank : stopped) Name(*rank, waited, waiting.size() - stopped.size(), std::string(kStoppedPhase));
  const std::optional<double> steps = StepOfMost(waiting);
  if (!stopped.empty() || !steps) return;
  Members apart;
  for (const WorkerProcess* rank : waiting) {
    if (rank->step && *rank->step != *steps) apart.push_back(rank);
  }
  for (const WorkerProcess* rank : apart) {
    if (verdicts_.size() >= kMostNamed) break;
    Name(*rank, waited, waiting.size() - apart.size(), std::string(kSyncPhase), steps);
  }
}

// A rank that goes from phase to phase while the others wait keeps the phase in which it was named.
void AwaitedJudge::Name(const WorkerProcess& process, Milliseconds waited, size_t waiting, const std::string& phase,
                        std::optional<double> steps) {
  Verdict verdict{.rank = RankProcessKeyOf(process),
                  .identity = process.identity,
                  .phase = phase.empty() ? "other" : phase,
                  .in_phase = process.in_phase,
                  .step = process.step,
                  .waited = waited,
                  .waiting = waiting,
                  .steps = steps};
  const auto known = std::ranges::find(before_, verdict.rank, &Verdict::rank);
  if (known != before_.end() && verdict.in_phase < waited / 2) verdict.phase = known->phase;
  verdicts_.push_back(std::move(verdict));
}

std::string SentenceOf(const AwaitedJudge::Verdict& verdict) {
  std::string text = RankName(verdict.identity) + ": ";
  if (verdict.phase == kStoppedPhase) {
    text += "stopped by a signal in sync";
  } else {
    text += "in " + PhaseName(verdict.phase);
  }
  if (verdict.step) text += " since step " + StepText(*verdict.step);
  text += ", " + SecondsText(verdict.in_phase) + "; " + OthersWait(verdict.waiting) + " in sync";
  if (verdict.steps) text += " of step " + StepText(*verdict.steps);
  return text;
}

}  // namespace persia::agent

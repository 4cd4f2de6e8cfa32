#include "health/awaited.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>

#include "health/phrases.h"

namespace persia::agent {
void AwaitedJudge::Look(std::span<const Process> processes, TimePoint now, const Settings& settings) {
  const auto since_look = std::chrono::duration_cast<Milliseconds>(now - std::exchange(last_look_, now));
  verdicts_.clear();
  std::map<RankProcessKey, Place> places;
  std::map<std::string, Members> roles;
  for (const Process& process : processes) {
    if (!IsRank(process)) continue;
    const Place& place = places.emplace(RankProcessKeyOf(process), PlaceOf(process, since_look)).first->second;
    const Milliseconds still = process.in_phase - place.stepped_at;
    if (still >= settings.hang_after / 2) roles[LabelValueOf(process.identity, "role")].push_back({&process, still});
  }
  places_ = std::move(places);
  if (settings.hang_after.count() <= 0) return;
  for (auto& [name, members] : roles) JudgeRole(members, settings);
}

AwaitedJudge::Milliseconds AwaitedJudge::Still(const Process& process) const {
  const auto place = places_.find(RankProcessKeyOf(process));
  return place == places_.end() ? process.in_phase : process.in_phase - place->second.stepped_at;
}

AwaitedJudge::Place AwaitedJudge::PlaceOf(const Process& process, Milliseconds since_look) const {
  Place place{.step = process.step};
  const auto known = places_.find(RankProcessKeyOf(process));
  if (known == places_.end() || process.in_phase < since_look) return place;
  // It is in the phase of the last Look.
  const bool has_stepped = known->second.step != place.step;
  place.stepped_at = has_stepped ? process.in_phase : std::min(known->second.stepped_at, process.in_phase);
  return place;
}

std::optional<double> AwaitedJudge::StepOfMost(const Members& members) {
  std::map<double, size_t> counts;
  for (const Member& member : members)
    if (member.process->step) ++counts[*member.process->step];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  return most == counts.end() ? std::nullopt : std::optional(most->first);
}

void AwaitedJudge::JudgeRole(Members& members, const Settings& settings) {
  std::ranges::stable_sort(members, std::ranges::greater(), &Member::still);
  const auto is_in_sync = [](const Member& member) { return member.process->phase == kSyncPhase; };
  Members waiting;
  Members awaited;
  for (const Member& member : members) {
    const bool is_waiting = is_in_sync(member) && !(settings.is_stopped && settings.is_stopped(*member.process));
    (is_waiting ? waiting : awaited).push_back(member);
  }
  if (waiting.empty() || waiting.front().still < settings.hang_after) return;
  const Milliseconds waited = waiting.front().still;
  std::optional<double> steps;
  if (awaited.empty()) {
    steps = StepOfMost(waiting);
    if (!steps) return;
    const auto is_apart = [&](const Member& member) { return member.process->step && *member.process->step != *steps; };
    std::ranges::copy_if(waiting, std::back_inserter(awaited), is_apart);
    std::erase_if(waiting, is_apart);
  }
  if (awaited.size() > kMostNamed) awaited.resize(kMostNamed);
  for (const Member& member : awaited) {
    const Process& process = *member.process;
    const bool is_stopped = settings.is_stopped && settings.is_stopped(process);
    verdicts_.push_back({.rank = RankProcessKeyOf(process),
                         .identity = process.identity,
                         .phase = is_stopped && is_in_sync(member) ? std::string(kStoppedPhase) : process.phase,
                         .is_stopped = is_stopped,
                         .in_phase = member.still,
                         .step = process.step,
                         .waited = waited,
                         .waiting = waiting.size(),
                         .steps = steps});
  }
}

std::string SentenceOf(const AwaitedJudge::Verdict& verdict) {
  std::string text = RankName(verdict.identity) + " hangs" + (verdict.is_stopped ? ": stopped by a signal " : " ") +
                     InPhase(verdict.phase == kStoppedPhase ? kSyncPhase : verdict.phase);
  if (verdict.step) text += " since step " + StepText(*verdict.step);
  text += ", " + DurationText(verdict.in_phase) + "; " + OthersWait(verdict.waiting) + " in sync";
  if (verdict.steps) text += " of step " + StepText(*verdict.steps);
  return text + kLookAt + LookAtHang(verdict.rank.second.pid, verdict.is_stopped);
}

}  // namespace persia::agent

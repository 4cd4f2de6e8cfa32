#include "health/death_recorder.h"

#include <algorithm>

#include "model/exit_reason.h"

namespace persia::agent {

std::vector<DeathRecorder::Told> DeathRecorder::Look(std::span<const ProcessEnd> ends, const Moment& moment) {
  std::vector<Told> told;
  if (!ends.empty() || !memory_.untold.empty()) ++changes_;
  const auto tell = [&](ProcessEnd end) {
    std::optional<Death> death;
    if (IsDeath(end.exit, end.ordinal, end.about.killed_for_memory)) death = DeathOf(end);
    if (death && IsConsequence(*death, end, moment.interruption)) death.reset();
    told.push_back({std::move(end), std::move(death)});
  };
  for (ProcessEnd& end : std::exchange(memory_.untold, {})) {
    end.exit = moment.exit_of ? moment.exit_of(end) : "";
    if (end.exit.empty()) end.exit = kUnknownEnd;
    tell(std::move(end));
  }
  for (const ProcessEnd& end : ends) {
    const bool waits = end.exit.empty() && moment.exit_of && !moment.is_last;
    if (waits && memory_.untold.size() < DeathMemory::kMaxUntold) {
      memory_.untold.push_back(end);
      continue;
    }
    ProcessEnd known = end;
    if (known.exit.empty()) known.exit = kUnknownEnd;
    tell(std::move(known));
  }
  std::ranges::stable_sort(told, {}, [](const Told& one) {
    return std::pair(one.death ? one.death->ended_at : one.end.ended_at, Precedence(one.end.exit));
  });
  KeepDeaths(told);
  return told;
}

// Those of the last Look may have ended later than some of these, whose reasons were not known then.
void DeathRecorder::KeepDeaths(std::span<const Told> told) {
  size_t deaths = 0;
  for (const auto& [end, death] : told) {
    if (!death) continue;
    ++memory_.totals[static_cast<size_t>(death->cause)];
    ++deaths;
    Keep(*death);
  }
  const size_t recent = std::min(std::exchange(told_before_, deaths) + deaths, memory_.deaths.size());
  std::ranges::stable_sort(std::span(memory_.deaths).last(recent), {},
                           [](const Death& death) { return std::pair(death.ended_at, Precedence(death.exit)); });
}

// If there are too many, drops first those of processes that their launcher ended, since another death is their cause, and then
// the oldest.
void DeathRecorder::Keep(Death death) {
  std::vector<Death>& deaths = memory_.deaths;
  deaths.push_back(std::move(death));
  if (deaths.size() <= DeathMemory::kMaxDeaths) return;
  auto victim = std::ranges::find(deaths, DeathCause::kLauncher, &Death::cause);
  if (victim == deaths.end()) victim = deaths.begin();
  deaths.erase(victim);
}

void DeathRecorder::SetKills(const std::map<std::string, uint64_t>& kills) {
  if (kills == memory_.kills) return;
  memory_.kills = kills;
  ++changes_;
}

void DeathRecorder::Restore(const DeathMemory& former) {
  const DeathMemory since = std::exchange(memory_, former);
  for (size_t i = 0; i < since.totals.size(); ++i) memory_.totals[i] += since.totals[i];
  for (const Death& death : since.deaths) Keep(death);
  for (const ProcessEnd& end : since.untold)
    if (memory_.untold.size() < DeathMemory::kMaxUntold) memory_.untold.push_back(end);
  for (const auto& [cgroup, kills] : since.kills) memory_.kills[cgroup] = kills;
  ++changes_;
}

}  // namespace persia::agent

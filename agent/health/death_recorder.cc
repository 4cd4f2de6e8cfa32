#include "health/death_recorder.h"

#include <algorithm>
#include <utility>

#include "health/deaths.h"
#include "model/ends.h"

namespace persia::agent {
namespace {

// Of processes that have ended, by their times.
std::pair<ProcessEnd::TimePoint, int> OrderOf(const Process& process) {
  return {process.end->at, Precedence(process.end->exit)};
}

}  // namespace

std::vector<Process> DeathRecorder::Look(std::vector<Process> ended, const Moment& moment) {
  if (!ended.empty() || !memory_.untold.empty()) ++changes_;
  std::vector<Process> told = std::exchange(memory_.untold, {});
  for (Process& process : told) process.end->exit = moment.exit_of ? moment.exit_of(process) : "";
  for (Process& process : ended) {
    const bool waits = process.end->exit.empty() && moment.exit_of && !moment.is_last;
    (waits && memory_.untold.size() < DeathMemory::kMaxUntold ? memory_.untold : told).push_back(std::move(process));
  }
  for (Process& process : told) {
    ProcessEnd& end = *process.end;
    if (end.exit.empty()) end.exit = kUnknownEnd;
    if (!IsDeath(end.exit, process.ordinal, end.about.killed_for_memory)) continue;
    if (Death death = DeathOf(process); !IsConsequence(death, process, moment.interruption))
      SetDeath(process, std::move(death));
  }
  std::ranges::stable_sort(told, {}, OrderOf);
  KeepDeaths(told);
  return told;
}

// Those of the last Look may have ended later than some of these, whose reasons were not known then.
void DeathRecorder::KeepDeaths(std::span<const Process> told) {
  size_t deaths = 0;
  for (const Process& process : told) {
    if (!process.end->death) continue;
    ++memory_.totals[static_cast<size_t>(process.end->death->cause)];
    ++deaths;
    Keep(process);
  }
  const size_t recent = std::min(std::exchange(told_before_, deaths) + deaths, memory_.deaths.size());
  std::ranges::stable_sort(std::span(memory_.deaths).last(recent), {}, OrderOf);
}

// If there are too many, drops first those of processes that their launcher ended, since another death is their cause, and then
// the oldest.
void DeathRecorder::Keep(Process dead) {
  std::vector<Process>& deaths = memory_.deaths;
  deaths.push_back(std::move(dead));
  if (deaths.size() <= DeathMemory::kMaxDeaths) return;
  auto victim = std::ranges::find(deaths, DeathCause::kLauncher, [](const Process& one) { return one.end->death->cause; });
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
  for (const Process& dead : since.deaths) Keep(dead);
  for (const Process& ended : since.untold)
    if (memory_.untold.size() < DeathMemory::kMaxUntold) memory_.untold.push_back(ended);
  for (const auto& [cgroup, kills] : since.kills) memory_.kills[cgroup] = kills;
  ++changes_;
}

}  // namespace persia::agent

#include "health/goodput.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "model/ends.h"

namespace persia::agent {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

// A process's start is known in ticks of 10 ms.
constexpr std::chrono::milliseconds kStartPrecision(20);

bool Marks(const Process& process) {
  const auto is_there = [](const auto& phase) { return phase.second > Nanoseconds(0); };
  return process.NumberedStep() || process.CountedSteps() > 0 || process.clocks_until ||
         std::ranges::any_of(process.phases, is_there);
}

bool Marks(const RankAccount::Life& life) { return life.marks || life.highest_step || life.counted > 0; }

bool TakesOver(const Process& process, const RankAccount& account, bool life_is_there, bool was_other_rank) {
  if (account.life.segment_id.empty()) return process.alive || process.began + kStartPrecision >= account.until;
  const bool has_ended = !account.Runs() || !life_is_there;
  if (was_other_rank) return has_ended;
  if (!account.IsAfterLife(process)) return false;
  if (Marks(process) && !Marks(account.life)) return true;
  return has_ended && (account.IsOfLife(process) || process.began + kStartPrecision >= account.life.ended);
}

// A restart of a role by its launcher.
struct Round {
  uint32_t restart_count = 0;
  Nanoseconds began = Nanoseconds::max();  // its first process
};

GoodputReport::Rank ReportOf(const RankId& key, const RankAccount& account) {
  GoodputReport::Rank rank{.rank = key,
                           .time = account.time,
                           .redone_steps = account.RedoneSteps(),
                           .restarts = account.restarts,
                           .repair = account.repair,
                           .marks = account.marks,
                           .step = account.highest};
  for (const auto& step : {account.reached, account.life.highest_step})
    if (step) rank.step = std::max(rank.step.value_or(0), *step);
  return rank;
}

}  // namespace

void Goodput::Look(std::span<const Process> processes, std::span<const Process> folded, std::span<const LateExit> exits,
                   const Moment& moment) {
  ByRank by_rank;
  std::map<std::string, Round> rounds;  // the last one with running processes, by role
  const auto add = [&](const Process& process) {
    const bool counts = !process.segment_id.empty() && process.rank.role != kLauncherRole;
    if (!counts || (process.forked && !process.NumberedStep())) return;
    by_rank[process.rank].push_back(&process);
    if (!process.alive) return;
    Round& round = rounds[process.rank.role];
    if (process.restart_count > round.restart_count) round = {.restart_count = process.restart_count};
    if (process.restart_count == round.restart_count) round.began = std::min(round.began, process.began);
  };
  std::ranges::for_each(processes, add);
  std::ranges::for_each(folded, add);
  const std::set<std::string> moved = ReleaseMoved(by_rank);
  for (auto& [rank, candidates] : by_rank) {
    auto known = accounts_.find(rank);
    if (known == accounts_.end()) {
      if (accounts_.size() >= kMaxRanks) continue;
      known = accounts_.emplace(rank, RankAccount()).first;
    }
    CountRank(known->second, candidates, moved, moment);
  }
  for (auto& [rank, account] : accounts_) {
    const auto told = std::ranges::find(exits, account.life.segment_id, &LateExit::segment_id);
    if (told != exits.end()) account.SetExit(told->exit);
    if (moment.over_at) account.SetExit(kUnknownEnd);  // nothing is missed any more
    if (account.life.ending != RankAccount::Ending::kFailed) continue;
    const Nanoseconds until = std::min(moment.now, moment.over_at.value_or(moment.now));
    const auto round = rounds.find(rank.role);
    if (round != rounds.end() && round->second.restart_count > account.life.restart_count)
      account.LeaveOut(std::min(until, round->second.began));
    else if (moment.over_at)
      account.LeaveOut(until);
    else
      account.Miss(until);
  }
}

std::set<std::string> Goodput::ReleaseMoved(const ByRank& processes) {
  std::map<std::string, const Process*> by_id;
  std::map<ProcessId, const Process*> last;  // program of each running process
  for (const auto& [rank, candidates] : processes) {
    for (const Process* process : candidates) {
      by_id.emplace(process->segment_id, process);
      if (!process->alive || !RankAccount::IsKnown(process->id)) continue;
      const Process*& known = last[process->id];
      if (known == nullptr || RankAccount::Order(*known) < RankAccount::Order(*process)) known = process;
    }
  }
  std::set<std::string> moved;
  for (auto& [rank, account] : accounts_) {
    if (account.life.segment_id.empty()) continue;
    const auto same = by_id.find(account.life.segment_id);
    const Process* now = same == by_id.end() ? nullptr : same->second;
    if (now == nullptr || (now->rank == rank && !now->alive)) {
      const auto later = last.find(account.life.id);
      if (later != last.end()) now = later->second;
    }
    if (now == nullptr || now->rank == rank) continue;
    account.Release();
    moved.insert(now->segment_id);
  }
  return moved;
}

void Goodput::CountRank(RankAccount& account, std::vector<const Process*>& candidates, const std::set<std::string>& moved,
                        const Moment& moment) {
  std::ranges::sort(candidates, {}, [](const Process* process) { return RankAccount::Order(*process); });
  const auto life = std::ranges::find(candidates, account.life.segment_id, &Process::segment_id);
  bool is_listed = life != candidates.end();
  bool is_there = is_listed && !((*life)->alive && (*life)->runs_other);
  for (const Process* process : candidates) {
    const bool was_other_rank = moved.contains(process->segment_id);
    if (process->segment_id == account.life.segment_id) {
      if (account.Runs()) account.Continue(*process, moment.now, moment.step);
    } else if (TakesOver(*process, account, is_there, was_other_rank)) {
      if (!is_listed && account.Runs()) account.Lose();
      account.Begin(*process, moment.now);
      // It has trained its steps up to now as another rank.
      if (const auto step = process->NumberedStep(); was_other_rank && step) {
        account.life.first_step = *step + 1;
        account.life.highest_step = step;
      }
      account.Continue(*process, moment.now, moment.step);
      is_listed = is_there = true;
    }
  }
}

void Goodput::Restore(RankAccounts accounts) {
  accounts_ = std::move(accounts);
  // The agent that could have learnt these exits has ended.
  for (auto& [rank, account] : accounts_)
    if (account.life.ending == RankAccount::Ending::kUntold) account.life.ending = RankAccount::Ending::kFailed;
  Saved();
}

void Goodput::Saved() {
  auto report = std::make_shared<GoodputReport>();
  report->ranks.reserve(accounts_.size());
  for (const auto& [rank, account] : accounts_) report->ranks.push_back(ReportOf(rank, account));
  report_ = std::move(report);
}

}  // namespace persia::agent

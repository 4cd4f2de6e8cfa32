#include "health/goodput.h"

#include <algorithm>
#include <utility>

namespace persia::agent {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

// A process's start is known in ticks of 10 ms.
constexpr std::chrono::milliseconds kStartPrecision(20);

bool Marks(const RankProcess& process) {
  const auto is_there = [](const auto& phase) { return phase.second > Nanoseconds(0); };
  return process.step || process.clocks_until || std::ranges::any_of(process.phases, is_there);
}

bool Marks(const RankAccount::Life& life) { return life.marks || life.highest_step; }

bool TakesOver(const RankProcess& process, const RankAccount& account, bool is_listed) {
  if (!account.IsAfterLife(process)) return false;
  if (Marks(process) && !Marks(account.life)) return true;
  const bool has_ended = !account.Runs() || !is_listed;
  return has_ended && process.began + kStartPrecision >= account.life.ended;
}

GoodputReport::Rank ReportOf(const RankKey& key, const RankAccount& account) {
  GoodputReport::Rank rank{.rank = key,
                           .time = account.time,
                           .redone_steps = account.redone_steps,
                           .restarts = account.restarts,
                           .repair = account.repair,
                           .marks = account.marks,
                           .step = account.reached};
  if (account.life.highest_step) rank.step = std::max(rank.step.value_or(0), *account.life.highest_step);
  return rank;
}

}  // namespace

void Goodput::Look(std::span<const RankProcess> processes, std::span<const LateExit> exits, const Moment& moment) {
  std::map<RankKey, std::vector<const RankProcess*>> by_rank;
  std::map<std::string, uint32_t> restart_counts;  // the highest one of the running processes, by role
  for (const RankProcess& process : processes) {
    if (process.forked && !process.step) continue;
    by_rank[process.rank].push_back(&process);
    if (!process.alive) continue;
    uint32_t& highest = restart_counts[process.rank.first];
    highest = std::max(highest, process.restart_count);
  }
  for (auto& [rank, candidates] : by_rank) {
    auto known = accounts_.find(rank);
    if (known == accounts_.end()) {
      if (accounts_.size() >= kMaxRanks) continue;
      known = accounts_.emplace(rank, RankAccount()).first;
    }
    RankAccount& account = known->second;
    std::ranges::sort(candidates, {}, [](const RankProcess* process) { return RankAccount::Order(*process); });
    const auto is_life = [&](const RankProcess* process) { return process->id == account.life.id; };
    bool is_listed = std::ranges::any_of(candidates, is_life);
    for (const RankProcess* process : candidates) {
      if (process->id == account.life.id) {
        if (account.Runs()) account.Continue(*process, moment.now, moment.step);
      } else if (account.life.id.empty() || TakesOver(*process, account, is_listed)) {
        if (!is_listed && account.Runs()) account.Lose();
        account.Begin(*process, moment.now);
        account.Continue(*process, moment.now, moment.step);
        is_listed = true;
      }
    }
  }
  for (auto& [rank, account] : accounts_) {
    const auto told = std::ranges::find(exits, account.life.id, &LateExit::id);
    if (told != exits.end()) account.SetExit(told->exit);
    const auto highest = restart_counts.find(rank.first);
    // The launcher has restarted the others without it: it is not missed, unless it comes later.
    const bool is_left_out = highest != restart_counts.end() && highest->second > account.life.restart_count;
    if (account.life.ending != RankAccount::Ending::kFailed || is_left_out) continue;
    account.Miss(std::min(moment.now, moment.over_at.value_or(moment.now)));
  }
}

void Goodput::Restore(RankAccounts accounts) {
  accounts_ = std::move(accounts);
  // The agent that could have learnt these exits has ended.
  for (auto& [rank, account] : accounts_) {
    if (account.life.ending == RankAccount::Ending::kUntold) account.life.ending = RankAccount::Ending::kFailed;
  }
  Saved();
}

void Goodput::Saved() {
  auto report = std::make_shared<GoodputReport>();
  report->ranks.reserve(accounts_.size());
  for (const auto& [rank, account] : accounts_) report->ranks.push_back(ReportOf(rank, account));
  report_ = std::move(report);
}

}  // namespace persia::agent

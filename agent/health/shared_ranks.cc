#include "health/shared_ranks.h"

#include <algorithm>
#include <utility>

namespace persia::agent {

std::vector<SharedRanks::Pair> SharedRanks::Look(std::span<const RankProcess> processes) {
  std::vector<Pair> pairs;
  std::map<std::string, Steps> steps;
  for (const RankProcess& process : processes) {
    if (!process.alive) continue;
    const double step = process.step.value_or(process.counted_steps);
    const auto before = steps_.find(process.id);
    Steps& now = steps[process.id] = {.step = step, .has_changed = before != steps_.end() && before->second.has_changed};
    if (before == steps_.end() || before->second.step == step) continue;
    std::string& trained = trained_[process.rank];
    const auto is_other = [&](const RankProcess& other) {
      // A process that links the library twice has two segments.
      const bool is_same = other.pid == process.pid && other.start_ticks == process.start_ticks;
      return other.alive && other.id == trained && other.rank == process.rank && !is_same;
    };
    const auto other = std::ranges::find_if(processes, is_other);
    if (now.has_changed && other != processes.end() && found_.insert(process.rank).second)
      pairs.push_back({process.rank, std::min(other->pid, process.pid), std::max(other->pid, process.pid)});
    trained = process.id;
    now.has_changed = true;
  }
  steps_ = std::move(steps);
  return pairs;
}

std::string SentenceOf(const SharedRanks::Pair& pair) {
  const auto& [role, replica] = pair.rank;
  return role + " rep_" + std::to_string(replica) + ": the processes " + std::to_string(pair.first_pid) + " and " +
         std::to_string(pair.second_pid) +
         " train at once under this name; their gauges replace each other, and goodput follows one of them. Give each rank its "
         "own REPLICA_INDEX or RANK (docs/ranks.md)";
}

}  // namespace persia::agent

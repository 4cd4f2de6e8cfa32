#include "health/rank.h"

#include <algorithm>
#include <utility>

namespace persia::agent {

std::vector<SharedRanks::Pair> SharedRanks::Look(std::span<const Process> processes) {
  std::vector<Pair> pairs;
  std::map<std::string, Steps> steps;
  for (const Process& process : processes) {
    if (!process.alive) continue;
    const double step = process.step.value_or(0);
    const auto before = steps_.find(process.segment_id);
    Steps& now =
        steps[process.segment_id] = {.step = step, .has_changed = before != steps_.end() && before->second.has_changed};
    if (before == steps_.end() || before->second.step == step) continue;
    std::string& trained = trained_[process.rank];
    const auto is_other = [&](const Process& other) {
      // A process that links the library twice has two segments.
      return other.alive && other.segment_id == trained && other.rank == process.rank && other.id != process.id;
    };
    const auto other = std::ranges::find_if(processes, is_other);
    if (now.has_changed && other != processes.end() && found_.insert(process.rank).second)
      pairs.push_back({process.rank, std::min(other->id.pid, process.id.pid), std::max(other->id.pid, process.id.pid)});
    trained = process.segment_id;
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

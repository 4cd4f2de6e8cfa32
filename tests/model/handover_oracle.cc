#include "handover_oracle.h"

namespace persia::agent::model {

size_t HandoverOracle::Start(const std::string& run, uint32_t identity) {
  workers_.push_back({.run = run, .identity = identity});
  return workers_.size() - 1;
}

bool HandoverOracle::AnyAlive(const std::string& run) const {
  for (const Worker& worker : workers_) {
    if (worker.alive && worker.run == run) return true;
  }
  return false;
}

HandoverOracle::Counts HandoverOracle::Now(const std::string& run) const {
  Counts counts;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].run == run) counts[i] = workers_[i].count;
  }
  return counts;
}

// A worker may have counted during the collection.
void HandoverOracle::Shown(const std::string& who, const std::string& run, const Counts& before, const Values& values) {
  Values least{};
  Values most{};
  for (const auto& [number, count] : before) least[workers_[number].identity] += count;
  for (const auto& [number, count] : Now(run)) most[workers_[number].identity] += count;
  for (uint32_t identity = 0; identity < kJobIdentities; ++identity) {
    const uint64_t value = values[identity];
    if (value >= least[identity] && value <= most[identity]) continue;
    Claim(who + " shows " + std::to_string(value) + " of identity " + std::to_string(identity) + ", not " +
          std::to_string(least[identity]) + " to " + std::to_string(most[identity]));
  }
}

void HandoverOracle::Pushed(const Counts& before) {
  for (const auto& [number, count] : before) workers_[number].pushed = count;
}

void HandoverOracle::RunEnds(const std::string& who, const std::string& run) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (worker.run != run) continue;
    worker.excused = worker.excused || worker.alive;
    if (worker.pushed == worker.count || worker.excused) continue;
    Claim(who + " ends the run, of whose worker " + std::to_string(i) + " " + std::to_string(worker.pushed) + " of " +
          std::to_string(worker.count) + " were pushed");
  }
}

void HandoverOracle::Wrote(const std::string& who, const AgentConf& conf) {
  const bool same = conf.run_id == conf_.run_id;
  if (!same && !conf_.run_id.empty() && !conf_.ended) Claim(who + " begins a run, although the one before has not ended");
  if (same && conf_.ended && !conf.ended) Claim(who + " goes on with a run that has ended");
  if (conf.ended && ++ends_[conf.run_id] > 1) Claim(who + " ends a run that has ended");
  conf_ = conf;
}

void HandoverOracle::Judge() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    if (!HasEnded(worker.run)) Claim("the run of worker " + std::to_string(i) + " has not ended");
    if (worker.pushed != worker.count && !worker.excused) {
      Claim("of worker " + std::to_string(i) + " " + std::to_string(worker.pushed) + " of " + std::to_string(worker.count) +
            " were pushed");
    }
  }
}

}  // namespace persia::agent::model

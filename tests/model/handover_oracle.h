// What the agents of a job may show and do: it knows each count, and who collects.
//
//   HandoverOracle oracle;
//   const size_t worker = oracle.Start(run_id, identity);
//   oracle.worker(worker).count += 3;
//   const auto before = oracle.Counts(run_id);
//   ... an agent collects
//   oracle.Shown("exec 1", run_id, before, values);
//   oracle.wrong()                                    // the first contradiction; empty: none
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "job/job_directory.h"

namespace persia::agent::model {

inline constexpr uint32_t kJobIdentities = 2;

class HandoverOracle {
 public:
  struct Worker {
    std::string run;
    uint32_t identity = 0;
    uint64_t count = 0;
    uint64_t pushed = 0;  // of its count, by the last push
    bool alive = true;
    bool excused = false;  // it outlived its run, or its supervisor was killed: its last counts may come too late for the run
  };
  // The counts of the workers, by number.
  using Counts = std::map<size_t, uint64_t>;
  using Values = std::array<uint64_t, kJobIdentities>;

  size_t Start(const std::string& run, uint32_t identity);
  Worker& worker(size_t number) { return workers_[number]; }
  [[nodiscard]] bool AnyAlive(const std::string& run) const;
  [[nodiscard]] bool HasEnded(const std::string& run) const { return ends_.contains(run); }

  // Of the workers of a run.
  [[nodiscard]] Counts Now(const std::string& run) const;
  // An agent's collection, which began with these counts.
  void Shown(const std::string& who, const std::string& run, const Counts& before, const Values& values);
  // Its push has arrived.
  void Pushed(const Counts& before);
  // An agent is about to end the run, and has ended it.
  void RunEnds(const std::string& who, const std::string& run);
  // An agent has written agent.conf.
  void Wrote(const std::string& who, const AgentConf& conf);
  // All is over.
  void Judge();

  void Claim(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  std::deque<Worker> workers_;
  AgentConf conf_;
  std::map<std::string, int> ends_;  // how often each run was ended
  std::string wrong_;
};

}  // namespace persia::agent::model

// Finds out whether another agent pushes the same groups to the same gateway, and stands aside if it is this one's turn.
//
// Two such agents replace each other's values at each push, and nobody sees it but as numbers that jump. What gives them away:
// a group that arrived with our last push has another owner before our next. Both say so; the one with the larger id adds a
// label `agent="<id>"` to its groups from then on, so that both are seen.
//
// For a look the gateway's whole page is read, and each agent of a job looks: a thousand agents would stop a gateway by looking
// alone. So a look that costs something is followed by a pause in which all agents may have their turn within a twentieth of
// the gateway's time, and the first look of a high replica comes later, as only a large job has one.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "sink/group_ledger.h"
#include "sink/group_owners.h"
#include "sink/push_result.h"
#include "sink/sink_log.h"

namespace persia::agent {

class OwnerWatch {
 public:
  struct Options {
    GroupLedger* ledger = nullptr;
    std::string gateway;  // its base URL
    std::function<Attempt(const std::string& job, Owners& owners)> read_owners;
    std::function<std::chrono::steady_clock::time_point()> now;
    SinkLog log;
    // It looks before the second push and the third, then after pauses that grow from the one to the other.
    std::chrono::milliseconds first_pause = std::chrono::seconds(10);
    std::chrono::milliseconds longest_pause = std::chrono::minutes(5);
    // All agents of the job together take at most one part in so many of the gateway's time.
    int64_t share = 20;
    // The first look of replica n is made within n * n times this: what n agents, with pages of n groups, may take.
    std::chrono::milliseconds spread = std::chrono::milliseconds(250);
    std::chrono::milliseconds longest_wait = std::chrono::hours(24);
  };

  explicit OwnerWatch(Options options) : options_(std::move(options)) {}

  // Before a push: looks, if it is time to. `former`: the groups that arrived with the last push.
  void Look(const std::set<Identity>& former);
  // Identities that another agent pushes too, as seen last.
  [[nodiscard]] size_t conflicts() const { return conflicts_; }

 private:
  [[nodiscard]] std::chrono::milliseconds FirstWait(const std::set<Identity>& former) const;
  void Conclude(const std::set<Identity>& former, const Owners& owners);

  const Options options_;
  uint64_t looks_ = 0;
  std::chrono::steady_clock::time_point next_look_{};
  std::chrono::milliseconds pause_{0};
  std::chrono::steady_clock::time_point not_before_{};  // for the gateway's sake
  int64_t agents_ = 1;                                  // of the job, as seen last
  bool spread_ = false;                                 // the first look has its time
  size_t conflicts_ = 0;
  std::string told_;  // the conflict that was reported
};

}  // namespace persia::agent

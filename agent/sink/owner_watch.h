// Finds out whether another agent pushes the same groups to the same gateway, and stands aside if it is this one's turn.
//
// Two such agents replace each other's values at each push, and nobody sees it but as numbers that jump. What gives them away:
// a group that arrived with our last push has another owner before our next. Both say so; the one with the larger id adds a
// label `agent="<id>"` to its groups from then on, so that both are seen.
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
  };

  explicit OwnerWatch(Options options) : options_(std::move(options)) {}

  // Before a push: looks, if it is time to. `former`: the groups that arrived with the last push.
  void Look(const std::set<Identity>& former);
  // Identities that another agent pushes too, as seen last.
  [[nodiscard]] size_t conflicts() const { return conflicts_; }

 private:
  void Conclude(const std::set<Identity>& former, const Owners& owners);

  const Options options_;
  uint64_t looks_ = 0;
  std::chrono::steady_clock::time_point next_look_{};
  std::chrono::milliseconds pause_{0};
  size_t conflicts_ = 0;
  std::string told_;  // the conflict that was reported
};

}  // namespace persia::agent

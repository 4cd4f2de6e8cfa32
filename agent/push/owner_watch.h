// Detects another agent that pushes the same groups to the same gateway.
//
// Two such agents replace each other's values at each push; the only symptom is values that jump. The agent detects it if a
// group that arrived with its last push has another owner before its next. Both agents log it; the one with the larger id adds
// a label `agent="<id>"` to its groups from then on, so that both are visible.
//
// For a check, an agent reads the gateway's whole page, and each agent of a job checks: a thousand agents would overload a
// gateway. So after a check that takes noticeable time, the agent waits: all agents together use at most a twentieth of the
// gateway's time. The first check of a high replica is delayed, since only a large job has one.
//
//   if (watch.IsDue(arrived, now)) { read the owners; watch.Update(arrived, owners, began, ended); }
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/backoff.h"
#include "push/group_ledger.h"
#include "push/group_owners.h"

namespace persia::agent {

class OwnerWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `gateway`: its base URL. `ledger` outlives it.
  OwnerWatch(GroupLedger& ledger, std::string gateway) : ledger_(ledger), gateway_(std::move(gateway)) {}

  // Before a push: whether to read the owners of its job. `arrived`: the groups that arrived with the last push.
  bool IsDue(const std::set<Identity>& arrived, TimePoint now);
  // The owners as they were read from `began` to `ended`; nothing if the gateway did not answer: pushes continue.
  void Update(const std::set<Identity>& arrived, const std::optional<Owners>& owners, TimePoint began, TimePoint ended);
  // Identities that another agent pushes too, as of the last check.
  [[nodiscard]] size_t conflicts() const { return conflicts_; }

 private:
  [[nodiscard]] std::chrono::milliseconds FirstWait(const std::set<Identity>& arrived) const;
  void CompareOwners(const std::set<Identity>& arrived, const Owners& owners);

  GroupLedger& ledger_;
  const std::string gateway_;
  uint64_t looks_ = 0;
  TimePoint next_look_{};
  // The first two checks are before the second and the third push, the others after pauses that grow.
  Backoff pause_{std::chrono::seconds(10), std::chrono::minutes(5)};
  TimePoint not_before_{};       // to limit the load on the gateway
  int64_t agents_ = 1;           // of the job, as of the last check
  bool first_look_set_ = false;  // FirstWait is in not_before_
  size_t conflicts_ = 0;
  std::string logged_;  // the last conflict
};

}  // namespace persia::agent

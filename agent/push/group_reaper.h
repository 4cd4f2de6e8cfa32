// Deletes the groups of the ledger that nothing pushes any more.
//
// Before it deletes a group, it reads from the gateway which agent pushed the group last, and to which address. A group that
// another agent has taken over belongs to that agent, and a group that appears under a former address of the present gateway is
// still pushed; both leave the ledger. If a gateway does not answer, or refuses to delete a group, the reaper retries with
// backoff. After a day of failures it gives the group up. Of several gateways, each one's reaper deletes the groups that are
// pinned to it, on any gateway.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "push/gateway_connection.h"
#include "push/group_ledger.h"
#include "push/group_pins.h"

namespace persia::agent {

class GroupReaper {
 public:
  // Both outlive it. `delete_absent`: groups of identities that left; groups under a former address are deleted in any case.
  GroupReaper(GatewayConnection& connection, GroupLedger& ledger, bool delete_absent)
      : connection_(connection), ledger_(ledger), delete_absent_(delete_absent) {}

  // After a push in which each of `present`, identities of the snapshot, has `arrived` or was refused: deletes groups of these
  // jobs that are no longer pushed, for at most `limit`. Returns how many.
  size_t DeleteAbsent(const GroupPins& pins, const std::set<std::string>& jobs, const std::set<Identity>& present,
                      const std::set<Identity>& arrived, std::chrono::milliseconds limit);
  // The job is over: deletes all its groups. An error says how many are left, and why.
  Status DeleteAll(const GroupPins& pins, const std::string& job, std::chrono::milliseconds limit, size_t& deleted);

 private:
  using Group = GroupLedger::Group;
  using TimePoint = GatewayConnection::TimePoint;

  struct Retry {
    TimePoint at{};
    Backoff backoff{std::chrono::seconds(5), std::chrono::minutes(10)};
  };
  struct Failure {
    TimePoint since;
    Retry retry{};  // of this group, which the gateway refused to delete
  };

  size_t Delete(const GroupPins& pins, const std::vector<Group>& groups, std::chrono::milliseconds limit, std::string& error);
  [[nodiscard]] bool IsDue(const Group& group) const;
  void Fail(const std::vector<Group>& groups, bool answers, const std::string& error);

  GatewayConnection& connection_;
  GroupLedger& ledger_;
  const bool delete_absent_;
  std::map<std::string, Retry> unreachable_;  // gateways
  std::map<Group, Failure> failures_;
};

}  // namespace persia::agent

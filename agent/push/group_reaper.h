// Deletes the groups of the ledger that nothing pushes any more.
//
// It does not ask the gateway who pushed a group last, since a PushGateway can only answer with its whole page: the grouping
// key is this agent's own (job/identity_claim.h). If a gateway does not answer, or refuses to delete a group, the reaper
// retries with backoff. After a day of failures it gives the group up.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/timing.h"
#include "push/gateway_connection.h"
#include "push/group_ledger.h"

namespace persia::agent {

class GroupReaper {
 public:
  // Both outlive it. `delete_absent`: groups of identities that left; groups under a former address are deleted in any case.
  GroupReaper(GatewayConnection& connection, GroupLedger& ledger, bool delete_absent)
      : connection_(connection), ledger_(ledger), delete_absent_(delete_absent) {}

  struct Deleted {
    size_t groups = 0;
    // The identities of those that were deleted at another address than the present one, whose gateway may be the same.
    std::set<Identity> elsewhere{};
  };

  // After a push in which each of `present`, identities of the snapshot, has `arrived` or was refused: deletes groups of these
  // jobs that are no longer pushed, for at most `limit`.
  Deleted DeleteAbsent(const std::set<std::string>& jobs, const std::set<Identity>& present, const std::set<Identity>& arrived,
                       std::chrono::milliseconds limit);
  // The job is over: deletes all its groups. An error says how many are left, and why.
  Status DeleteAll(const std::string& job, std::chrono::milliseconds limit, size_t& deleted);

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

  Deleted Delete(const std::vector<Group>& groups, std::chrono::milliseconds limit, std::string& error);
  [[nodiscard]] bool IsDue(const Group& group) const;
  void Fail(const std::vector<Group>& groups, bool answers, const std::string& error);

  GatewayConnection& connection_;
  GroupLedger& ledger_;
  const bool delete_absent_;
  std::map<std::string, Retry> unreachable_;  // gateways
  std::map<Group, Failure> failures_;
};

}  // namespace persia::agent

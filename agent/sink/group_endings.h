// Ends, by DELETE, the groups of the ledger that nothing pushes any more.
//
// Before it ends a group it looks who pushed it last, and to which address: one that another agent has taken over is that
// agent's, and one that shows under a former address of the present gateway is not over; both leave the ledger. A gateway that
// does not answer is asked again after pauses that grow; a group that it does not let go is tried again by itself, and keeps no
// other. What could not be ended for a day is given up.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sink/group_ledger.h"
#include "sink/group_owners.h"
#include "sink/push_result.h"
#include "sink/sink_log.h"

namespace persia::agent {

class GroupEndings {
 public:
  using Group = GroupLedger::Group;

  struct Options {
    GroupLedger* ledger = nullptr;
    std::string gateway;     // the base URL of the configured one
    bool end_absent = true;  // groups of identities that left; others end whatever this says
    // Whether a group is this gateway's to look after, on whichever gateway it is: of several gateways one is its own.
    std::function<bool(const Identity&)> takes;
    std::function<Attempt(const std::string& url, std::chrono::milliseconds timeout)> send_delete;
    // Who owns the groups of a job on a gateway; none if it does not say.
    std::function<Attempt(const std::string& gateway, const std::string& job, std::chrono::milliseconds timeout,
                          Owners& owners)>
        read_owners;
    std::function<std::chrono::steady_clock::time_point()> now;
    SinkLog log;
    std::chrono::milliseconds first_pause = std::chrono::seconds(5);
    std::chrono::milliseconds longest_pause = std::chrono::minutes(10);
    std::chrono::milliseconds give_up_after = std::chrono::hours(24);
  };

  explicit GroupEndings(Options options) : options_(std::move(options)), present_hash_(GatewayHash(options_.gateway)) {}

  // After a push in which each of `present`, a snapshot's identities, has `arrived` or was refused: ends what is left of these
  // jobs, for at most `limit`. Returns how many groups.
  size_t EndLeft(const std::set<std::string>& jobs, const std::set<Identity>& present, const std::set<Identity>& arrived,
                 std::chrono::milliseconds limit);
  // The job is over: ends all its groups. An error says how many are left, and why.
  Status EndAll(const std::string& job, std::chrono::milliseconds limit, size_t& ended);

 private:
  struct Retry {
    std::chrono::steady_clock::time_point at{};
    std::chrono::milliseconds pause{0};
  };
  struct Trouble {
    std::chrono::steady_clock::time_point since;
    Retry retry{};  // of this group, that was refused
  };

  size_t End(const std::vector<Group>& groups, std::chrono::milliseconds limit, std::string& error);
  [[nodiscard]] bool IsDue(const Group& group) const;
  void Fail(const std::vector<Group>& groups, bool answers, const std::string& error);

  const Options options_;
  const std::string present_hash_;       // of the configured gateway's URL
  std::map<std::string, Retry> silent_;  // gateways
  std::map<Group, Trouble> troubles_;    // groups that could not be ended when it was tried
};

}  // namespace persia::agent

// Assigns each group to one of the gateways, by rendezvous hashing.
//
// Each pair of a group and a gateway has a weight, a hash of both; the group belongs to the gateway with the largest. So all
// agents agree, even if the order of their lists differs. A gateway that is added takes an equal share from each other one.
// When a gateway is removed, only its own groups move. The hash is the same in each release. A process that restarts under
// another address stays on its gateway.
//
//   const GroupPins pins({"http://gateway-0:9091", "http://gateway-1:9091"});
//   pins.GatewayOf(identity) == "http://gateway-1:9091"
//
// Thread safety: immutable.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

// Without the labels that may change while it is the same process: its address, and `agent`.
Identity StableIdentity(Identity identity);

class GroupPins {
 public:
  // By their base URLs. REQUIRES: at least one.
  explicit GroupPins(std::vector<std::string> gateways);

  [[nodiscard]] const std::string& GatewayOf(const Identity& identity) const;
  [[nodiscard]] const std::vector<std::string>& gateways() const { return gateways_; }

 private:
  std::vector<std::string> gateways_;  // sorted, so that equal weights do not depend on the list
  std::vector<uint64_t> hashes_;
};

}  // namespace persia::agent

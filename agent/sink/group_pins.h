// Which of several gateways a group belongs to.
//
// Each pair of a group and a gateway has a weight, a hash of both, and the group belongs where that is largest. So all agents
// agree without a word, whatever the order of their lists; a gateway that is added takes its share evenly from the others, and
// one that is removed gives only its own away. The hash is the same in each release. The group stands for whoever it is of: a
// process that comes back under another address stays on its gateway.
//
//   const GroupPins pins({"http://gateway-0:9091", "http://gateway-1:9091"});
//   pins.Of(identity) == "http://gateway-1:9091"
//
// Thread safety: a value that does not change.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

// Who it is, wherever it runs: its address, and the label of an agent that stands aside, tell the same process apart.
Identity Whoever(Identity identity);

class GroupPins {
 public:
  // By their base URLs. REQUIRES: at least one.
  explicit GroupPins(std::vector<std::string> gateways);

  [[nodiscard]] const std::string& Of(const Identity& identity) const;
  [[nodiscard]] const std::vector<std::string>& gateways() const { return gateways_; }

 private:
  std::vector<std::string> gateways_;  // in their order, so that equal weights are no question of the list's
  std::vector<uint64_t> hashes_;
};

}  // namespace persia::agent

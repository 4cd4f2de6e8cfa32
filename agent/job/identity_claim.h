// Claims an agent's identity in its network namespace, so that no two agents send the same series to one place.
//
// The claim is a bound socket with an abstract name, which is a hash of the identity and the place: binding is atomic, and the
// kernel releases the name when the process ends, however it ends. An identity has the agent's address. If the network does not
// translate addresses, two agents with one address are in one network namespace, so that a claim there is enough.
//
//   IdentityClaim claim;
//   if (!claim.Take(identity, "metrics_gateway:9091", kPatience)) ... another agent holds the identity: add a label to it
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/owned_fd.h"
#include "model/snapshot.h"

namespace persia::agent {

class IdentityClaim {
 public:
  // Claims this identity at `place`, the outputs as configured, and releases the former claim. False: another process has held
  // it for all of `patience`, and the former claim stays. (A killed agent holds its claim for a moment longer.) True also if
  // the system permits no such socket: other agents cannot be detected.
  bool Take(const Identity& identity, std::string_view place, std::chrono::milliseconds patience);

 private:
  std::string name_;
  OwnedFd socket_;
};

}  // namespace persia::agent

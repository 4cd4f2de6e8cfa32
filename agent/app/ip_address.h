// Which of this host's addresses its peers see.
#pragma once

#include <cstdint>
#include <string>

namespace persia::agent {

// The address from which this host would reach `host`:`port`: the routing table is asked, nothing is sent. A name is looked up,
// which can take as long as the resolver wants. If it is unknown: the address on the default route, else that of an interface
// that is not loopback, else 127.0.0.1.
std::string AddressTowards(const std::string& host, uint16_t port);

}  // namespace persia::agent

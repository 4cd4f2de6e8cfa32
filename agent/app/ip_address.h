// Which of this host's addresses its peers see.
#pragma once

#include <cstdint>
#include <string>

namespace persia::agent {

// The address from which this host would reach `host`:`port`: the routing table is asked, nothing is sent. A name is looked up,
// which can take as long as the resolver wants. 127.0.0.1 if there is no answer.
std::string AddressTowards(const std::string& host, uint16_t port);

}  // namespace persia::agent

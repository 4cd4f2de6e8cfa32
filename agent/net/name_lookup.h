// The addresses of a name, and this host's own address.
//
// Thread safety: any function, from any thread. A name lookup takes as long as the resolver does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace persia::agent {

// The IPv4 and IPv6 addresses of `host`, sorted and unique. Those of a family without a route from this host are left out,
// unless there are no others. An error names the host.
Result<std::vector<std::string>> LookUpAll(const std::string& host);

// The address of this host that its peers see: the source address of packets to `host`:`port`, according to the routing table.
// If there is no route: the source address on the default route, else that of an interface that is not loopback, else
// 127.0.0.1.
std::string AddressTowards(const std::string& host, uint16_t port);

// The names of this host: its host name and, if the resolver knows it, its fully qualified one.
std::vector<std::string> OwnNames();

}  // namespace persia::agent

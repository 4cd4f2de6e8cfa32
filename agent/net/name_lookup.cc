#include "net/name_lookup.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace persia::agent {
namespace {

// Connecting a datagram socket sends nothing: the routing table is asked.
bool HasRoute(const addrinfo& peer) {
  const int fd = socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool connected = connect(fd, peer.ai_addr, peer.ai_addrlen) == 0;
  close(fd);
  return connected;
}

void SortOnce(std::vector<std::string>& addresses) {
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
}

}  // namespace

Result<std::vector<std::string>> LookUpAll(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  // Any port: that of a datagram socket must not be 0.
  if (const int failed = getaddrinfo(host.c_str(), "9091", &hints, &list); failed != 0) {
    return Error{"cannot look up \"" + host + "\": " + (failed == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(failed))};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  std::vector<std::string> all;
  std::vector<std::string> reachable;
  for (const addrinfo* peer = list; peer != nullptr; peer = peer->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(peer->ai_addr, peer->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const std::string address = text;
    if (address.find('%') != std::string::npos) continue;  // of this link only: no gateway of a job
    all.push_back(address);
    if (HasRoute(*peer)) reachable.push_back(address);
  }
  if (all.empty()) return Error{"cannot look up \"" + host + "\": it has no address"};
  std::vector<std::string>& addresses = reachable.empty() ? all : reachable;
  SortOnce(addresses);
  return std::move(addresses);
}

}  // namespace persia::agent

#include "net/name_lookup.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <optional>
#include <utility>

#include "base/owned_fd.h"

namespace persia::agent {
namespace {

constexpr char kAnyPort[] = "9091";  // a datagram socket cannot connect to port 0
// An address for documentation: a host with a default route has a route to it.
constexpr char kRemoteAddress[] = "192.0.2.1";

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Returns what getaddrinfo returns.
int LookUp(const std::string& host, const std::string& port, int socket_type, AddressList& list) {
  addrinfo hints{};
  hints.ai_socktype = socket_type;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  list.reset(found);
  return error;
}

// Null for a link-local address with a scope, which has no meaning on other hosts.
std::optional<std::string> AddressText(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return std::nullopt;
  std::string result = text;
  return result.find('%') == std::string::npos ? std::optional(std::move(result)) : std::nullopt;
}

// This host's address on the route to the peer; null without a route. Connecting a datagram socket sends nothing.
std::optional<std::string> SourceAddress(const addrinfo& peer) {
  const OwnedFd fd(socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char text[NI_MAXHOST];
  if (!fd.valid() || connect(fd.get(), peer.ai_addr, peer.ai_addrlen) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return std::nullopt;
  return text;
}

std::optional<std::string> SourceAddress(const std::string& host, uint16_t port) {
  AddressList list(nullptr, &freeaddrinfo);
  LookUp(host, std::to_string(port), SOCK_DGRAM, list);
  for (const addrinfo* peer = list.get(); peer != nullptr; peer = peer->ai_next)
    if (auto address = SourceAddress(*peer)) return address;
  return std::nullopt;
}

// Of the first interface that is up and not loopback, IPv4 before IPv6.
std::optional<std::string> InterfaceAddress() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      const bool usable = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
      if (!usable || each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
      if (auto text = AddressText(each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6))) return text;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::string>> LookUpAll(const std::string& host) {
  const std::string what = "cannot look up \"" + host + '"';
  AddressList list(nullptr, &freeaddrinfo);
  if (const int error = LookUp(host, kAnyPort, SOCK_STREAM, list); error != 0)
    return error == EAI_SYSTEM ? SystemError(what) : Error{what + ": " + gai_strerror(error)};
  std::vector<std::string> all;
  std::vector<std::string> reachable;
  for (const addrinfo* peer = list.get(); peer != nullptr; peer = peer->ai_next) {
    const auto address = AddressText(peer->ai_addr, peer->ai_addrlen);
    if (!address) continue;
    all.push_back(*address);
    if (SourceAddress(*peer)) reachable.push_back(*address);
  }
  if (all.empty()) return Error{what + ": it has no address"};
  std::vector<std::string>& addresses = reachable.empty() ? all : reachable;
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return std::move(addresses);
}

std::string AddressTowards(const std::string& host, uint16_t port) {
  auto address = SourceAddress(host, port);
  if (!address) address = SourceAddress(kRemoteAddress, port);
  if (!address) address = InterfaceAddress();
  return address.value_or("127.0.0.1");
}

std::vector<std::string> OwnNames() {
  char name[HOST_NAME_MAX + 1]{};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return {};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_CANONNAME;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name, nullptr, &hints, &found);
  const AddressList list(found, &freeaddrinfo);
  if (error != 0 || found->ai_canonname == nullptr) return {name};
  return {name, found->ai_canonname};
}

}  // namespace persia::agent

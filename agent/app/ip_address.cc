#include "app/ip_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string_view>

#include "app/job_directory.h"

namespace persia::agent {
namespace {

// An address of documentation: a host with a default route has a route to it.
constexpr char kFarAway[] = "192.0.2.1";
constexpr char kNowhere[] = "127.0.0.1";

std::optional<std::string> OwnAddress(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) {
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  for (const addrinfo* peer = list; peer != nullptr; peer = peer->ai_next) {
    // Connecting a datagram socket only fixes its route.
    const OwnedFd fd(socket(peer->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char text[NI_MAXHOST];
    if (fd.valid() && connect(fd.get(), peer->ai_addr, peer->ai_addrlen) == 0 &&
        getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
      return text;
    }
  }
  return std::nullopt;
}

// The address of the first interface that is up and not loopback; an IPv4 address before an IPv6 one.
std::optional<std::string> AddressOfAnInterface() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      const bool usable = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
      if (!usable || each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
      const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      char text[NI_MAXHOST];
      if (getnameinfo(each->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
      if (std::string_view(text).find('%') == std::string_view::npos) return text;  // not of this link only
    }
  }
  return std::nullopt;
}

}  // namespace

std::string AddressTowards(const std::string& host, uint16_t port) {
  auto address = OwnAddress(host, port);
  if (!address) address = OwnAddress(kFarAway, port);
  if (!address) address = AddressOfAnInterface();
  return address.value_or(kNowhere);
}

}  // namespace persia::agent

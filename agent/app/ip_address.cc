#include "app/ip_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <optional>

#include "app/job_directory.h"

namespace persia::agent {
namespace {

// An address that stands for any in documentation: whoever has a default route has a route to it.
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

}  // namespace

std::string AddressTowards(const std::string& host, uint16_t port) {
  auto address = OwnAddress(host, port);
  if (!address) {
    address = OwnAddress(kFarAway, port);
  }
  return address.value_or(kNowhere);
}

}  // namespace persia::agent

#include "net/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <charconv>
#include <system_error>

#include "base/owned_fd.h"

namespace persia::agent {
namespace {

// A socket's address, of either family.
union SocketAddress {
  explicit SocketAddress(const ListenAddress& address) : v6{} {
    if (address.IsIpv6()) {
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(address.port);
      inet_pton(AF_INET6, address.ip.c_str(), &v6.sin6_addr);
    } else {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(address.port);
      inet_pton(AF_INET, address.ip.c_str(), &v4.sin_addr);
    }
  }
  [[nodiscard]] socklen_t Size() const { return any.sa_family == AF_INET6 ? sizeof v6 : sizeof v4; }

  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

}  // namespace

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  const Error not_an_address{
      "is not an IP address and a port (127.0.0.1:19091; [::1]:19091; :19091 for all IPv4 addresses; port 0 for any free one)"};
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return not_an_address;
  ListenAddress address;
  std::string_view ip = text.substr(0, colon);
  const bool is_ipv6 = ip.size() > 2 && ip.front() == '[' && ip.back() == ']';
  if (is_ipv6) ip = ip.substr(1, ip.size() - 2);
  address.ip = ip.empty() ? "0.0.0.0" : ip == "localhost" ? "127.0.0.1" : ip;
  in6_addr parsed;
  if (inet_pton(is_ipv6 ? AF_INET6 : AF_INET, address.ip.c_str(), &parsed) != 1) return not_an_address;
  const char* const end = text.data() + text.size();
  const auto [parsed_end, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc() || parsed_end != end) return not_an_address;
  return address;
}

int BindError(const ListenAddress& address) {
  const SocketAddress wanted(address);
  const OwnedFd fd(socket(wanted.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  const bool bound = fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                     bind(fd.get(), &wanted.any, wanted.Size()) == 0;
  return bound ? 0 : errno;
}

void WakeListener(const ListenAddress& address) {
  SocketAddress to(address);
  const OwnedFd fd(socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (address.ip == "0.0.0.0") to.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (address.ip == "::") to.v6.sin6_addr = in6addr_loopback;
  if (fd.valid()) static_cast<void>(connect(fd.get(), &to.any, to.Size()));
}

}  // namespace persia::agent

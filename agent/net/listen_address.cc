#include "net/listen_address.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <system_error>

#include "base/owned_fd.h"

namespace persia::agent {

sockaddr_in ListenAddress::Socket() const {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, ip.c_str(), &address.sin_addr);
  return address;
}

Result<ListenAddress> ParseListenAddress(const std::string& text) {
  const auto refuse = [&](const std::string& why) { return Error{"listen address \"" + text + "\": " + why}; };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return refuse("no port; give address:port, for example 127.0.0.1:9464");
  ListenAddress address;
  address.ip = text.substr(0, colon);
  if (address.ip.find(':') != std::string::npos) {
    return refuse("IPv6 is not supported by this system's civetweb; give an IPv4 address");
  }
  if (address.ip.empty()) address.ip = "0.0.0.0";
  if (address.ip == "localhost") address.ip = "127.0.0.1";
  in_addr ipv4;
  if (inet_pton(AF_INET, address.ip.c_str(), &ipv4) != 1) return refuse("\"" + address.ip + "\" is not an IPv4 address");
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc() || parsed != end) {
    return refuse("port \"" + text.substr(colon + 1) + "\" is not a number from 0 to 65535");
  }
  return address;
}

int BindError(const ListenAddress& address) {
  const OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  const sockaddr_in wanted = address.Socket();
  const bool bound = fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                     bind(fd.get(), reinterpret_cast<const sockaddr*>(&wanted), sizeof wanted) == 0;
  return bound ? 0 : errno;
}

void WakeListener(const ListenAddress& address) {
  const OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in to = address.Socket();
  if (to.sin_addr.s_addr == htonl(INADDR_ANY)) to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd.valid()) static_cast<void>(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

}  // namespace persia::agent

#include "app/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>

#include "app/text.h"

namespace persia::agent {
namespace {

bool IsPort(std::string_view text, bool zero_allowed) {
  uint32_t port = 0;
  return !text.empty() && text.size() <= 5 && ParseNumber(text, port) && port <= 65535 && (port > 0 || zero_allowed);
}

bool IsHost(std::string_view host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    return std::all_of(host.begin() + 1, host.end() - 1,
                       [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.'; });
  }
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == '.' || c == '-'; });
}

}  // namespace

Status CheckGatewayAddress(std::string_view text) {
  constexpr std::string_view kAllowed = "(host:port, or http://host:port/prefix, or https://host:port/prefix)";
  if (text.find('@') != std::string_view::npos) {
    // Not quoted: it may hold a password.
    return Error{"an address with a user or a password in it is not supported " + std::string(kAllowed)};
  }
  std::string_view rest = text;
  const size_t scheme = rest.find("://");
  if (scheme != std::string_view::npos) {
    if (rest.substr(0, scheme) != "http" && rest.substr(0, scheme) != "https") {
      return Bad(text, "has an unknown scheme " + std::string(kAllowed));
    }
    rest.remove_prefix(scheme + 3);
  }
  const std::string_view authority = rest.substr(0, rest.find('/'));
  const std::string_view path = rest.substr(authority.size());
  const bool bad_path = std::any_of(path.begin(), path.end(), [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f || c == '?' || c == '#';
  });
  if (bad_path || (scheme == std::string_view::npos && !path.empty())) {
    return Bad(text, "is not a gateway's address " + std::string(kAllowed));
  }
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon == std::string_view::npos && scheme == std::string_view::npos && IsHost(authority)) {
    return Bad(text, "has no port " + std::string(kAllowed));
  }
  if (!IsHost(authority.substr(0, colon)) ||
      (colon != std::string_view::npos && !IsPort(authority.substr(colon + 1), /*zero_allowed=*/false))) {
    return Bad(text, "is not a gateway's address " + std::string(kAllowed));
  }
  return Done{};
}

Status CheckListenAddress(std::string_view text) {
  if (text.find('[') != std::string_view::npos || std::count(text.begin(), text.end(), ':') > 1) {
    return Bad(text, "is an IPv6 address, which the web server in this build cannot serve (127.0.0.1:19091, 0.0.0.0:19091, off)");
  }
  const size_t colon = text.find(':');
  in_addr parsed{};
  if (colon == std::string_view::npos || !IsPort(text.substr(colon + 1), /*zero_allowed=*/true) ||
      inet_pton(AF_INET, std::string(text.substr(0, colon)).c_str(), &parsed) != 1) {
    return Bad(text, "is not an IPv4 address and a port (127.0.0.1:19091, 0.0.0.0:19091, port 0 for any free one, off)");
  }
  return Done{};
}

}  // namespace persia::agent

#include "net/gateway_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>
#include <utility>

namespace persia::agent {
namespace {

constexpr uint16_t kGatewayPort = 9091;

bool IsAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool IsHostName(std::string_view text) {
  // Host names have no underscore by their RFC, but compose files name a service `metrics_gateway`.
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsAlnum(c) || c == '-' || c == '.' || c == '_'; });
}

bool IsIpv6(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool IsPath(std::string_view text) {
  static constexpr std::string_view kOthers = "/-._~%!$&'()*+,;=:";
  return std::all_of(text.begin(), text.end(), [](char c) { return IsAlnum(c) || kOthers.find(c) != std::string_view::npos; });
}

}  // namespace

Result<GatewayAddress> GatewayAddress::Parse(std::string_view text) {
  // The text before an `@` may be a password and must not be in the error.
  if (const size_t at = text.rfind('@'); at != std::string_view::npos) {
    return Error{
        "gateway address \"***" + std::string(text.substr(at)) +
        "\": must not contain a user and password, since an address is shown in logs and process lists; give gateway_username "
        "and gateway_password_file instead"};
  }
  // So may a query.
  const size_t secret = text.find_first_of("?#");
  const std::string shown =
      std::string(text.substr(0, secret)) + (secret == std::string_view::npos ? "" : text[secret] + std::string("..."));
  const auto refuse = [&shown](const std::string& why) { return Error{"gateway address \"" + shown + "\": " + why}; };
  if (text.empty()) return refuse("it is empty; give host:port, for example metrics_gateway:9091");

  GatewayAddress address;
  address.scheme_ = "http";
  address.port_ = kGatewayPort;
  std::string_view rest = text;
  if (const size_t colon = text.find("://"); colon != std::string_view::npos) {
    address.scheme_ = text.substr(0, colon);
    std::transform(address.scheme_.begin(), address.scheme_.end(), address.scheme_.begin(),
                   [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    if (address.scheme_ != "http" && address.scheme_ != "https") {
      return refuse("unknown scheme \"" + std::string(text.substr(0, colon)) + "\" (http, https)");
    }
    address.port_ = address.scheme_ == "http" ? 80 : 443;
    rest = text.substr(colon + 3);
  }
  if (rest.find_first_of("?#") != std::string_view::npos) return refuse("must not have a query or fragment");

  const std::string_view authority = rest.substr(0, rest.find('/'));
  std::string_view path = rest.substr(authority.size());
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!IsPath(path))
    return refuse("the path prefix \"" + std::string(path) + "\" has a character that must be percent-encoded");
  address.path_prefix_ = path;

  std::string_view port;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse("the bracket of the IPv6 address is not closed");
    address.host_ = authority.substr(1, end - 1);
    if (!IsIpv6(address.host_)) return refuse("\"" + address.host_ + "\" is not an IPv6 address");
    const std::string_view after = authority.substr(end + 1);
    has_port = !after.empty();
    if (has_port && after.front() != ':') return refuse("only :port may follow the bracket");
    if (has_port) port = after.substr(1);
  } else {
    const size_t colon = authority.find(':');
    if (colon != authority.rfind(':')) return refuse("an IPv6 address needs brackets, for example [::1]:9091");
    address.host_ = authority.substr(0, colon);
    if (address.host_.empty()) return refuse("the host is missing; give host:port, for example metrics_gateway:9091");
    if (!IsHostName(address.host_)) return refuse("\"" + address.host_ + "\" is not a host name (letters, digits, - . _)");
    has_port = colon != std::string_view::npos;
    if (has_port) port = authority.substr(colon + 1);
  }
  if (has_port) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port_);
    if (error != std::errc() || end != port.data() + port.size() || address.port_ == 0) {
      return refuse("port \"" + std::string(port) + "\" is not a number from 1 to 65535");
    }
  }
  return address;
}

GatewayAddress GatewayAddress::WithHost(std::string address) const {
  GatewayAddress other = *this;
  other.host_ = std::move(address);
  return other;
}

std::string GatewayAddress::Url() const { return scheme_ + "://" + HostAndPort() + path_prefix_; }

std::string GatewayAddress::HostAndPort() const {
  const bool is_ipv6 = host_.find(':') != std::string::npos;
  return (is_ipv6 ? '[' + host_ + ']' : host_) + ':' + std::to_string(port_);
}

bool GatewayAddress::IsLoopback() const {
  in_addr ipv4;
  return host_ == "localhost" || host_ == "::1" || (host_.starts_with("127.") && inet_pton(AF_INET, host_.c_str(), &ipv4) == 1);
}

}  // namespace persia::agent

#include "net/gateway_address.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/text.h"
#include "net/url.h"

namespace persia::agent {
namespace {

constexpr uint16_t kGatewayPort = 9091;

// Groups are appended to the path, and libcurl sends it as it is.
bool IsPath(std::string_view text) {
  static constexpr std::string_view kOthers = "/-._~%!$&'()*+;=:";
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLetter(c) || IsDigit(c) || kOthers.find(c) != std::string_view::npos; });
}

// libcurl also accepts names in other alphabets.
bool IsHost(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.' || c == ':'; });
}

}  // namespace

Result<GatewayAddress> GatewayAddress::Parse(std::string_view text) {
  const auto refuse = [text](const std::string& why) {
    return Error{"gateway address \"" + ShownAddress(text) + "\": " + why};
  };
  if (text.find('@') != std::string_view::npos) {
    return refuse(
        "must not contain a user and password, since an address is shown in logs and process lists; give gateway_username "
        "and gateway_password_file instead");
  }
  if (text.find_first_of("?#") != std::string_view::npos) return refuse("must not have a query or fragment");
  if (text.empty()) return refuse("it is empty; give host:port, for example metrics_gateway:9091");
  if (text.find(',') != std::string_view::npos) {
    return refuse(
        "it is a list, and an agent pushes to one gateway; give one address, and other agents another one (a comma in "
        "a path is %2C)");
  }
  if (text.starts_with("dns+")) {
    return refuse(
        "dns+ stands for each address of a name, and an agent pushes to one gateway; leave dns+ out, or give one "
        "address, and other agents another one");
  }
  const bool has_scheme = text.find("://") != std::string_view::npos;
  const auto url = Url::Parse(has_scheme ? std::string(text) : "http://" + std::string(text));
  if (!url.ok()) return refuse(url.error());
  if (!IsHost(url.value().host())) return refuse("the host is not a name (letters, digits, - . _)");
  std::string_view path = url.value().path();
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!IsPath(path)) {
    return refuse("the path prefix \"" + std::string(path) + "\" has a character that must be percent-encoded");
  }
  GatewayAddress address;
  address.scheme_ = url.value().scheme();
  address.host_ = url.value().host();
  address.port_ = has_scheme ? url.value().PortOrDefault() : url.value().port().value_or(kGatewayPort);
  address.path_prefix_ = path;
  return address;
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

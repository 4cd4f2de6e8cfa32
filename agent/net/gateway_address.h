// Where a PushGateway listens, as PERSIA_METRICS_GATEWAY_ADDR and the config give it.
//
// Thread safety: a value.
//
//   Result<GatewayAddress> address = GatewayAddress::Parse("metrics_gateway:9091");
//   client.Send({.method = "PUT", .url = address.value().Url() + GroupingKeyPath(identity), ...});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/result.h"

namespace persia::agent {

class GatewayAddress {
 public:
  // Takes `host`, `host:port`, `[ipv6]:port`, each also with a path prefix, or a URL of scheme http or https. A missing port is
  // the gateway's own 9091 without a scheme; a URL means what it means everywhere, 80 or 443. User and password are refused: an
  // address ends up in logs, in labels and in `ps`.
  static Result<GatewayAddress> Parse(std::string_view text);

  [[nodiscard]] const std::string& scheme() const { return scheme_; }
  // Without brackets.
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] uint16_t port() const { return port_; }
  // Empty, or "/prefix" without a slash at its end.
  [[nodiscard]] const std::string& path_prefix() const { return path_prefix_; }

  // The same but for the host, which is an IPv4 or IPv6 address.
  [[nodiscard]] GatewayAddress WithHost(std::string address) const;

  // "http://host:port/prefix": a gateway's path is appended to it.
  [[nodiscard]] std::string Url() const;
  // "host:port", for logs and for the label `gateway`.
  [[nodiscard]] std::string HostAndPort() const;
  // Whether the name says that the peer is on this host: localhost, 127.0.0.0/8, ::1.
  [[nodiscard]] bool IsLoopback() const;

 private:
  std::string scheme_;
  std::string host_;
  uint16_t port_ = 0;
  std::string path_prefix_;
};

}  // namespace persia::agent

// The address of a PushGateway, from PERSIA_METRICS_GATEWAY_ADDR or the config.
//
// Thread safety: a value.
//
//   Result<GatewayAddress> address = GatewayAddress::Parse("metrics_gateway:9091");
//   client.Send({.method = "PUT", .url = address.value().Url() + GroupingKeyPath(identity), ...});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

class GatewayAddress {
 public:
  // Accepts `host`, `host:port` and `[ipv6]:port`, each with or without a path prefix, and http and https URLs. Without a
  // scheme the default port is the gateway's own 9091; with one it is 80 or 443. User and password are refused, since an
  // address is shown in logs, labels and `ps`; so is a list, since an agent has one gateway.
  static Result<GatewayAddress> Parse(std::string_view text);

  [[nodiscard]] const std::string& scheme() const { return scheme_; }
  // Without brackets.
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] uint16_t port() const { return port_; }
  // Empty, or "/prefix" without a slash at its end.
  [[nodiscard]] const std::string& path_prefix() const { return path_prefix_; }

  // "http://host:port/prefix", to which paths are appended.
  [[nodiscard]] std::string Url() const;
  // "host:port", for logs and for the label `gateway`.
  [[nodiscard]] std::string HostAndPort() const;
  // Whether the host is localhost, in 127.0.0.0/8, or ::1.
  [[nodiscard]] bool IsLoopback() const;

 private:
  std::string scheme_;
  std::string host_;
  uint16_t port_ = 0;
  std::string path_prefix_;
};

}  // namespace persia::agent

// An absolute http or https URL, parsed by libcurl: every part of the agent reads and shows an address in the same way.
//
//   Result<Url> url = Url::Parse("http://alice:secret@db:8428/api/v1/write?token=secret");
//   url.value().HostAndPort();   // "db:8428"
//   url.value().Shown();         // "http://db:8428/api/v1/write?..."
//
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace persia::agent {

class Url {
 public:
  static constexpr std::string_view kHttp[] = {"http", "https"};
  // `schemes`: those allowed. An error is a clause about the text, which it does not quote: "the port is not a number from 1 to
  // 65535".
  static Result<Url> Parse(std::string_view text, std::span<const std::string_view> schemes = kHttp);

  // In lower case.
  [[nodiscard]] const std::string& scheme() const { return scheme_; }
  // Without the brackets of an IPv6 address. An IPv4 address has four decimal parts, even if it was written in another form.
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] bool IsIpv6() const { return host_.find(':') != std::string::npos; }
  // Null if the text has none.
  [[nodiscard]] std::optional<uint16_t> port() const { return port_; }
  // That of the scheme if the text has none.
  [[nodiscard]] uint16_t PortOrDefault() const { return port_.value_or(scheme_ == "https" ? 443 : 80); }
  // As written; "/" if the text has none.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool has_user() const { return has_user_; }  // or a password
  [[nodiscard]] bool has_query() const { return has_query_; }
  [[nodiscard]] bool has_fragment() const { return has_fragment_; }

  // What a peer may repeat of a secret query: the query, and the value of each parameter, as written and decoded.
  [[nodiscard]] std::vector<std::string> QuerySecrets() const;
  // The same of user and password: the password, and both as a peer gets them by basic authorization.
  [[nodiscard]] std::vector<std::string> UserSecrets() const;

  // "host:port" or "[::1]:port"; without the port if the text has none.
  [[nodiscard]] std::string HostAndPort() const;
  // "scheme://host:port", always with the port.
  [[nodiscard]] std::string Origin() const;
  // For people: without user, password, query and fragment, which may be secret. "?..." marks a query.
  [[nodiscard]] std::string Shown() const;

 private:
  std::string scheme_;
  std::string host_;
  std::optional<uint16_t> port_;
  std::string path_;
  bool has_user_ = false;
  std::string user_;      // as written
  std::string password_;  // as written
  bool has_query_ = false;
  std::string query_;  // as written
  bool has_fragment_ = false;
};

// For errors about an address, with or without a scheme, valid or not: the text, or what Url::Shown leaves of it. Text of which
// it is not clear what may be secret becomes "***".
std::string ShownAddress(std::string_view text);

// The address of a PushGateway, from PERSIA_METRICS_GATEWAY_ADDR or the config.
//
// Thread safety: a value.
//
//   Result<GatewayAddress> address = GatewayAddress::Parse("metrics_gateway:9091");
//   client.Send({.method = "PUT", .url = address.value().Url() + GroupingKeyPath(identity), ...});
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

// For redirects.

// `to`, if it is a URL on the host of `from`, and not of http after https; else empty.
std::string OnSameHost(const std::string& from, const std::string& to);
bool IsSamePort(const std::string& a, const std::string& b);
// Scheme, host and port, without the rest, which may hold secrets; empty if it is no URL.
std::string OriginOf(const std::string& url);

// The proxy for HTTP requests to a server: that of the settings, or the one that the environment names.

// As HttpClient::Options has it.
struct Proxy {
  std::string url{};  // empty: none
  std::string no_proxy{};
};

struct ProxySettings {
  std::string url{};              // ParseProxyUrl; empty: none, unless the environment names one and `from_environment`
  std::string no_proxy{};         // hosts that are reached without it
  bool from_environment = false;  // FindProxy

  bool operator==(const ProxySettings&) const = default;
};

// `variable` returns the value of an environment variable.
using ProxyVariable = std::function<std::optional<std::string>(const char* name)>;

Proxy ProxyFor(const ProxySettings& settings, bool for_https, const ProxyVariable& variable);

// The proxy of the environment, as Go's programs find it: HTTPS_PROXY or HTTP_PROXY, and NO_PROXY, in upper or lower case.
// Loopback is reached without a proxy.
Proxy FindProxy(bool for_https, const ProxyVariable& variable);

// A proxy's URL: http, https, socks5 or socks5h; without a scheme http, as in libcurl and Go. The path has no meaning.
Result<Url> ParseProxyUrl(std::string_view text);

// The URL of a proxy as libcurl wants it: with SOCKS 5 the proxy looks names up, as in Go.
std::string ProxyForCurl(const std::string& url);

// A list of hosts without a proxy as libcurl wants it, for a request to this port. As in Go, an entry may have a port, begin
// with `*.` or be `*`, and an IPv6 address may have brackets.
std::string NoProxyForCurl(std::string_view list, uint16_t port);

}  // namespace persia::agent

// The proxy for HTTP requests to a server: that of the settings, or the one that the environment names.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/url.h"

namespace persia::agent {

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

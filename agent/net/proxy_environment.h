// The proxy that the environment names for HTTP requests, as Go's programs find it: HTTPS_PROXY or HTTP_PROXY, and NO_PROXY, in
// upper or lower case. Loopback is reached without a proxy.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/url.h"

namespace persia::agent {

struct ProxyOfEnvironment {
  std::string url{};       // empty: none
  std::string no_proxy{};  // as HttpClient::Options has it
};

// `variable` returns the value of an environment variable.
ProxyOfEnvironment FindProxy(bool for_https, const std::function<std::optional<std::string>(const char* name)>& variable);

// A proxy's URL: http, https, socks5 or socks5h; without a scheme http, as in libcurl and Go. The path has no meaning.
Result<Url> ParseProxyUrl(std::string_view text);

// The URL of a proxy as libcurl wants it: with SOCKS 5 the proxy looks names up, as in Go.
std::string ProxyForCurl(const std::string& url);

}  // namespace persia::agent

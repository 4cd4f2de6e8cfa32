#include "net/proxy_environment.h"

namespace persia::agent {

Proxy ProxyFor(const ProxySettings& settings, bool for_https, const ProxyVariable& variable) {
  if (settings.from_environment) return FindProxy(for_https, variable);
  return {.url = ProxyForCurl(settings.url), .no_proxy = settings.no_proxy};
}

Proxy FindProxy(bool for_https, const ProxyVariable& variable) {
  const auto first = [&](const char* upper, const char* lower) {
    auto value = variable(upper);
    return value && !value->empty() ? *value : variable(lower).value_or("");
  };
  Proxy proxy;
  proxy.url = for_https ? first("HTTPS_PROXY", "https_proxy") : first("HTTP_PROXY", "http_proxy");
  if (proxy.url.empty()) return proxy;
  proxy.url = ProxyForCurl(proxy.url);
  const std::string except = first("NO_PROXY", "no_proxy");
  // libcurl takes "*" only alone.
  proxy.no_proxy = except == "*" ? except : "localhost,127.0.0.0/8,::1" + (except.empty() ? "" : "," + except);
  return proxy;
}

Result<Url> ParseProxyUrl(std::string_view text) {
  static constexpr std::string_view kSchemes[] = {"http", "https", "socks5", "socks5h"};
  const bool has_scheme = text.find("://") != std::string_view::npos;
  return Url::Parse(has_scheme ? std::string(text) : "http://" + std::string(text), kSchemes);
}

std::string ProxyForCurl(const std::string& url) {
  constexpr std::string_view kSocks = "socks5://";
  return url.starts_with(kSocks) ? "socks5h://" + url.substr(kSocks.size()) : url;
}

}  // namespace persia::agent

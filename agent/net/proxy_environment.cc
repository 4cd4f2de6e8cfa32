#include "net/proxy_environment.h"

#include <algorithm>

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

std::string NoProxyForCurl(std::string_view list, uint16_t port) {
  std::string out;
  while (!list.empty()) {
    std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    entry = entry.substr(0, entry.find_last_not_of(' ') + 1);
    if (entry == "*") return "*";
    if (entry.starts_with("*.")) entry.remove_prefix(1);
    // The last colon, unless it is within an IPv6 address.
    const size_t colon = entry.rfind(':');
    if (colon != std::string_view::npos && (entry.find(':') == colon || (colon > 0 && entry[colon - 1] == ']'))) {
      if (entry.substr(colon + 1) != std::to_string(port)) continue;
      entry = entry.substr(0, colon);
    }
    if (entry.starts_with('[') && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
    if (!entry.empty()) out.append(out.empty() ? "" : ",").append(entry);
  }
  return out;
}

std::string ProxyForCurl(const std::string& url) {
  constexpr std::string_view kSocks = "socks5://";
  return url.starts_with(kSocks) ? "socks5h://" + url.substr(kSocks.size()) : url;
}

}  // namespace persia::agent

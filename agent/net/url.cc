#include "net/url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "base/text.h"

namespace persia::agent {
namespace {

struct Deleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using CurlUrl = std::unique_ptr<CURLU, Deleter>;

// Null if the URL has no such part.
std::optional<std::string> PartOf(const CurlUrl& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, 0) != CURLUE_OK) return std::nullopt;
  std::string copy = text;
  curl_free(text);
  return copy;
}

// Percent-decoded. As it is if there is no memory.
std::string Decoded(const std::string& text) {
  int length = 0;
  char* const decoded = curl_easy_unescape(nullptr, text.c_str(), static_cast<int>(text.size()), &length);
  if (decoded == nullptr) return text;
  std::string copy(decoded, static_cast<size_t>(length));
  curl_free(decoded);
  return copy;
}

std::string CommaSeparatedSchemes(std::span<const std::string_view> schemes) {
  std::string text;
  for (const std::string_view scheme : schemes) text += (text.empty() ? "" : ", ") + std::string(scheme);
  return text;
}

std::string Why(CURLUcode code, std::span<const std::string_view> schemes) {
  switch (code) {
    case CURLUE_BAD_PORT_NUMBER:
      return "the port is not a number from 1 to 65535; an IPv6 address needs brackets, for example [::1]:9091";
    case CURLUE_BAD_IPV6:
      return "the text in brackets is not an IPv6 address";
    case CURLUE_BAD_HOSTNAME:
      return "the host is not a name (letters, digits, - . _)";
    case CURLUE_NO_HOST:
      return "the host is missing";
    case CURLUE_UNSUPPORTED_SCHEME:
    case CURLUE_BAD_SCHEME:
      return "the scheme is unknown (" + CommaSeparatedSchemes(schemes) + ")";
    case CURLUE_BAD_PATH:
    case CURLUE_MALFORMED_INPUT:
      return "it has a character that must be percent-encoded";
    default:
      return std::string("libcurl cannot parse it: ") + curl_url_strerror(code);
  }
}

constexpr uint16_t kGatewayPort = 9091;

// Groups are appended to the path, and libcurl sends it as it is.
bool IsPath(std::string_view text) {
  static constexpr std::string_view kOthers = "/-._~%!$&'()*+;=:";
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLetter(c) || IsDigit(c) || kOthers.find(c) != std::string_view::npos; });
}

// libcurl also accepts names in other alphabets.
bool IsHost(std::string_view text) {
  return std::all_of(
      text.begin(), text.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.' || c == ':'; });
}

}  // namespace

Result<Url> Url::Parse(std::string_view text, std::span<const std::string_view> schemes) {
  const auto why = [schemes](CURLUcode code) { return Error{Why(code, schemes)}; };
  const CurlUrl curl(curl_url());
  if (curl == nullptr) return Error{"no memory to parse it"};
  // libcurl's releases refuse them for different reasons.
  if (std::ranges::any_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7f; }))
    return Error{"it has a space or a control character; leave it out, or percent-encode it in the path"};
  // libcurl would take "http:///path" for the host "path", and the empty port of "http://host:" for none.
  const size_t slashes = text.find("//");
  if (slashes == std::string_view::npos) return why(CURLUE_BAD_SCHEME);
  const std::string_view rest = text.substr(slashes + 2);
  const std::string_view host_and_port = rest.substr(0, rest.find_first_of("/?#"));
  if (host_and_port.empty()) return why(CURLUE_NO_HOST);
  if (host_and_port.ends_with(':')) return why(CURLUE_BAD_PORT_NUMBER);
  // Also of schemes that this libcurl cannot fetch, such as those of proxies.
  const CURLUcode code =
      curl_url_set(curl.get(), CURLUPART_URL, std::string(text).c_str(), CURLU_PATH_AS_IS | CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) return why(code);
  Url url;
  url.scheme_ = PartOf(curl, CURLUPART_SCHEME).value_or("");
  if (std::ranges::find(schemes, url.scheme_) == schemes.end()) return why(CURLUE_UNSUPPORTED_SCHEME);
  url.host_ = PartOf(curl, CURLUPART_HOST).value_or("");
  if (url.host_.starts_with('[')) url.host_ = url.host_.substr(1, url.host_.size() - 2);
  if (url.host_.empty()) return why(CURLUE_NO_HOST);
  if (const auto port = PartOf(curl, CURLUPART_PORT)) {
    uint16_t number = 0;
    if (!ParseNumber(std::string_view(*port), number) || number == 0) return why(CURLUE_BAD_PORT_NUMBER);
    url.port_ = number;
  }
  url.path_ = PartOf(curl, CURLUPART_PATH).value_or("/");
  const auto user = PartOf(curl, CURLUPART_USER);
  const auto password = PartOf(curl, CURLUPART_PASSWORD);
  url.has_user_ = user || password;
  url.user_ = user.value_or("");
  url.password_ = password.value_or("");
  const auto query = PartOf(curl, CURLUPART_QUERY);
  url.has_query_ = query.has_value();
  url.query_ = query.value_or("");
  url.has_fragment_ = PartOf(curl, CURLUPART_FRAGMENT).has_value();
  return url;
}

std::vector<std::string> Url::QuerySecrets() const {
  if (query_.empty()) return {};
  std::vector<std::string> secrets = {query_};
  for (std::string_view rest = query_; !rest.empty();) {
    const std::string_view parameter = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), parameter.size() + 1));
    const std::string value(parameter.substr(parameter.find('=') + 1));  // all of it without '='
    secrets.push_back(value);
    secrets.push_back(Decoded(value));
  }
  return secrets;
}

std::vector<std::string> Url::UserSecrets() const {
  if (!has_user_) return {};
  const std::string user = Decoded(user_);
  const std::string password = Decoded(password_);
  return {Base64Encode(user + ":" + password), user_ + ":" + password_, user + ":" + password, password_, password};
}

std::string Url::HostAndPort() const {
  return (IsIpv6() ? '[' + host_ + ']' : host_) + (port_ ? ':' + std::to_string(*port_) : "");
}

std::string Url::Origin() const {
  return scheme_ + "://" + (IsIpv6() ? '[' + host_ + ']' : host_) + ':' + std::to_string(PortOrDefault());
}

std::string Url::Shown() const { return scheme_ + "://" + HostAndPort() + path_ + (has_query_ ? "?..." : ""); }

std::string ShownAddress(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  if (text.find_first_of("@?#") == std::string_view::npos) return std::string(text);
  const bool has_scheme = text.find("://") != std::string_view::npos;
  const auto url = Url::Parse(has_scheme ? std::string(text) : std::string(kScheme) + std::string(text));
  // In "user:1?word@host" libcurl sees no user, but it was meant to have one.
  if (!url.ok() || (!url.value().has_user() && text.find('@') != std::string_view::npos)) return "***";
  return url.value().Shown().substr(has_scheme ? 0 : kScheme.size());
}

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
  if (!IsPath(path))
    return refuse("the path prefix \"" + std::string(path) + "\" has a character that must be percent-encoded");
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

std::string OnSameHost(const std::string& from, const std::string& to) {
  const auto before = Url::Parse(from);
  const auto after = Url::Parse(to);
  if (!before.ok() || !after.ok() || strcasecmp(after.value().host().c_str(), before.value().host().c_str()) != 0) return "";
  return after.value().scheme() == before.value().scheme() || after.value().scheme() == "https" ? to : "";
}

bool IsSamePort(const std::string& a, const std::string& b) {
  const auto first = Url::Parse(a);
  const auto second = Url::Parse(b);
  return first.ok() && second.ok() && first.value().PortOrDefault() == second.value().PortOrDefault();
}

std::string OriginOf(const std::string& url) {
  constexpr size_t kMaxBytes = 8 + 255 + 6;  // of a longer one the host is no name
  const auto parsed = Url::Parse(url);
  return parsed.ok() ? parsed.value().Origin().substr(0, kMaxBytes) : "";
}

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

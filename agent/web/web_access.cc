#include "web/web_access.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "net/name_lookup.h"
#include "net/password_check.h"
#include "net/url.h"

namespace persia::agent {

Status WebAccess::Open() {
  const MutexLock lock(mutex_);
  const Result<std::string> text = file_.Read();
  if (!text.ok()) return Error{text.error()};
  const WebConfig config = ParseWebConfig(file_.path(), text.value());
  if (!config.errors.empty()) return Error{config.errors.front()};
  text_ = text.value();
  tls_ = config.tls;
  if (!config.users.empty()) SetUsers(config.users);
  return Done{};
}

std::optional<ServerResponse> WebAccess::Refuse(const ServerRequest& request) {
  const std::shared_ptr<PasswordCheck> check = Current();
  if (check == nullptr) return std::nullopt;
  const auto given = ParseBasicAuthorization(request.Header("Authorization"));
  switch (given ? check->Check(given->user, given->password) : PasswordCheck::Verdict::kWrong) {
    case PasswordCheck::Verdict::kRight:
      return std::nullopt;
    case PasswordCheck::Verdict::kBusy:
      return ServerResponse{
          .status = 429, .body = "Too many passwords are being checked; try again.\n", .headers = {{"Retry-After", "2"}}};
    case PasswordCheck::Verdict::kWrong:
      break;
  }
  return ServerResponse{.status = 401,
                        .body = "Unauthorized\n",
                        .headers = {{"WWW-Authenticate", "Basic realm=\"persia-metrics-agent\", charset=\"UTF-8\""}}};
}

bool WebAccess::IsProtected() {
  const MutexLock lock(mutex_);
  return tls_.has_value() || check_ != nullptr;
}

std::shared_ptr<PasswordCheck> WebAccess::Current() {
  const MutexLock lock(mutex_);
  const Result<std::string> text = file_.Read();
  if (text.ok() && text.value() != text_) {
    text_ = text.value();
    error_ = Apply(text_);
  }
  const std::string& error = text.ok() ? error_ : text.error();
  if (error.empty())
    log_.Recovered("web_config_file \"" + file_.path() + "\" is valid again and in use");
  else
    log_.Bad(error, error + "; the users stay as they were");
  return check_;
}

void WebAccess::SetUsers(const Users& users) {
  users_ = users;
  check_ = std::make_shared<PasswordCheck>(users);
}

// Returns the error of a text that is not applied.
std::string WebAccess::Apply(const std::string& text) {
  // TLS keeps its files of startup. If they are missing now, a user must still lose access at once.
  const WebConfig config = ParseWebConfig(file_.path(), text, TlsFiles::kLeave);
  if (!config.errors.empty()) return config.errors.front();
  // The file may be half written: its users must not disappear.
  if (config.users.empty() && !users_.empty())
    return "web_config_file \"" + file_.path() + "\" names no users any more; restart the agent to allow everyone";
  if (config.tls != tls_)
    LogWarning("web.config", "tls_server_config in \"" + file_.path() + "\" has changed; restart the agent to apply it");
  if (config.users != users_) {
    SetUsers(config.users);
    LogInfo("web.config", "web_config_file \"" + file_.path() + "\" has changed: its users are in use now");
  }
  return "";
}

namespace {

constexpr std::string_view kForPrograms[] = {"/metrics", "/-/healthy", "/-/ready"};
// Not delegated in the public DNS: RFC 6761, 6762, 8375, and ICANN's reservation of .internal.
constexpr std::string_view kPrivateDomains[] = {".localhost", ".local", ".internal", ".home.arpa"};
// Sent by browsers but not by scrapers. A script can avoid most of them.
constexpr const char* kHeadersOfBrowsers[] = {
    "sec-fetch-site", "sec-fetch-mode",  "sec-fetch-dest", "origin",
    "referer",        "accept-language", "cookie",         "upgrade-insecure-requests",
    "range"};

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The value of the header, null if it is missing.
std::optional<std::string_view> Find(const ServerRequest& request, std::string_view name) {
  for (const auto& [key, value] : request.headers)
    if (Lower(key) == name) return value;
  return std::nullopt;
}

// In lower case, without the dot that ends a fully qualified name.
std::string Canonical(std::string host) {
  if (host.ends_with('.')) host.pop_back();
  return Lower(std::move(host));
}

// Null if the text is not `host` or `host:port`.
std::optional<std::string> ParseHost(std::string_view text) {
  const auto url = Url::Parse("http://" + std::string(text));
  if (!url.ok() || url.value().has_user() || text.find_first_of("/?#") != std::string_view::npos) return std::nullopt;
  const std::string& host = url.value().host();
  const bool is_name = std::ranges::all_of(host, [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.'; });
  if (!is_name && !url.value().IsIpv6()) return std::nullopt;
  return Canonical(host);
}

// Browsers write an address with four decimal parts, and no top-level domain is a number.
bool IsAddress(std::string_view host) {
  return host.find(':') != std::string_view::npos || std::ranges::all_of(
                                                         host, [](char c) { return IsDigit(c) || c == '.'; });
}

bool IsBrowser(const ServerRequest& request) {
  return Lower(request.HeaderList("Accept-Encoding")).find("deflate") != std::string::npos ||
         request.Header("User-Agent").starts_with("Mozilla/") ||
         std::ranges::any_of(
             kHeadersOfBrowsers, [&](const char* name) { return Find(request, name).has_value(); });
}

bool IsExternal(const std::string& host, const std::vector<std::string>& external_hosts) {
  return std::ranges::any_of(
      external_hosts,
      [&](const std::string& external) { return external.starts_with('.') ? host.ends_with(external) : host == external; });
}

ServerResponse Misdirected(std::string_view host) {
  LogWarning("web.host", "refused a request for host " + Quoted(host) +
                             ": a page of another site may have sent it. If this is a name of the agent, add it to "
                             "web_external_host");
  return ServerResponse{
      .status = 421,
      .body = "The agent does not answer for host " + Quoted(host) +
              ": a page of another site may have sent this request. If this is a name of the agent, add it to "
              "the setting web_external_host.\n"};
}

bool Reads(const ServerRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

bool IsOfThisSite(const ServerRequest& request, const std::vector<std::string>& external_hosts) {
  if (const auto site = Find(request, "sec-fetch-site")) return *site == "same-origin" || *site == "none";
  if (!Find(request, "origin")) return true;
  const auto url = Url::Parse(request.HeaderList("origin"));  // several are no URL
  if (!url.ok()) return false;
  if (IsExternal(Canonical(url.value().host()), external_hosts)) return true;
  // Without the scheme: a proxy may add TLS.
  return Lower(url.value().HostAndPort()) == Lower(std::string(request.Header("Host")));
}

}  // namespace

HostGuard::HostGuard(std::function<std::vector<std::string>()> own_names)
    : look_up_(own_names ? std::move(own_names) : [] { return OwnNames(); }) {}

std::optional<ServerResponse> HostGuard::RefuseHost(const ServerRequest& request,
                                                    const std::vector<std::string>& external_hosts) {
  const auto is_host = [](const auto& header) { return Lower(header.first) == "host"; };
  if (std::ranges::count_if(request.headers, is_host) > 1)
    return ServerResponse{.status = 400, .body = "The request has two Host headers.\n"};
  const std::string_view text = request.Header("Host");
  if (text.empty()) return std::nullopt;
  const auto host = ParseHost(text);
  if (!host) return ServerResponse{.status = 400, .body = "The Host header " + Quoted(text) + " is not host:port.\n"};
  if (IsSafe(*host, external_hosts)) return std::nullopt;
  const bool for_programs = std::ranges::find(kForPrograms, request.path) != std::end(kForPrograms);
  if (for_programs && Reads(request) && !IsBrowser(request)) return std::nullopt;
  return Misdirected(text);
}

bool HostGuard::IsSafe(const std::string& host, const std::vector<std::string>& external_hosts) {
  const auto is_below = [&](std::string_view domain) { return host.ends_with(domain); };
  return IsAddress(host) || host.find('.') == std::string::npos || std::ranges::any_of(kPrivateDomains, is_below) ||
         IsExternal(host, external_hosts) || IsOwnName(host);
}

// While one thread looks them up, which may take as long as the resolver does, the others know none.
bool HostGuard::IsOwnName(const std::string& host) {
  if (!asked_.exchange(true)) {
    std::vector<std::string> names = look_up_();
    for (std::string& name : names) name = Canonical(std::move(name));
    const MutexLock lock(mutex_);
    own_names_ = std::move(names);
  }
  const MutexLock lock(mutex_);
  return std::ranges::find(own_names_, host) != own_names_.end();
}

std::optional<ServerResponse> RefuseOrigin(const ServerRequest& request, const std::vector<std::string>& external_hosts) {
  if (Reads(request) || IsOfThisSite(request, external_hosts)) return std::nullopt;
  const std::string origin = Quoted(request.Header("Origin"));
  LogWarning("web.origin", "refused a " + request.method + " of " + Quoted(request.path) +
                               " by a page of another site, origin " + origin +
                               ". If the agent's page has this origin, add its host to web_external_host");
  return ServerResponse{.status = 403,
                        .body = "A page of another site sent this request, origin " + origin +
                                ". If the agent's page has this origin, add its host to the setting web_external_host.\n"};
}

}  // namespace persia::agent

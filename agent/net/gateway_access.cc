#include "net/gateway_access.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace persia::agent {
namespace {

// A peer may return the secret from before a file changed; older ones have expired.
constexpr size_t kSecretsKept = 32;
constexpr size_t kMinHiddenBytes = 4;

// The secret as is, in JSON, in HTML, and in a URL: a proxy's error page may quote a header in any of them.
std::vector<std::string> Forms(const std::string& secret) {
  std::string json;
  std::string html;
  for (const char c : secret) {
    json += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    html += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return {secret, json, html, PercentEncode(secret)};
}

std::optional<WatchedFile> Watch(const char* what, const std::string& path) {
  return path.empty() ? std::nullopt : std::optional<WatchedFile>(std::in_place, what, path);
}

Status ReadInto(std::optional<WatchedFile>& file, std::string& into) {
  if (!file) return Done{};
  Result<std::string> content = file->Read();
  if (!content.ok()) return Error{content.error()};
  into = std::move(content).value();
  return Done{};
}

}  // namespace

GatewayAccess::GatewayAccess(GatewayAccessOptions options)
    : options_(std::move(options)),
      ca_(Watch("CA file", options_.ca_file)),
      cert_(Watch("client certificate", options_.cert_file)),
      key_(Watch("client key", options_.key_file)),
      username_(Watch("file of the user name", options_.username_file)),
      password_(Watch("password file", options_.password_file)),
      token_(Watch("bearer token file", options_.bearer_token_file)) {}

Result<GatewayAccess::Credentials> GatewayAccess::Read() {
  Credentials now{.ca = options_.ca, .cert = options_.cert, .key = options_.key, .authorization = {}};
  for (Status status : {ReadInto(ca_, now.ca), ReadInto(cert_, now.cert), ReadInto(key_, now.key)})
    if (!status.ok()) return Error{status.error()};
  if (now.key.find("ENCRYPTED") != std::string::npos) {
    return Error{"client key" + (key_ ? " \"" + options_.key_file + "\"" : "") +
                 ": is encrypted; give one without a passphrase"};
  }
  if (Status status = ReadAuthorization(now); !status.ok()) return Error{status.error()};
  return now;
}

Status GatewayAccess::ReadAuthorization(Credentials& now) {
  const bool bearer = token_ || !options_.bearer_token.empty();
  std::string secret = bearer ? options_.bearer_token : options_.password;
  std::optional<WatchedFile>& file = bearer ? token_ : password_;
  if (file) {
    Result<std::string> line = file->ReadLine();
    if (!line.ok()) return Error{line.error()};
    secret = std::move(line).value();
  }
  if (bearer) {
    now.authorization = options_.token_type + " " + secret;
  } else if (!options_.username.empty() || username_) {
    std::string username = options_.username;
    if (username_) {
      Result<std::string> line = username_->ReadLine();
      if (!line.ok()) return Error{line.error()};
      username = std::move(line).value();
    }
    const std::string pair = Base64Encode(username + ":" + secret);
    now.authorization = "Basic " + pair;
    Remember(pair);
  }
  Remember(secret);
  return Done{};
}

void GatewayAccess::Remember(const std::string& secret) {
  for (std::string& form : Forms(secret))
    if (!form.empty() && std::find(secrets_.begin(), secrets_.end(), form) == secrets_.end())
      secrets_.insert(secrets_.begin(), std::move(form));
  secrets_.resize(std::min(secrets_.size(), kSecretsKept));
}

void GatewayAccess::Hide(const std::string& secret) {
  if (secret.size() < kMinHiddenBytes) return;
  for (std::string& form : Forms(secret))
    if (std::find(hidden_.begin(), hidden_.end(), form) == hidden_.end()) hidden_.push_back(std::move(form));
}

void GatewayAccess::Redact(std::string& text) const {
  std::vector<std::string_view> longest_first(secrets_.begin(), secrets_.end());
  longest_first.insert(longest_first.end(), hidden_.begin(), hidden_.end());
  std::sort(longest_first.begin(), longest_first.end(), [](auto a, auto b) { return a.size() > b.size(); });
  for (const std::string_view secret : longest_first)
    for (size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += 3) text.replace(at, secret.size(), "***");
}

}  // namespace persia::agent

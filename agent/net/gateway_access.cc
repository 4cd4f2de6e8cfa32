#include "net/gateway_access.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace persia::agent {
namespace {

// A peer may give back the secret before the last one, when a file has just changed; older ones are no use to anybody.
constexpr size_t kSecretsKept = 32;

std::string Base64(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
    }
  }
  return text;
}

// How the text may stand in JSON, in HTML, and in an URL: what a proxy's error page makes of a header.
std::vector<std::string> Forms(const std::string& secret) {
  std::string json;
  std::string html;
  std::string url;
  for (const char c : secret) {
    json += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    html += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' ||
                       c == '_' || c == '~';
    char hex[4];
    std::snprintf(hex, sizeof hex, "%%%02X", static_cast<unsigned char>(c));
    url += plain ? std::string(1, c) : hex;
  }
  return {secret, json, html, url};
}

std::optional<WatchedFile> Watch(const char* what, const std::string& path) {
  return path.empty() ? std::nullopt : std::optional<WatchedFile>(std::in_place, what, path);
}

Status ReadInto(std::optional<WatchedFile>& file, std::string& into) {
  if (!file) {
    return Done{};
  }
  Result<std::string> content = file->Read();
  if (!content.ok()) {
    return Error{content.error()};
  }
  into = std::move(content).value();
  return Done{};
}

}  // namespace

GatewayAccess::GatewayAccess(GatewayAccessOptions options)
    : options_(std::move(options)),
      ca_(Watch("CA file", options_.ca_file)),
      cert_(Watch("client certificate", options_.cert_file)),
      key_(Watch("client key", options_.key_file)),
      password_(Watch("password file", options_.password_file)),
      token_(Watch("bearer token file", options_.bearer_token_file)) {}

Result<GatewayAccess::Now> GatewayAccess::Read() {
  Now now;
  for (Status status : {ReadInto(ca_, now.ca), ReadInto(cert_, now.cert), ReadInto(key_, now.key)}) {
    if (!status.ok()) {
      return Error{status.error()};
    }
  }
  if (now.key.find("ENCRYPTED") != std::string::npos) {
    return Error{"client key \"" + options_.key_file + "\": is encrypted; give one without a passphrase"};
  }
  if (Status status = ReadAuthorization(now); !status.ok()) {
    return Error{status.error()};
  }
  return now;
}

Status GatewayAccess::ReadAuthorization(Now& now) {
  const bool bearer = token_ || !options_.bearer_token.empty();
  std::string secret = bearer ? options_.bearer_token : options_.password;
  std::optional<WatchedFile>& file = bearer ? token_ : password_;
  if (file) {
    Result<std::string> line = file->ReadLine();
    if (!line.ok()) {
      return Error{line.error()};
    }
    secret = std::move(line).value();
  }
  if (bearer) {
    now.authorization = "Bearer " + secret;
  } else if (!options_.username.empty()) {
    const std::string pair = Base64(options_.username + ":" + secret);
    now.authorization = "Basic " + pair;
    Remember(pair);
  }
  Remember(secret);
  return Done{};
}

void GatewayAccess::Remember(const std::string& secret) {
  for (std::string& form : Forms(secret)) {
    if (!form.empty() && std::find(secrets_.begin(), secrets_.end(), form) == secrets_.end()) {
      secrets_.insert(secrets_.begin(), std::move(form));
    }
  }
  secrets_.resize(std::min(secrets_.size(), kSecretsKept));
}

void GatewayAccess::Redact(std::string& text) const {
  std::vector<std::string_view> longest_first(secrets_.begin(), secrets_.end());
  std::sort(longest_first.begin(), longest_first.end(), [](auto a, auto b) { return a.size() > b.size(); });
  for (const std::string_view secret : longest_first) {
    for (size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += 3) {
      text.replace(at, secret.size(), "***");
    }
  }
}

}  // namespace persia::agent

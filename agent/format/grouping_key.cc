#include "format/grouping_key.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace persia::agent {
namespace {

bool NeedsBase64(std::string_view value) {
  return value.empty() || value == "." || value == ".." || value.find('/') != std::string_view::npos;
}

// RFC 4648 section 5, without padding: the gateway takes it with and without. An empty value is "=", since a path has no
// empty segments.
std::string UrlSafeBase64(std::string_view bytes) {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  if (bytes.empty()) return "=";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t taken = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < taken ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k <= taken; ++k) out += kAlphabet[group >> (18 - 6 * k) & 63];
  }
  return out;
}

std::string PercentEncode(std::string_view bytes) {
  static constexpr std::string_view kUnreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (char c : bytes) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += kHex[static_cast<uint8_t>(c) >> 4];
      out += kHex[static_cast<uint8_t>(c) & 15];
    }
  }
  return out;
}

void AppendSegments(std::string& path, std::string_view label, std::string_view value) {
  path += '/';
  path += label;
  path += NeedsBase64(value) ? "@base64/" + UrlSafeBase64(value) : '/' + PercentEncode(value);
}

}  // namespace

std::string GroupingKeyPath(const Identity& identity) {
  std::string path = "/metrics";
  AppendSegments(path, "job", identity.job);
  for (const auto& [label, value] : identity.labels) AppendSegments(path, label, value);
  return path;
}

}  // namespace persia::agent

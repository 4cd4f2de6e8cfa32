#include "base/encoding.h"

#include <algorithm>
#include <cstdint>

namespace persia::agent {
namespace {

constexpr std::string_view kLowerHex = "0123456789abcdef";
constexpr std::string_view kUpperHex = "0123456789ABCDEF";
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kBase64Url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kUnreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

void AppendHex(char c, std::string_view digits, std::string& out) {
  out += digits[static_cast<uint8_t>(c) >> 4];
  out += digits[static_cast<uint8_t>(c) & 15];
}

// Without padding.
std::string ToBase64(std::string_view bytes, std::string_view digits) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t taken = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < taken ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k <= taken; ++k) out += digits[group >> (18 - 6 * k) & 63];
  }
  return out;
}

}  // namespace

std::string HexEncode(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) AppendHex(c, kLowerHex, out);
  return out;
}

std::string Base64Encode(std::string_view bytes) {
  std::string out = ToBase64(bytes, kBase64);
  out.append((4 - out.size() % 4) % 4, '=');
  return out;
}

std::string Base64UrlEncode(std::string_view bytes) { return ToBase64(bytes, kBase64Url); }

std::optional<std::string> Base64Decode(std::string_view text) {
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const size_t digit = kBase64.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    group = group << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 0xff);
    }
  }
  return bytes;
}

std::string PercentEncode(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      AppendHex(c, kUpperHex, out);
    }
  }
  return out;
}

}  // namespace persia::agent

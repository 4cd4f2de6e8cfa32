#include "net/basic_authorization.h"

#include <strings.h>

#include <cstdint>

namespace persia::agent {
namespace {

std::optional<std::string> DecodeBase64(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
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

}  // namespace

std::optional<BasicAuthorization> ParseBasicAuthorization(std::string_view value) {
  static constexpr std::string_view kScheme = "Basic ";
  if (value.size() < kScheme.size() || strncasecmp(value.data(), kScheme.data(), kScheme.size()) != 0) return std::nullopt;
  value.remove_prefix(kScheme.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  const std::optional<std::string> pair = DecodeBase64(value);
  const size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return BasicAuthorization{pair->substr(0, colon), pair->substr(colon + 1)};
}

}  // namespace persia::agent

// Reads UTF-8 that may not be valid, for the library and the agent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace persia::metrics {

struct Utf8Character {
  size_t bytes;  // at least 1
  bool is_valid;
};

// The character at the start of `text`: a whole UTF-8 sequence or, if it is not valid, the longest start of one, which a
// decoder replaces as a unit. Overlong forms, surrogates and code points above U+10FFFF are not valid. REQUIRES: `text` is not
// empty.
inline Utf8Character FirstUtf8Character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  // The range of the second byte excludes overlong forms, surrogates, and code points above U+10FFFF.
  uint8_t least = 0x80;
  uint8_t most = 0xbf;
  size_t length = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    least = lead == 0xe0 ? 0xa0 : 0x80;
    most = lead == 0xed ? 0x9f : 0xbf;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    least = lead == 0xf0 ? 0x90 : 0x80;
    most = lead == 0xf4 ? 0x8f : 0xbf;
  } else {
    return {1, false};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < least || byte(i) > most) return {i, false};
    least = 0x80;
    most = 0xbf;
  }
  return {length, true};
}

// The start of `text` of at most `bytes` bytes, which does not end within a character.
inline std::string_view FirstBytes(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  const auto continues = [&](size_t i) { return (static_cast<uint8_t>(text[i]) & 0xc0) == 0x80; };
  while (bytes > 0 && continues(bytes)) --bytes;
  return text.substr(0, bytes);
}

}  // namespace persia::metrics

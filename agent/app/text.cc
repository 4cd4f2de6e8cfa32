#include "app/text.h"

#include <algorithm>
#include <cstdint>

namespace persia::agent {
namespace {

constexpr size_t kLongestText = 4096;
constexpr size_t kLongestQuote = 80;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// The length of the UTF-8 character at the front, 0 if there is none: overlong forms, surrogates and what is beyond
// U+10FFFF are none.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xc2 && first <= 0xdf) {
    return tail(1) ? 2 : 0;
  }
  if (first >= 0xe0 && first <= 0xef) {
    const bool legal = (first != 0xe0 || byte(1) >= 0xa0) && (first != 0xed || byte(1) <= 0x9f);
    return legal && tail(1) && tail(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool legal = (first != 0xf0 || byte(1) >= 0x90) && (first != 0xf4 || byte(1) <= 0x8f);
    return legal && tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

bool IsControl(char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7f; }

void AppendHex(char c, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  out += kHex[static_cast<uint8_t>(c) >> 4];
  out += kHex[static_cast<uint8_t>(c) & 15];
}

// Calls `take(character, valid)` for each character, and for each byte that belongs to none.
template <class Take>
void ForEachCharacter(std::string_view text, Take take) {
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    take(text.substr(0, std::max<size_t>(1, bytes)), bytes > 0);
    text.remove_prefix(std::max<size_t>(1, bytes));
  }
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  bool cut = false;
  ForEachCharacter(text, [&](std::string_view character, bool valid) {
    const char c = character.front();
    cut = cut || out.size() > kLongestQuote;
    if (cut) {
      return;
    }
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (!valid || IsControl(c)) {
      out += "\\x";
      AppendHex(c, out);
    } else {
      out += character;
    }
  });
  return out + (cut ? "...\"" : "\"");
}

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  ForEachCharacter(text, [&](std::string_view character, bool valid) {
    const char c = character.front();
    if (!valid) {
      out += kReplacement;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (IsControl(c)) {
      out += "\\u00";
      AppendHex(c, out);
    } else {
      out += character;
    }
  });
  return out + "\"";
}

std::string OneLine(std::string_view text) {
  std::string out;
  ForEachCharacter(text, [&](std::string_view character, bool valid) {
    const char c = character.front();
    if (c == '\n' || c == '\r' || c == '\t') {
      out += ' ';
    } else if (!valid || IsControl(c)) {
      out += kReplacement;
    } else {
      out += character;
    }
  });
  return out;
}

Error Bad(std::string_view text, std::string_view why) { return Error{Quoted(text) + " " + std::string(why)}; }

Status CheckText(std::string_view text, std::string_view what) {
  if (text.empty()) {
    return Error{std::string(what) + " must not be empty"};
  }
  if (text.size() > kLongestText) {
    return Bad(text, "is too long (at most 4096 bytes)");
  }
  for (std::string_view rest = text; !rest.empty();) {
    const size_t bytes = CharacterBytes(rest);
    if (bytes == 0) {
      return Bad(text, "is not valid UTF-8");
    }
    if (static_cast<uint8_t>(rest.front()) < 0x20 || rest.front() == 0x7f) {
      return Bad(text, "has a control character in it");
    }
    rest.remove_prefix(bytes);
  }
  return Done{};
}

}  // namespace persia::agent

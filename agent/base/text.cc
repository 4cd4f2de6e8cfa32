#include "base/text.h"

#include <cstdint>

#include "base/encoding.h"
#include "utf8.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxTextBytes = 4096;
constexpr size_t kMaxQuoteBytes = 80;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool IsControl(char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7f; }

// Control characters, and those that end a line, change its direction or are invisible: U+0080 to U+009F, U+200B to U+200F,
// U+2028 to U+202E, U+2060 to U+206F, U+FEFF. REQUIRES: valid UTF-8.
bool ChangesTheLine(std::string_view character) {
  if (character.size() == 1) return IsControl(character.front());
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(character[i]); };
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3) return false;
  const uint32_t code = (byte(0) & 0x0fU) << 12 | (byte(1) & 0x3fU) << 6 | (byte(2) & 0x3fU);
  return (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
         code == 0xfeff;
}

// Calls `take(character, valid)` for each character, and for each invalid byte.
template <class Take>
void ForEachCharacter(std::string_view text, Take take) {
  while (!text.empty()) {
    const auto [length, is_valid] = metrics::FirstUtf8Character(text);
    const size_t bytes = is_valid ? length : 1;
    take(text.substr(0, bytes), is_valid);
    text.remove_prefix(bytes);
  }
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  bool cut = false;
  ForEachCharacter(text, [&](std::string_view character, bool valid) {
    const char c = character.front();
    cut = cut || out.size() > kMaxQuoteBytes;
    if (cut) return;
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (!valid || ChangesTheLine(character)) {
      out += "\\x" + HexEncode(character);
    } else {
      out += character;
    }
  });
  return out + (cut ? "...\"" : "\"");
}

std::string OneLine(std::string_view text) {
  std::string out;
  ForEachCharacter(text, [&](std::string_view character, bool valid) {
    const char c = character.front();
    if (c == '\n' || c == '\r' || c == '\t') {
      out += ' ';
    } else if (!valid || ChangesTheLine(character)) {
      out += kReplacement;
    } else {
      out += character;
    }
  });
  return out;
}

Error Bad(std::string_view text, std::string_view why) { return Error{Quoted(text) + " " + std::string(why)}; }

Status CheckText(std::string_view text, std::string_view what) { return CheckText(text, what, text); }

Status CheckText(std::string_view text, std::string_view what, std::string_view shown) {
  if (text.empty()) return Error{std::string(what) + " must not be empty"};
  if (text.size() > kMaxTextBytes) return Bad(shown, "is too long (at most 4096 bytes)");
  bool all_valid = true;
  bool has_control = false;
  ForEachCharacter(text, [&](std::string_view character, bool valid) {
    all_valid = all_valid && valid;
    has_control = has_control || IsControl(character.front());
  });
  if (!all_valid) return Bad(shown, "is not valid UTF-8");
  if (has_control) return Bad(shown, "has a control character in it");
  return Done{};
}

}  // namespace persia::agent

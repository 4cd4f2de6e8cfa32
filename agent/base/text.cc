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
    } else if (!valid || IsControl(c)) {
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
  if (text.empty()) return Error{std::string(what) + " must not be empty"};
  if (text.size() > kMaxTextBytes) return Bad(text, "is too long (at most 4096 bytes)");
  bool all_valid = true;
  bool has_control = false;
  ForEachCharacter(text, [&](std::string_view character, bool valid) {
    all_valid = all_valid && valid;
    has_control = has_control || IsControl(character.front());
  });
  if (!all_valid) return Bad(text, "is not valid UTF-8");
  if (has_control) return Bad(text, "has a control character in it");
  return Done{};
}

}  // namespace persia::agent

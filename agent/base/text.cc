#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

constexpr double kMaxBytes = 1ULL << 53;  // up to here doubles are exact
constexpr std::string_view kPrefixes = "kmgt";

// The bytes of one "k", "GB" or "mib", in lower case; 0 if it is not a unit.
double BytesOf(std::string_view unit) {
  if (unit == "b") return 1;
  if (unit.ends_with('b')) unit.remove_suffix(1);
  if (unit.empty()) return 0;
  const size_t power = kPrefixes.find(unit.front());
  const bool binary = unit.substr(1) == "i";
  if (power == std::string_view::npos || (!binary && unit.size() > 1)) return 0;
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

constexpr double kMaxSeconds = 10.0 * 365 * 86400;
// In the order in which they are tried: "ms" before "m". Unicode has two micro signs, and Go accepts both.
constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\u00b5s", 1e-6}, {"\u03bcs", 1e-6},
                                                          {"ms", 1e-3}, {"s", 1},     {"m", 60},         {"h", 3600}};

// Of text that is not a plain number; negative if it is not a duration.
double SecondsWithUnits(std::string_view text) {
  double seconds = 0;
  while (!text.empty()) {
    const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    double number = 0;
    if (!ParseNumber(text.substr(0, digits), number)) return -1;
    text.remove_prefix(digits);
    const auto unit =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) { return text.starts_with(u.first); });
    if (unit == std::end(kUnits)) return -1;
    seconds += number * unit->second;
    text.remove_prefix(unit->first.size());
  }
  return seconds;
}

constexpr int64_t kDayMs = 86'400'000;
constexpr std::pair<std::string_view, int64_t> kPrometheusUnits[] = {
    {"y", 365 * kDayMs}, {"w", 7 * kDayMs}, {"d", kDayMs}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};

// Negative if it is not a duration.
int64_t PrometheusMilliseconds(std::string_view text) {
  if (text == "0") return 0;
  constexpr auto kMaxMs = static_cast<int64_t>(kMaxSeconds) * 1000;
  int64_t total = 0;
  const auto* next = std::begin(kPrometheusUnits);
  do {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    int64_t number = 0;
    if (!ParseNumber(text.substr(0, digits), number)) return -1;
    text.remove_prefix(digits);
    const std::string_view name = text.substr(0, std::min(text.find_first_of("0123456789"), text.size()));
    const auto* unit = std::find_if(next, std::end(kPrometheusUnits), [&](const auto& u) { return u.first == name; });
    if (unit == std::end(kPrometheusUnits) || number > (kMaxMs - total) / unit->second) return -1;
    total += number * unit->second;
    text.remove_prefix(name.size());
    next = unit + 1;
  } while (!text.empty());
  return total;
}

constexpr size_t kMaxWordSize = 64;  // longer than every name that the agent knows

char Fold(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '-' ? '_' : c;
}

// Optimal string alignment: insertions, deletions, replacements, and swaps of adjacent characters.
size_t EditDistance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> table((a.size() + 1) * width);
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& best = table[i * width + j];
      if (i == 0 || j == 0) {
        best = i + j;
        continue;
      }
      const bool same = Fold(a[i - 1]) == Fold(b[j - 1]);
      best = std::min(
          {table[(i - 1) * width + j] + 1, table[i * width + j - 1] + 1, table[(i - 1) * width + j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && Fold(a[i - 1]) == Fold(b[j - 2]) && Fold(a[i - 2]) == Fold(b[j - 1]))
        best = std::min(best, table[(i - 2) * width + j - 2] + 1);
    }
  }
  return table.back();
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
    if (c == '\n' || c == '\r' || c == '\t')
      out += ' ';
    else if (!valid || ChangesTheLine(character))
      out += kReplacement;
    else
      out += character;
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

Result<uint64_t> ParseSize(std::string_view text) {
  uint64_t bytes = 0;
  if (ParseNumber(text, bytes)) return bytes;
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string unit(text.substr(digits));
  if (unit.starts_with(' ')) unit.erase(0, 1);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  double number = 0;
  const double size = ParseNumber(text.substr(0, digits), number) ? number * BytesOf(unit) : 0;
  if (!(size > 0 && size <= kMaxBytes)) return Bad(text, "is not a size (1048576, 64MiB, 1GB, 10k)");
  return static_cast<uint64_t>(std::llround(size));
}

Result<std::chrono::milliseconds> ParsePrometheusDuration(std::string_view text) {
  const int64_t total = PrometheusMilliseconds(text);
  if (total < 0) return Bad(text, "is not a duration (30s, 1m30s, 1d12h)");
  return std::chrono::milliseconds(total);
}

Result<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  double seconds = 0;
  if (!ParseNumber(text, seconds)) seconds = text.empty() ? -1 : SecondsWithUnits(text);
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) return Bad(text, "is not a duration (10, 30s, 5m, 1m20s)");
  // Less than the error of a product of doubles, which must not add a millisecond.
  constexpr double kJustBelow = 1 - 1e-12;
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000 * kJustBelow)));
}

std::string_view ClosestMatch(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kMaxWordSize) return {};
  std::string_view closest;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (distance < least) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view closest = ClosestMatch(word, candidates);
  return closest.empty() ? std::string() : "; did you mean \"" + std::string(closest) + "\"?";
}

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

#include "top/shown_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cwchar>
#include <utility>
#include <vector>

#include "base/text.h"

namespace persia::agent {
namespace {

struct Character {
  std::string_view bytes;
  int columns = -1;  // -1: is not shown
};

// The character at the beginning of `text`. Invalid UTF-8 is one byte of no character.
Character FirstOf(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {text.substr(0, 1), lead >= 0x20 && lead != 0x7f ? 1 : -1};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {text.substr(0, 1)};
  uint32_t code = lead & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {text.substr(0, 1)};
    code = code << 6 | (byte & 0x3fU);
  }
  const int columns = wcwidth(static_cast<wchar_t>(code));
  return {text.substr(0, length), columns > 0 ? columns : -1};
}

// With three digits: "1.40", "14.0", "140".
std::string Digits(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", number < 9.995 ? 2 : number < 99.95 ? 1 : 0, number);
  return text.data();
}

size_t DigitsAt(std::string_view text, size_t at) {
  return std::min(text.size(), text.find_first_not_of("0123456789", at)) - at;
}

}  // namespace

std::string Shown(std::string_view text, size_t width, Charset charset) {
  std::string out;
  std::vector<std::pair<size_t, size_t>> ends;  // bytes and columns after each character
  size_t columns = 0;
  while (!text.empty()) {
    const Character first = FirstOf(text);
    const bool shown = first.columns > 0 && (charset == Charset::kUtf8 || first.bytes.size() == 1);
    const size_t taken = shown ? static_cast<size_t>(first.columns) : 1;
    if (columns + taken > width) {
      while (!ends.empty() && columns + 1 > width) {
        ends.pop_back();
        columns = ends.empty() ? 0 : ends.back().second;
      }
      out.resize(ends.empty() ? 0 : ends.back().first);
      return width == 0 ? "" : out + '~';
    }
    out += shown ? first.bytes : "?";
    columns += taken;
    ends.emplace_back(out.size(), columns);
    text.remove_prefix(first.bytes.size());
  }
  return out;
}

size_t ColumnsOf(std::string_view shown) {
  size_t columns = 0;
  while (!shown.empty()) {
    const Character first = FirstOf(shown);
    columns += first.columns > 0 ? static_cast<size_t>(first.columns) : 1;
    shown.remove_prefix(first.bytes.size());
  }
  return columns;
}

std::string ShownBytes(double bytes) {
  constexpr std::array<const char*, 6> kUnits{" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  bytes = std::clamp(bytes, 0.0, 1e6);
  return (unit == 0 ? std::to_string(std::lround(bytes)) : Digits(bytes)) + kUnits[unit];
}

std::string ShownNumber(double number) {
  constexpr std::array<const char*, 5> kUnits{"", "k", "M", "G", "T"};
  size_t unit = 0;
  const bool negative = number < 0;
  for (number = std::abs(number); number >= 999.5 && unit + 1 < kUnits.size(); ++unit) number /= 1000;
  return (negative ? "-" : "") + (number == 0 ? "0" : Digits(std::min(number, 1e6))) + kUnits[unit];
}

std::string ShownSpan(int64_t milliseconds) {
  const auto seconds = std::max<int64_t>(0, milliseconds) / 1000;
  const auto pair = [](int64_t large, const char* unit, int64_t small, const char* small_unit) {
    return std::to_string(large) + unit + (small < 10 ? "0" : "") + std::to_string(small) + small_unit;
  };
  if (seconds < 60) return std::to_string(seconds) + 's';
  if (seconds < 3600) return pair(seconds / 60, "m", seconds % 60, "s");
  if (seconds < 86'400) return pair(seconds / 3600, "h", seconds / 60 % 60, "m");
  return seconds < 8'640'000 ? pair(seconds / 86'400, "d", seconds / 3600 % 24, "h") : std::to_string(seconds / 86'400) + 'd';
}

bool NaturalLess(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!IsDigit(a[i]) || !IsDigit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
      continue;
    }
    std::string_view left = a.substr(i, DigitsAt(a, i));
    std::string_view right = b.substr(j, DigitsAt(b, j));
    i += left.size();
    j += right.size();
    left.remove_prefix(std::min(left.size() - 1, left.find_first_not_of('0')));
    right.remove_prefix(std::min(right.size() - 1, right.find_first_not_of('0')));
    if (left != right) return left.size() != right.size() ? left.size() < right.size() : left < right;
  }
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

}  // namespace persia::agent

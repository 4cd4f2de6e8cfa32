#include "json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace persia::metrics::json {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

void AppendUtf8(std::string& out, uint32_t point) {
  const auto byte = [&](uint32_t value) { out += static_cast<char>(value); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xc0 | point >> 6);
    byte(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    byte(0xe0 | point >> 12);
    byte(0x80 | (point >> 6 & 0x3f));
    byte(0x80 | (point & 0x3f));
  } else {
    byte(0xf0 | point >> 18);
    byte(0x80 | (point >> 12 & 0x3f));
    byte(0x80 | (point >> 6 & 0x3f));
    byte(0x80 | (point & 0x3f));
  }
}

}  // namespace

void AppendString(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\\u00";
          out += kDigits[c >> 4];
          out += kDigits[c & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void AppendNumber(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
  } else {
    std::array<char, 32> text;
    const std::string_view number(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
    out += number;
    if (number.find_first_of(".e") == std::string_view::npos) {
      out += ".0";
    }
  }
}

void AppendNumber(std::string& out, int64_t value) { out += std::to_string(value); }

void Reader::SkipSpace() {
  const size_t at = rest_.find_first_not_of(" \t\r\n");
  rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
}

bool Reader::Take(char c) {
  SkipSpace();
  if (!ok_ || !rest_.starts_with(c)) {
    return false;
  }
  rest_.remove_prefix(1);
  return true;
}

bool Reader::TakeWord(std::string_view word) {
  SkipSpace();
  if (!ok_ || !rest_.starts_with(word)) {
    return false;
  }
  rest_.remove_prefix(word.size());
  return true;
}

bool Reader::AtEnd() {
  SkipSpace();
  return rest_.empty();
}

void Reader::Object(const std::function<void(const std::string& key)>& member) {
  ok_ = ok_ && ++depth_ <= kMaxDepth && Take('{');
  if (Take('}')) {
    --depth_;
    return;
  }
  do {
    const std::string key = String();
    ok_ = ok_ && Take(':');
    if (ok_) {
      member(key);
    }
  } while (Take(','));
  ok_ = ok_ && Take('}');
  --depth_;
}

void Reader::ObjectOrNull(const std::function<void(const std::string& key)>& member) {
  if (!TakeWord("null")) {
    Object(member);
  }
}

std::string Reader::String() {
  std::string out;
  ok_ = ok_ && Take('"');
  while (ok_) {
    const size_t plain = rest_.find_first_of("\"\\");
    if (plain == std::string_view::npos) {
      ok_ = false;
      break;
    }
    for (const char c : rest_.substr(0, plain)) {
      ok_ = ok_ && static_cast<unsigned char>(c) >= 0x20;
    }
    out += rest_.substr(0, plain);
    const char end = rest_[plain];
    rest_.remove_prefix(plain + 1);
    if (end == '"') {
      break;
    }
    ok_ = ok_ && AppendEscaped(out);
  }
  return out;
}

bool Reader::AppendEscaped(std::string& out) {
  if (rest_.empty()) {
    return false;
  }
  const char kind = rest_.front();
  rest_.remove_prefix(1);
  constexpr std::string_view kKinds = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  const size_t at = kKinds.find(kind);
  if (at != std::string_view::npos) {
    out += kMeant[at];
    return true;
  }
  if (kind != 'u') {
    return false;
  }
  const int first = Hex4();
  if (first < 0 || (first >= 0xdc00 && first <= 0xdfff)) {
    return false;
  }
  auto point = static_cast<uint32_t>(first);
  if (first >= 0xd800 && first <= 0xdbff) {  // the first half of a pair
    if (!rest_.starts_with("\\u")) {
      return false;
    }
    rest_.remove_prefix(2);
    const int second = Hex4();
    if (second < 0xdc00 || second > 0xdfff) {
      return false;
    }
    point = 0x10000 + ((point - 0xd800) << 10) + (static_cast<uint32_t>(second) - 0xdc00);
  }
  AppendUtf8(out, point);
  return true;
}

int Reader::Hex4() {
  if (rest_.size() < 4) {
    return -1;
  }
  int value = 0;
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, value, 16);
  if (error != std::errc() || end != rest_.data() + 4 || rest_.front() == '-') {
    return -1;
  }
  rest_.remove_prefix(4);
  return value;
}

events::Event::Value Reader::Scalar() {
  SkipSpace();
  if (rest_.starts_with('"')) {
    return String();
  }
  if (TakeWord("null")) {
    return std::monostate();
  }
  if (TakeWord("true")) {
    return true;
  }
  if (TakeWord("false")) {
    return false;
  }
  if (TakeWord("NaN")) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (TakeWord("Infinity")) {
    return std::numeric_limits<double>::infinity();
  }
  if (TakeWord("-Infinity")) {
    return -std::numeric_limits<double>::infinity();
  }
  return Number();
}

events::Event::Value Reader::Number() {
  const size_t end = std::min(rest_.find_first_not_of("+-.0123456789eE"), rest_.size());
  const std::string_view word = rest_.substr(0, end);
  rest_.remove_prefix(end);
  const size_t digits = word.starts_with('-') ? 1 : 0;
  // from_chars would take "01", "1." and ".5" too.
  const bool leading_zero =
      word.size() > digits + 1 && word[digits] == '0' && word[digits + 1] >= '0' && word[digits + 1] <= '9';
  const size_t dot = word.find('.');
  const bool bare_dot =
      dot != std::string_view::npos && (dot == digits || dot + 1 == word.size() || word[dot + 1] < '0' || word[dot + 1] > '9');
  if (word.size() == digits || word[digits] == '+' || leading_zero || bare_dot) {
    ok_ = false;
    return std::monostate();
  }
  int64_t whole = 0;
  const auto [whole_end, whole_error] = std::from_chars(word.data(), word.data() + word.size(), whole);
  if (whole_error == std::errc() && whole_end == word.data() + word.size()) {
    return whole;
  }
  double value = 0;
  const auto [value_end, value_error] = std::from_chars(word.data(), word.data() + word.size(), value);
  ok_ = ok_ && value_error == std::errc() && value_end == word.data() + word.size();
  return value;
}

void Reader::Skip() {
  SkipSpace();
  if (rest_.starts_with('{')) {
    Object([this](const std::string& /*key*/) { Skip(); });
  } else if (Take('[')) {
    ok_ = ok_ && ++depth_ <= kMaxDepth;
    if (!Take(']')) {
      do {
        Skip();
      } while (Take(','));
      ok_ = ok_ && Take(']');
    }
    --depth_;
  } else {
    Scalar();
  }
}

}  // namespace persia::metrics::json

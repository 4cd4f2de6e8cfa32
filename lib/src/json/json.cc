#include "json.h"

#include <array>
#include <charconv>
#include <cmath>

namespace persia::metrics {
inline namespace abi_1 {
namespace json {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

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
    if (number.find_first_of(".e") == std::string_view::npos) out += ".0";
  }
}

}  // namespace json
}  // namespace abi_1
}  // namespace persia::metrics

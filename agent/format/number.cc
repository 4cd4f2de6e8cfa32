#include "format/number.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace persia::agent {

char* PrintNumber(char* to, double number) {
  if (!std::isfinite(number)) {
    const char* name = std::isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf";
    const size_t size = std::strlen(name);
    std::memcpy(to, name, size);
    return to + size;
  }
  // Most values are counts. An integer prints several times faster, and without the exponent that to_chars gives 100000.
  if (std::fabs(number) <= 0x1p53) {
    const auto whole = static_cast<int64_t>(number);
    // Compares bits, since -0 is printed with its sign.
    if (std::bit_cast<uint64_t>(static_cast<double>(whole)) == std::bit_cast<uint64_t>(number))
      return std::to_chars(to, to + kMaxNumberSize, whole).ptr;
  }
  return std::to_chars(to, to + kMaxNumberSize, number).ptr;
}

std::string LabelText(double number) {
  char text[kMaxNumberSize];
  if (!std::isfinite(number)) return {text, PrintNumber(text, number)};
  return {text, std::to_chars(text, text + sizeof text, number, std::chars_format::general).ptr};
}

}  // namespace persia::agent

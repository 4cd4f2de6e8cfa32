// How a number is printed in an exposition text: the shortest form that reads back as the same number, to the last character
// that of std::to_chars.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>

namespace persia::agent {

// "-2.2250738585072014e-308" is the longest.
inline constexpr size_t kMaxNumberSize = 24;
// Printing may write behind the number's end, but no further than this from its begin.
inline constexpr size_t kNumberRoom = 48;

// As PrintNumber, of a number between -10^16 and 10^16.
char* PrintWhole(char* to, int64_t number);
// As PrintNumber, of a finite number that is not whole, or past 2^53.
char* PrintFraction(char* to, double number);

// Prints at `to`, gives the end.
// REQUIRES: kNumberRoom.
inline char* PrintNumber(char* to, double number) {
  // Counts are whole: an integer prints in less than half the time. The comparison keeps -0 out, whose sign would be lost.
  if (std::fabs(number) <= 0x1p53) {
    const auto whole = static_cast<int64_t>(number);
    if (std::bit_cast<uint64_t>(static_cast<double>(whole)) == std::bit_cast<uint64_t>(number)) {
      return PrintWhole(to, whole);
    }
  } else if (!std::isfinite(number)) {
    const char* name = std::isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf";
    const size_t size = std::strlen(name);
    std::memcpy(to, name, size);
    return to + size;
  }
  return PrintFraction(to, number);
}

// A number as the value of a label, `le` or `quantile`. A label is compared as text: this is how Go's clients and the gateway
// print it (0.0001, 10000, 1e+06), so that a bucket is one series on whichever way it reaches Prometheus.
inline std::string LabelText(double number) {
  char text[kNumberRoom];
  if (!std::isfinite(number)) return {text, PrintNumber(text, number)};
  return {text, std::to_chars(text, text + kMaxNumberSize, number, std::chars_format::general).ptr};
}

}  // namespace persia::agent

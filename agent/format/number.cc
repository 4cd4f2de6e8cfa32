// Digits come from libfmt's Dragonbox, which finds the shortest ones in 12 ns where std::to_chars of libstdc++ 12 takes 38. It
// is no documented part of libfmt: with a version in which it may stand elsewhere, std::to_chars does it.
#include "format/number.h"

#include <fmt/format.h>

#include <algorithm>

namespace persia::agent {
namespace {

#if FMT_VERSION >= 80000 && FMT_VERSION < 120000

// 10^8 as digits of one register: two of four, four of two, eight of one, side by side. Half the time of std::to_chars, whose
// divisions wait for each other.
void PrintEightDigits(char* to, uint32_t number) {
  const uint64_t fours = number / 10'000 | static_cast<uint64_t>(number % 10'000) << 32;
  const uint64_t hundreds = (fours * 10'486 >> 20) & 0x7f'0000'007f;
  const uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
  const uint64_t tens = (twos * 103 >> 10) & 0x0f'000f'000f'000f;
  const uint64_t ones = tens | (twos - 10 * tens) << 8;
  const uint64_t digits = ones + 0x3030'3030'3030'3030;
  for (int i = 0; i < 8; ++i) {
    to[i] = static_cast<char>(digits >> (8 * i));
  }
}

// The shortest digits of a double are at most 17; all are written, with zeros in front.
constexpr int kMostDigits = 17;

struct Digits {
  explicit Digits(uint64_t number) {
    constexpr uint64_t kEight = 100'000'000;
    text[0] = static_cast<char>('0' + number / (kEight * kEight));
    PrintEightDigits(text + 1, static_cast<uint32_t>(number / kEight % kEight));
    PrintEightDigits(text + 9, static_cast<uint32_t>(number % kEight));
    while (begin[0] == '0') {
      ++begin;
    }
  }
  [[nodiscard]] int count() const { return static_cast<int>(text + kMostDigits - begin); }

  char text[2 * kMostDigits] = {};  // behind the digits there is room to be copied along
  const char* begin = text;
};

// A copy of a known size takes no call. What it writes behind the digits is overwritten, or lies within kNumberRoom.
char* Append(char* to, const char* digits, int count) {
  std::memcpy(to, digits, kMostDigits);
  return to + count;
}

// The number with the point behind `whole` digits; less than one: behind as many zeros.
char* PrintFixed(char* to, const Digits& digits, int whole) {
  if (whole <= 0) {
    *to++ = '0';
    *to++ = '.';
    to = std::fill_n(to, -whole, '0');
    return Append(to, digits.begin, digits.count());
  }
  to = Append(to, digits.begin, whole);
  *to++ = '.';
  return Append(to, digits.begin + whole, digits.count() - whole);
}

char* PrintScientific(char* to, const Digits& digits, int exponent) {
  *to++ = digits.begin[0];
  if (digits.count() > 1) {
    *to++ = '.';
    to = Append(to, digits.begin + 1, digits.count() - 1);
  }
  *to++ = 'e';
  *to++ = exponent < 0 ? '-' : '+';
  exponent = exponent < 0 ? -exponent : exponent;
  if (exponent < 10) {
    *to++ = '0';
  }
  return std::to_chars(to, to + 3, exponent).ptr;
}

char* Print(char* to, double number) {
  const auto decimal = fmt::detail::dragonbox::to_decimal(std::fabs(number));
  if (decimal.exponent >= 0) {
    return nullptr;  // whole, and large: its digits in full are more than the shortest ones
  }
  const Digits digits(decimal.significand);
  const int whole = digits.count() + decimal.exponent;  // digits before the point
  if (std::signbit(number)) {
    *to++ = '-';
  }
  const int fixed_size = whole > 0 ? digits.count() + 1 : digits.count() + 2 - whole;
  const int scientific_size = digits.count() + (digits.count() > 1 ? 1 : 0) + (whole - 1 <= -100 ? 5 : 4);
  return fixed_size <= scientific_size ? PrintFixed(to, digits, whole) : PrintScientific(to, digits, whole - 1);
}

#else

char* Print(char* /*to*/, double /*number*/) { return nullptr; }

#endif

}  // namespace

char* PrintFraction(char* to, double number) {
  char* end = Print(to, number);
  return end != nullptr ? end : std::to_chars(to, to + kMaxNumberSize, number).ptr;
}

}  // namespace persia::agent

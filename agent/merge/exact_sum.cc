#include "merge/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace persia::agent {
namespace {

constexpr uint64_t kDigitMask = 0xffff'ffff;
constexpr int kMantissaBits = 52;
constexpr uint64_t kMantissaMask = (uint64_t{1} << kMantissaBits) - 1;
constexpr uint64_t kInfinityExponent = 2047;
constexpr uint64_t kExactWhole = uint64_t{1} << 53;

}  // namespace

void ExactSum::Add(double term) {
  const auto bits = std::bit_cast<uint64_t>(term);
  const bool negative = (bits >> 63) != 0;
  const uint64_t exponent = (bits >> kMantissaBits) & kInfinityExponent;
  uint64_t mantissa = bits & kMantissaMask;
  if (exponent == kInfinityExponent) {
    not_a_number_ |= mantissa != 0;
    (negative ? minus_infinity_ : plus_infinity_) |= mantissa == 0;
    return;
  }
  if (exponent == 0)
    AddBits(mantissa, 0, negative);  // subnormal: no hidden bit
  else
    AddBits(mantissa | (kMantissaMask + 1), static_cast<int>(exponent) - 1, negative);
}

void ExactSum::AddBits(uint64_t bits, int position, bool negative) {
  if (bits == 0) return;
  if (++pending_ == kMaxPending) {
    Carry();
    pending_ = 1;
  }
  const int digit = position / kDigitBits;
  const int shift = position % kDigitBits;
  const auto low = static_cast<int64_t>((bits << shift) & kDigitMask);
  const auto middle = static_cast<int64_t>((bits >> (kDigitBits - shift)) & kDigitMask);
  const auto top = static_cast<int64_t>((bits >> (kDigitBits - shift)) >> kDigitBits);
  if (negative) {
    digits_[digit] -= low;
    digits_[digit + 1] -= middle;
    digits_[digit + 2] -= top;
  } else {
    digits_[digit] += low;
    digits_[digit + 1] += middle;
    digits_[digit + 2] += top;
  }
  low_ = std::min(low_, digit);
  high_ = std::max(high_, digit + 3);
}

// Leaves each digit but the top one in [0, 2^32); the top one carries the sign.
void ExactSum::Carry() {
  pending_ = 0;
  int64_t carry = 0;
  for (int i = low_; i < high_; ++i) {
    const int64_t digit = digits_[i] + carry;
    carry = digit >> kDigitBits;  // rounds down, also below 0
    digits_[i] = digit & static_cast<int64_t>(kDigitMask);
  }
  while (carry != 0 && carry != -1 && high_ < kDigits) {
    digits_[high_++] = carry & static_cast<int64_t>(kDigitMask);
    carry >>= kDigitBits;
  }
  if (carry != 0) {
    // -1 is the sign, which the top digit keeps. (A carry beyond kDigits would take 2^62 terms.)
    digits_[high_ - 1] += carry * (int64_t{1} << kDigitBits);
  }
}

double ExactSum::Round() {
  if (not_a_number_ || (plus_infinity_ && minus_infinity_)) return std::numeric_limits<double>::quiet_NaN();
  if (plus_infinity_ || minus_infinity_)
    return plus_infinity_ ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  if (high_ <= low_) return 0;
  Carry();
  const bool negative = digits_[high_ - 1] < 0;
  // The digits of the magnitude, each in [0, 2^32).
  std::array<uint64_t, kDigits + 1> digits;
  int64_t carry = 0;
  for (int i = low_; i < high_; ++i) {
    const int64_t digit = (negative ? -digits_[i] : digits_[i]) + carry;
    carry = digit >> kDigitBits;
    digits[i] = static_cast<uint64_t>(digit) & kDigitMask;
  }
  int top = high_ - 1;
  if (carry != 0) digits[++top] = static_cast<uint64_t>(carry);  // the negative top digit was -2^32
  while (top >= low_ && digits[top] == 0) --top;
  if (top < low_) return 0;
  const auto digit_at = [&](int i) { return i >= low_ && i <= top ? digits[i] : 0; };
  // The 64 bits from the highest set bit down, and whether a lower bit is set.
  const int leading = std::countl_zero(digits[top] << kDigitBits);
  const int highest_bit = top * kDigitBits + (kDigitBits - 1) - leading;
  uint64_t window = (digit_at(top) << kDigitBits) | digit_at(top - 1);
  if (leading > 0) window = (window << leading) | (digit_at(top - 2) >> (kDigitBits - leading));
  bool sticky = ((digit_at(top - 2) << leading) & kDigitMask) != 0;
  for (int i = top - 3; i >= low_ && !sticky; --i) sticky = digits[i] != 0;
  // Bit 0 of the number is the smallest subnormal: up to bit 52, the number's bits are those of the double.
  uint64_t bits;
  if (highest_bit <= kMantissaBits) {
    bits = window >> (63 - highest_bit);
  } else {
    const uint64_t kept = window >> 11;
    const uint64_t rest = window & 0x7ff;
    const bool up = rest > 0x400 || (rest == 0x400 && (sticky || (kept & 1) != 0));
    // The hidden bit adds one to the exponent field; a carry of rounding up into it is correct.
    bits = (static_cast<uint64_t>(highest_bit - kMantissaBits) << kMantissaBits) + kept + (up ? 1 : 0);
    bits = std::min(bits, kInfinityExponent << kMantissaBits);
  }
  return std::bit_cast<double>(bits | (negative ? uint64_t{1} << 63 : 0));
}

void ExactSum::MoveTo(std::vector<double>& terms) {
  // Each rounding leaves a remainder below half a unit in its last place, so that at most 40 doubles hold all bits.
  for (double rounded = Round(); rounded != 0; rounded = Round()) {
    terms.push_back(rounded);
    if (!std::isfinite(rounded)) break;
    Add(-rounded);
  }
  Clear();
}

void ExactSum::Clear() {
  if (low_ < high_) std::fill(digits_.begin() + low_, digits_.begin() + high_, 0);
  low_ = kDigits;
  high_ = 0;
  pending_ = 0;
  plus_infinity_ = minus_infinity_ = not_a_number_ = false;
}

double ExactTotal(uint64_t whole, std::span<const double> terms, ExactSum& scratch) {
  // The hardware rounds one addition of two numbers correctly.
  if (terms.empty()) return static_cast<double>(whole);
  if (terms.size() == 1 && whole <= kExactWhole) return static_cast<double>(whole) + terms[0];
  if (terms.size() == 2 && whole == 0) return terms[0] + terms[1];
  scratch.Clear();
  scratch.AddWhole(whole);
  for (const double term : terms) scratch.Add(term);
  return scratch.Round();
}

}  // namespace persia::agent

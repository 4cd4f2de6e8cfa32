// Adds doubles exactly, in any order, and rounds once.
//
// The result of plain additions depends on their order: between two collections a total can decrease by one unit in the last
// place, which Prometheus treats as a counter reset. This class keeps the sum as one wide fixed-point number that represents
// every double exactly (a superaccumulator): the same terms give the same result in any order, and a total never decreases
// unless one of its terms does.
//
//   ExactSum sum;
//   sum.Add(0.1);
//   sum.AddWhole(7);
//   double total = sum.Round();
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace persia::agent {

class ExactSum {
 public:
  // Infinities and NaNs have the same effect as in plain addition, in any order.
  void Add(double term);
  void AddWhole(uint64_t term) { AddBits(term, kBitOfOne, false); }

  // The sum, rounded to nearest, ties to even. Terms may be added afterwards.
  [[nodiscard]] double Round();

  // Appends doubles with exactly this sum, usually one or two; one if the sum is not finite. Clears the sum.
  void MoveTo(std::vector<double>& terms);

  void Clear();

 private:
  // The number is the sum of digits_[i] * 2^(32 i - 1074), so that bit 0 is the smallest subnormal. A digit holds 2^30
  // additions of 32 bits before Carry is needed.
  static constexpr int kDigitBits = 32;
  static constexpr int kBitOfOne = 1074;
  static constexpr int kDigits = 68;  // 2098 bits of doubles, and 2^62 of the largest
  static constexpr uint32_t kMaxPending = 1U << 30;

  void AddBits(uint64_t bits, int position, bool negative);
  void Carry();

  std::array<int64_t, kDigits> digits_{};
  int low_ = kDigits;  // digits outside [low_, high_) are 0
  int high_ = 0;
  uint32_t pending_ = 0;  // additions since the last Carry
  bool plus_infinity_ = false;
  bool minus_infinity_ = false;
  bool not_a_number_ = false;
};

// whole + the sum of `terms`, rounded once. May overwrite `scratch`.
double ExactTotal(uint64_t whole, std::span<const double> terms, ExactSum& scratch);

}  // namespace persia::agent

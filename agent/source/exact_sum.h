// Adds doubles exactly, in any order, and rounds once.
//
// A total of plain additions depends on their order: between two collects it can fall by one unit in the last place, which
// Prometheus takes for a counter's reset. Here the sum is kept as one wide fixed-point number that holds every double exactly,
// so that the same terms give the same result whatever their order, and a total never falls while its terms do not.
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
  // An infinity or a NaN decides the result as in plain addition, in any order.
  void Add(double term);
  void AddWhole(uint64_t term) { AddBits(term, kBitOfOne, false); }

  // The sum, rounded to nearest, ties to even. Terms may be added afterwards.
  [[nodiscard]] double Round();

  // Appends a few doubles whose exact sum this is, most often one or two; what is not finite is one double. The sum is cleared.
  void MoveTo(std::vector<double>& terms);

  // Back to no terms.
  void Clear();

 private:
  // The number is the sum of digits_[i] * 2^(32 i - 1074), so that bit 0 is the smallest subnormal. A digit takes 2^30
  // additions of 32 bits before its carry must move on.
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

// whole + the sum of `terms`, rounded once. `scratch` is cleared first; it is not needed for up to two terms.
double ExactTotal(uint64_t whole, std::span<const double> terms, ExactSum& scratch);

}  // namespace persia::agent

#include "merge/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "test_seed.h"

namespace persia::agent {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

double SumOf(const std::vector<double>& terms, uint64_t whole = 0) {
  ExactSum sum;
  sum.AddWhole(whole);
  for (const double term : terms) {
    sum.Add(term);
  }
  return sum.Round();
}

TEST(ExactSumTest, NoTermsAreZero) { EXPECT_EQ(SumOf({}), 0); }

TEST(ExactSumTest, OneTermIsItself) {
  for (const double term : {1.0, -1.0, 0.1, -0.1, kTiny, -kTiny, 3 * kTiny, std::numeric_limits<double>::min(), kLargest,
                            -kLargest, 4503599627370496.5, 9007199254740993.0, 0x1.fffffffffffffp-1022, 0x1p-1021}) {
    EXPECT_EQ(SumOf({term}), term) << term;
  }
}

TEST(ExactSumTest, WhatPlainAdditionLosesIsKept) {
  EXPECT_EQ(SumOf({1e100, 1, -1e100}), 1);
  EXPECT_EQ(SumOf({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}), 1);
  EXPECT_EQ(SumOf({1, kTiny, -1}), kTiny);
  EXPECT_EQ(SumOf({-1, -kTiny, 1}), -kTiny);
}

TEST(ExactSumTest, TiesGoToEvenAndAnythingBelowBreaksThem) {
  const double one_up = std::nextafter(1.0, 2);
  const double half = 0x1p-53;  // half a unit in the last place of 1
  EXPECT_EQ(SumOf({1, half}), 1);
  EXPECT_EQ(SumOf({one_up, half}), std::nextafter(one_up, 2));
  EXPECT_EQ(SumOf({1, half, kTiny}), one_up);
  EXPECT_EQ(SumOf({-1, -half, -kTiny}), -one_up);
  EXPECT_EQ(SumOf({1, half, -kTiny}), 1);
  EXPECT_EQ(SumOf({0x1.fffffffffffffp0, half}), 2);  // the carry goes up into the exponent
}

TEST(ExactSumTest, OnlyTheSumItselfCanOverflow) {
  EXPECT_EQ(SumOf({kLargest, kLargest, -kLargest, -kLargest}), 0);
  EXPECT_EQ(SumOf({kLargest, kLargest, -kLargest}), kLargest);
  EXPECT_EQ(SumOf({kLargest, kLargest}), kInfinity);
  EXPECT_EQ(SumOf({-kLargest, -kLargest}), -kInfinity);
  EXPECT_EQ(SumOf({kLargest, 0x1p969}), kLargest);   // below half a unit in the last place
  EXPECT_EQ(SumOf({kLargest, 0x1p970}), kInfinity);  // half: rounds up to even, which is infinite
}

TEST(ExactSumTest, InfinitiesAndNaNsActAsInPlainAddition) {
  EXPECT_EQ(SumOf({kInfinity, 1, -kLargest}), kInfinity);
  EXPECT_EQ(SumOf({1, -kInfinity}), -kInfinity);
  EXPECT_TRUE(std::isnan(SumOf({kInfinity, -kInfinity})));
  EXPECT_TRUE(std::isnan(SumOf({std::nan(""), kInfinity})));
}

TEST(ExactSumTest, WholeNumbersAreExact) {
  EXPECT_EQ(SumOf({}, 1), 1);
  EXPECT_EQ(SumOf({0.5}, 9007199254740992), 9007199254740992.0);  // a tie, to even
  EXPECT_EQ(SumOf({0.5, kTiny}, 9007199254740993), 9007199254740994.0);
  EXPECT_EQ(SumOf({}, UINT64_MAX), 18446744073709551616.0);
  EXPECT_EQ(SumOf({-18446744073709551616.0}, UINT64_MAX), -1);
}

TEST(ExactSumTest, APowerOfTwoBelowZeroKeepsItsSize) {
  // A negative sum whose digits below the top one are all 0.
  for (int exponent = -1074; exponent < 1024; ++exponent) {
    const double term = -std::ldexp(1.0, exponent);
    ASSERT_EQ(SumOf({term}), term) << exponent;
    ASSERT_EQ(SumOf({term, 1, -1}), term) << exponent;
  }
}

TEST(ExactSumTest, ManyEqualTermsBelowZeroAreTheirProduct) {
  // 8192 times -2^33 fills one digit to exactly -2^32, whose magnitude needs one more digit.
  ExactSum sum;
  for (int i = 0; i < 8192; ++i) {
    sum.Add(-0x1p33);
  }
  EXPECT_EQ(sum.Round(), -0x1p46);
}

TEST(ExactSumTest, TermsCanBeAddedAfterRounding) {
  ExactSum sum;
  sum.Add(-3);
  EXPECT_EQ(sum.Round(), -3);
  EXPECT_EQ(sum.Round(), -3);
  sum.Add(1e300);
  EXPECT_EQ(sum.Round(), 1e300);
  sum.Add(-1e300);
  EXPECT_EQ(sum.Round(), -3);
  sum.Clear();
  EXPECT_EQ(sum.Round(), 0);
  sum.Add(kInfinity);
  sum.Clear();
  sum.Add(2);
  EXPECT_EQ(sum.Round(), 2);
}

// Compares with 128-bit sums of multiples of 2^-60 below 2^66, which the compiler rounds to double once, to nearest even.
TEST(ExactSumTest, EqualsLongArithmeticInAnyOrder) {
  __extension__ using Wide = __int128;
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 20000; ++round) {
    std::vector<double> terms;
    Wide exact = 0;
    const size_t count = 1 + random() % 12;
    for (size_t i = 0; i < count; ++i) {
      const auto mantissa = static_cast<int64_t>(random() >> (11 + random() % 52));
      const int shift = static_cast<int>(random() % 61);
      const bool negative = random() % 2 == 0;
      exact += (negative ? -1 : 1) * (static_cast<Wide>(mantissa) << shift);
      terms.push_back(std::ldexp(static_cast<double>(negative ? -mantissa : mantissa), shift - 60));
    }
    const double expected = std::ldexp(static_cast<double>(exact), -60);
    for (int order = 0; order < 3; ++order) {
      ASSERT_EQ(SumOf(terms), expected) << "round " << round;
      ExactSum scratch;
      ASSERT_EQ(ExactTotal(0, terms, scratch), expected) << "round " << round;
      std::shuffle(terms.begin(), terms.end(), random);
    }
  }
}

TEST(ExactSumTest, OrderDoesNotMatterOverAllExponents) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 3000; ++round) {
    std::vector<double> terms;
    for (int i = 0; i < 40; ++i) {
      const auto exponent = static_cast<int>(random() % 2040) - 1070;
      terms.push_back(std::ldexp(static_cast<double>(static_cast<int64_t>(random())), exponent - 63));
    }
    const double sum = SumOf(terms);
    std::shuffle(terms.begin(), terms.end(), random);
    ASSERT_EQ(SumOf(terms), sum) << "round " << round;
    // Adding and subtracting the same terms leaves 0.
    std::vector<double> both = terms;
    for (const double term : terms) {
      both.push_back(-term);
    }
    std::shuffle(both.begin(), both.end(), random);
    ASSERT_EQ(SumOf(both), 0) << "round " << round;
  }
}

TEST(ExactSumTest, ShortSumsGiveTheSameResult) {
  ExactSum scratch;
  EXPECT_EQ(ExactTotal(7, {}, scratch), 7);
  const std::vector<double> one = {0.25};
  EXPECT_EQ(ExactTotal(7, one, scratch), 7.25);
  EXPECT_EQ(ExactTotal(9007199254740993, one, scratch), SumOf(one, 9007199254740993));
  const std::vector<double> two = {0.5, 0x1p-60};
  EXPECT_EQ(ExactTotal(0, two, scratch), SumOf(two));
  EXPECT_EQ(ExactTotal(9007199254740991, two, scratch), SumOf(two, 9007199254740991));
}

}  // namespace
}  // namespace persia::agent

#include "format/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "format/shortest_digits.h"

namespace persia::agent {
namespace {

std::string NumberText(double number) {
  char text[kNumberRoom];
  return {text, PrintNumber(text, number)};
}

TEST(NumberTest, WholeNumbersArePrintedAsIntegers) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(1), "1");
  EXPECT_EQ(NumberText(-42), "-42");
  EXPECT_EQ(NumberText(1000000), "1000000");
  EXPECT_EQ(NumberText(0x1p53), "9007199254740992");
  EXPECT_EQ(NumberText(-0x1p53), "-9007199254740992");
}

TEST(NumberTest, WholeNumbersOfAnySizeLookAsTheStandardLibraryPrintsThem) {
  std::mt19937_64 random(20261122);
  for (int i = 0; i < 200000; ++i) {
    const auto number = static_cast<int64_t>(static_cast<uint64_t>(random()) >> (11 + i % 53)) * (i % 3 == 0 ? -1 : 1);
    ASSERT_EQ(NumberText(static_cast<double>(number)), std::to_string(number));
  }
  for (int64_t power = 1; power < 9'000'000'000'000'000; power *= 10) {
    for (const int64_t number : {power - 1, power, power + 1, -power}) {
      ASSERT_EQ(NumberText(static_cast<double>(number)), std::to_string(number));
    }
  }
}

TEST(NumberTest, FractionsArePrintedInTheirShortestForm) {
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(NumberText(0.005), "0.005");
  EXPECT_EQ(NumberText(-2.5), "-2.5");
  EXPECT_EQ(NumberText(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(NumberText(1e-9), "1e-09");
}

TEST(NumberTest, ZeroKeepsItsSign) { EXPECT_EQ(NumberText(-0.0), "-0"); }

TEST(NumberTest, WhatIsNotANumberHasPrometheusNames) {
  EXPECT_EQ(NumberText(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(NumberText(-std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(NumberText(-std::numeric_limits<double>::infinity()), "-Inf");
}

TEST(NumberTest, TheLongestNumberFits) {
  EXPECT_EQ(NumberText(-std::numeric_limits<double>::min()).size(), kMaxNumberSize);
  EXPECT_LE(NumberText(-std::numeric_limits<double>::max()).size(), kMaxNumberSize);
}

TEST(NumberTest, EveryNumberReadsBackAsItself) {
  std::mt19937_64 random(20240607);
  for (int i = 0; i < 200000; ++i) {
    const auto number = std::bit_cast<double>(static_cast<uint64_t>(random()));
    if (!std::isfinite(number)) continue;
    const std::string text = NumberText(number);
    ASSERT_EQ(std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr)), std::bit_cast<uint64_t>(number)) << text;
    const double near_whole = std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -10);
    ASSERT_EQ(std::strtod(NumberText(near_whole).c_str(), nullptr), near_whole);
  }
}

TEST(NumberTest, FractionsLookAsTheStandardLibraryPrintsThem) {
  std::mt19937_64 random(20261121);
  const auto check = [](double number) {
    char text[kMaxNumberSize];
    if (number == std::floor(number) && std::fabs(number) <= 0x1p53) return;  // printed as an integer
    ASSERT_EQ(NumberText(number), std::string(text, std::to_chars(text, text + kMaxNumberSize, number).ptr));
  };
  for (int i = 0; i < 200000; ++i) {
    const auto number = std::bit_cast<double>(static_cast<uint64_t>(random()));
    if (std::isfinite(number)) check(number);
    // Few digits and many, on both sides of where the exponent makes a number shorter.
    const auto digits = static_cast<double>(random() % (i % 2 == 0 ? 1000 : 1'000'000'000'000));
    check((i % 3 == 0 ? -digits : digits) * std::pow(10, -static_cast<int>(random() % 25)));
  }
  check(std::numeric_limits<double>::denorm_min());
  check(std::numeric_limits<double>::min());
  check(std::nextafter(std::numeric_limits<double>::min(), 1));
  for (int exponent = -1074; exponent < 53; ++exponent) {  // where the next number below is closer than the next above
    const double power = std::ldexp(1, exponent);
    for (const double number : {power, std::nextafter(power, 0), std::nextafter(power, 1e300), 3 * power, 5 * power})
      check(number);
  }
  for (int i = 0; i < 1000; ++i) {  // right between two decimals
    check(std::ldexp(static_cast<double>((random() >> 11) | 1), -1 - i % 4));
  }
  check(std::nextafter(0x1p53, 0) / 2);
}

TEST(ShortestDigitsTest, AreKnownOfWhatIsMeasured) {
  std::mt19937_64 random(20261122);
  Decimal decimal;
  for (int i = 0; i < 200000; ++i) {
    const double share = static_cast<double>((random() >> 11) | 1) * 0x1p-53;
    ASSERT_TRUE(ShortestDigits(share, decimal)) << share;
    const double seconds = static_cast<double>(10 * (random() % 100'000'000) + 1) / 1000;
    ASSERT_TRUE(ShortestDigits(seconds, decimal)) << seconds;
  }
}

TEST(LabelTextTest, IsWhatTheGatewayPrints) {
  const struct {
    double number;
    const char* text;
  } kCases[] = {{0, "0"},
                {1, "1"},
                {0.5, "0.5"},
                {0.0001, "0.0001"},
                {0.00025, "0.00025"},
                {1e-05, "1e-05"},
                {10000, "10000"},
                {123456, "123456"},
                {1e6, "1e+06"},
                {1234567, "1.234567e+06"},
                {-2.5, "-2.5"},
                {1e21, "1e+21"},
                {1.0 / 3, "0.3333333333333333"},
                {0x1p53, "9.007199254740992e+15"},
                {std::numeric_limits<double>::infinity(), "+Inf"}};
  for (const auto& [number, text] : kCases) EXPECT_EQ(LabelText(number), text);
}

}  // namespace
}  // namespace persia::agent

#include "format/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "test_seed.h"

namespace persia::agent {
namespace {

std::string NumberText(double number) {
  char text[kMaxNumberSize];
  return {text, PrintNumber(text, number)};
}

TEST(NumberTest, WholeNumbersOfAnySizeArePrintedAsIntegers) {
  EXPECT_EQ(NumberText(0x1p53), "9007199254740992");
  EXPECT_EQ(NumberText(-0x1p53), "-9007199254740992");
  std::mt19937_64 random(TestSeed());
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
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 200000; ++i) {
    const auto number = std::bit_cast<double>(static_cast<uint64_t>(random()));
    if (!std::isfinite(number)) continue;
    const std::string text = NumberText(number);
    ASSERT_EQ(std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr)), std::bit_cast<uint64_t>(number)) << text;
    const double near_whole = std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -10);
    ASSERT_EQ(std::strtod(NumberText(near_whole).c_str(), nullptr), near_whole);
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

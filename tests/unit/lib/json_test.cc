#include "json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace persia::metrics::json {
namespace {

std::string Number(double value) {
  std::string out;
  AppendNumber(out, value);
  return out;
}

TEST(JsonNumber, StaysAFloatAndReadsBackAsItself) {
  EXPECT_EQ(Number(12.5), "12.5");
  EXPECT_EQ(Number(3), "3.0");
  EXPECT_EQ(Number(-0.0), "-0.0");
  EXPECT_EQ(Number(1e300), "1e+300");
  EXPECT_EQ(Number(0.1), "0.1");
  EXPECT_EQ(Number(std::nan("")), "NaN");
  EXPECT_EQ(Number(std::numeric_limits<double>::infinity()), "Infinity");
  EXPECT_EQ(Number(-std::numeric_limits<double>::infinity()), "-Infinity");
}

}  // namespace
}  // namespace persia::metrics::json

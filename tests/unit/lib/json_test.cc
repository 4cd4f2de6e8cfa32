#include "json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

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

TEST(JsonString, EscapesEachControlCharacterAndNothingElse) {
  std::string all;
  for (int c = 0; c < 0x24; ++c) all += static_cast<char>(c);
  std::string out;
  AppendString(out, all + "\\/\x7f\xc3\xbc");
  EXPECT_EQ(out, R"("\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u0008\t\n\u000b\u000c\r\u000e\u000f)"
                 R"(\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f)"
                 " !\\\"#\\\\/\x7f\xc3\xbc\"");
}

}  // namespace
}  // namespace persia::metrics::json

#include "top/shown_text.h"

#include <gtest/gtest.h>

namespace persia::agent {
namespace {

TEST(Shown, ReplacesWhatControlsTheTerminal) {
  EXPECT_EQ(Shown("a\x1b[2Jb\n\x7f", 20, Charset::kUtf8), "a?[2Jb??");
  EXPECT_EQ(Shown("\xff\xc3", 20, Charset::kUtf8), "??");
}

TEST(Shown, IsAsciiForAnAsciiTerminal) { EXPECT_EQ(Shown("caf\xc3\xa9", 20, Charset::kAscii), "caf?"); }

TEST(Shown, MarksTextThatDoesNotFit) {
  EXPECT_EQ(Shown("trainer", 7, Charset::kAscii), "trainer");
  EXPECT_EQ(Shown("trainers", 7, Charset::kAscii), "traine~");
  EXPECT_EQ(Shown("ab", 1, Charset::kAscii), "~");
  EXPECT_EQ(Shown("ab", 0, Charset::kAscii), "");
}

TEST(Shown, Numbers) {
  EXPECT_EQ(ShownBytes(0), "0 B");
  EXPECT_EQ(ShownBytes(1.5e9), "1.40 GiB");
  EXPECT_EQ(ShownBytes(1e300).substr(0, 7), "1000000");
  EXPECT_EQ(ShownNumber(12'345), "12.3k");
  EXPECT_EQ(ShownNumber(0), "0");
  EXPECT_EQ(ShownNumber(-1500), "-1.50k");
}

TEST(Shown, Spans) {
  EXPECT_EQ(ShownSpan(-5), "0s");
  EXPECT_EQ(ShownSpan(59'999), "59s");
  EXPECT_EQ(ShownSpan(192'000), "3m12s");
  EXPECT_EQ(ShownSpan(7'500'000), "2h05m");
  EXPECT_EQ(ShownSpan(90'000'000), "1d01h");
}

TEST(NaturalLess, ComparesNumbersByValue) {
  EXPECT_TRUE(NaturalLess("rep_2", "rep_10"));
  EXPECT_FALSE(NaturalLess("rep_10", "rep_2"));
  EXPECT_TRUE(NaturalLess("rep_2", "rep_2/1"));
  EXPECT_TRUE(NaturalLess("a", "b2"));
  EXPECT_FALSE(NaturalLess("x", "x"));
  EXPECT_TRUE(NaturalLess("r99999999999999999999998", "r99999999999999999999999"));
}

}  // namespace
}  // namespace persia::agent

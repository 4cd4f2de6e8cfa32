#include "job/emit_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr double kInf = std::numeric_limits<double>::infinity();

class EmitLineTest : public ::testing::Test {
 protected:
  // The reason of the problem.
  std::string Read(const std::string& text) {
    std::string padded = text;
    padded.resize(text.size() + EmitLineParser::kPadding, '\xff');
    const EmitProblem* problem = parser_.Parse(std::string_view(padded).substr(0, text.size()), line_);
    return problem == nullptr ? "" : std::string(problem->reason);
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> Values() const {
    return {line_.values.begin(), line_.values.end()};
  }

  EmitLineParser parser_;
  EmitLine line_;
};

TEST_F(EmitLineTest, NumbersByName) {
  EXPECT_EQ(Read(R"({"alexnet.batchsize16.latency": 12.5, "steps": 3, "large": 18446744073709551615, "n": -0.0})"), "");
  EXPECT_THAT(Values(), ElementsAre(Pair("alexnet.batchsize16.latency", 12.5), Pair("steps", 3),
                                    Pair("large", 18446744073709551615.0), Pair("n", 0)));
  EXPECT_EQ(Read(R"({"caf\u00e9": 1})"), "");
  EXPECT_THAT(Values(), ElementsAre(Pair("caf\xc3\xa9", 1)));
}

TEST_F(EmitLineTest, AListIsSeveralValues) {
  EXPECT_EQ(Read(R"({"loss": [0.5, 0.25, 1], "none": []})"), "");
  EXPECT_THAT(Values(), ElementsAre(Pair("loss", 0.5), Pair("loss", 0.25), Pair("loss", 1)));
}

TEST_F(EmitLineTest, LabelsApplyToTheWholeLine) {
  EXPECT_EQ(Read(R"({"a": 1, "labels": {"gpu": "a100", "zone": ""}, "b": 2})"), "");
  EXPECT_THAT(Values(), ElementsAre(Pair("a", 1), Pair("b", 2)));
  EXPECT_THAT(line_.labels, ElementsAre(Pair("gpu", "a100"), Pair("zone", "")));
  EXPECT_EQ(Read(R"({"a": 1})"), "");
  EXPECT_THAT(line_.labels, IsEmpty());
  EXPECT_EQ(Read(R"({"labels": 3})"), "") << "a metric of that name";
  EXPECT_THAT(Values(), ElementsAre(Pair("labels", 3)));
}

TEST_F(EmitLineTest, LinesForwardedByThePusher) {
  EXPECT_EQ(Read(R"({"now": 1574213883, "metrics": {"a": 1, "b": 2}, "labels": {"job": "x"}})"), "");
  EXPECT_THAT(Values(), ElementsAre(Pair("a", 1), Pair("b", 2)));
  EXPECT_THAT(line_.labels, ElementsAre(Pair("job", "x")));
}

TEST_F(EmitLineTest, NonFiniteNumbers) {
  EXPECT_EQ(Read(R"({"a": NaN, "NaN": Infinity, "c \"NaN\\": [-Infinity, 2]})"), "");
  ASSERT_EQ(line_.values.size(), 4U);
  EXPECT_TRUE(std::isnan(line_.values[0].second));
  EXPECT_THAT(line_.values[1], Pair("NaN", kInf));
  EXPECT_THAT(line_.values[2], Pair("c \"NaN\\", -kInf));
  EXPECT_THAT(line_.values[3], Pair("c \"NaN\\", 2));
}

TEST_F(EmitLineTest, AnIntegerOfAnySizeIsTheNearestFloat) {
  EXPECT_EQ(
      Read(
          R"({"a": 18446744073709551616, "b": [-9223372036854775809, 100000000000000000000000], "c 36893488147419103232": 2})"),
      "");
  EXPECT_THAT(Values(), ElementsAre(Pair("a", 18446744073709551616.0), Pair("b", -9223372036854775809.0), Pair("b", 1e23),
                                    Pair("c 36893488147419103232", 2)));
}

TEST_F(EmitLineTest, AnIntegerBeyondTheRangeOfFloatsCostsItself) {
  const std::string huge = "1" + std::string(400, '0');
  EXPECT_EQ(Read("{\"a\": 1, \"b\": " + huge + ", \"c\": [2, -" + huge + "], \"d\": NaN}"), "value");
  ASSERT_EQ(line_.values.size(), 3U);
  EXPECT_THAT(line_.values[0], Pair("a", 1));
  EXPECT_THAT(line_.values[1], Pair("c", 2));
  EXPECT_EQ(line_.values[2].first, "d");
}

TEST_F(EmitLineTest, AFloatBeyondTheRangeCostsItself) {
  EXPECT_EQ(Read(R"({"a": 1e400, "b": 2, "c": [3, -1.8e308], "d": 1e-400})"), "value");
  EXPECT_THAT(Values(), ElementsAre(Pair("b", 2), Pair("c", 3), Pair("d", 0)));
}

TEST_F(EmitLineTest, ALiteralOfNoNumberIsNoNameAndNoLabel) {
  EXPECT_EQ(Read(R"({NaN: 1, "v": 3})"), "json");
  EXPECT_EQ(Read(R"({"v": 1, "labels": {"k": NaN}})"), "labels");
  EXPECT_THAT(line_.labels, ::testing::IsEmpty());
}

TEST_F(EmitLineTest, ALoneSurrogateStaysAnEscapeSequence) {
  EXPECT_EQ(
      Read(R"({"high\ud83d": 1, "low\uDE00": 2, "pair\ud83d\ude00": 3, "\ud83d\ud83d\ude00": 4, "\\ud83d": 5, "plain": 6})"),
      "");
  EXPECT_THAT(Values(), ElementsAre(Pair(R"(high\ud83d)", 1), Pair(R"(low\uDE00)", 2), Pair("pair\xf0\x9f\x98\x80", 3),
                                    Pair("\\ud83d\xf0\x9f\x98\x80", 4), Pair(R"(\ud83d)", 5), Pair("plain", 6)));
  EXPECT_EQ(Read(R"({"a": 1, "labels": {"zone": "\ud83d"}})"), "");
  EXPECT_THAT(line_.labels, ElementsAre(Pair("zone", R"(\ud83d)")));
  EXPECT_EQ(Read(R"({"a": 1, "b": "\udc00"})"), "value");
  EXPECT_THAT(Values(), ElementsAre(Pair("a", 1)));
  EXPECT_EQ(Read(R"({"a\ud8)"), "json");
}

TEST_F(EmitLineTest, WellFormedValuesOfABadLineAreKept) {
  EXPECT_EQ(Read(R"({"a": 1, "b": "two", "c": 3, "d": [1, null], "e": true})"), "value");
  EXPECT_THAT(Values(), ElementsAre(Pair("a", 1), Pair("c", 3), Pair("d", 1)));
  EXPECT_EQ(Read(R"({"a": 1, "labels": {"gpu": 3, "zone": "b"}})"), "labels");
  EXPECT_THAT(Values(), ElementsAre(Pair("a", 1)));
  EXPECT_THAT(line_.labels, ElementsAre(Pair("zone", "b")));
}

TEST_F(EmitLineTest, MalformedLines) {
  for (const char* text : {"garbage", "[1, 2]", "12", R"({"a": 1)", R"({"a": 1} {"b": 2})", "\"NaN\"", "NaN",
                           "{\"a\": 1, \"b\": Nan}", "{\"\xff\": 1}", "\r"}) {
    EXPECT_EQ(Read(text), "json") << text;
    EXPECT_THAT(Values(), IsEmpty()) << text;
  }
  EXPECT_EQ(Read("{}"), "empty");
  EXPECT_EQ(Read(R"({"labels": {"a": "b"}})"), "empty");
  EXPECT_EQ(Read(R"({"a": "\u0001NaN"})"), "") << "the string that replaces NaN is parsed as NaN";
  EXPECT_EQ(Read(std::string(100'000, '[')), "json");
}

}  // namespace
}  // namespace persia::agent

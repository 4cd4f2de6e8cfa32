#include "web/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "web/history_fixture.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

class RangeApiTest : public ::testing::Test {
 protected:
  JsonAnswer Ask(const std::string& query) const { return AnswerRange(query, entries_, nullptr); }
  Json Read(const std::string& query) const {
    const JsonAnswer answer = Ask(query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Json::parse(answer.body);
  }

  std::vector<History::Entry> entries_ = {
      {1000, MakeSnapshot({{"<b>size", MetricType::kGauge, {}, {{{{"feat", "a\xff\"<"}}, {7}}}},
                           {"latency", MetricType::kHistogram, {1, 2}, {{{}, {0, 0, 0, 0}}}}})},
      {2000,
       MakeSnapshot({{"<b>size", MetricType::kGauge, {}, {{{{"feat", "a\xff\"<"}}, {std::numeric_limits<double>::infinity()}}}},
                     {"latency", MetricType::kHistogram, {1, 2}, {{{}, {15, 10, 10, 0}}}}})}};
};

TEST_F(RangeApiTest, AnswersWithTheValuesOfAChart) {
  const Json latency = Read("name=latency&q=0.25,0.75&step=1");
  EXPECT_EQ(latency.dump(),
            R"({"name":"latency","type":"histogram","as":"quantile","start_ms":1000,"step_ms":1000,"points":2,"series":[)"
            R"({"labels":{"instance":"rep_0"},"values":[null,0.75]},)"
            R"({"labels":{"instance":"rep_0"},"q":0.25,"values":[null,1.0]},)"
            R"({"labels":{"instance":"rep_0"},"q":0.75,"values":[null,2.0]}],"left_out":0})");
}

TEST_F(RangeApiTest, QuantilesAboveTheLastBoundAreListed) {
  const auto of = [](double above) { return TestFamily{"latency", MetricType::kHistogram, {1, 2}, {{{}, {5, 0, 0, above}}}}; };
  entries_ = {{1000, MakeSnapshot({of(0)})}, {2000, MakeSnapshot({of(9)})}};
  const Json series = Read("name=latency&q=0.5&step=1")["series"];
  EXPECT_EQ(series[1].dump(), R"({"labels":{"instance":"rep_0"},"q":0.5,"values":[null,2.0],"above":[1]})");
  EXPECT_FALSE(series[0].contains("above"));
}

TEST_F(RangeApiTest, ManySeriesAreBandsAndThoseThatDiffer) {
  std::vector<TestSeries> ranks;
  for (int rank = 0; rank < 1500; ++rank)
    ranks.push_back(
        {{{"phase", rank % 2 == 0 ? "data" : "sync"}, {"process", std::to_string(rank)}}, {rank == 700 ? 9.0 : 1.0}});
  entries_ = {{1000, MakeSnapshot({{"seconds", MetricType::kGauge, {}, ranks}})}};
  const Json answer = Read("name=seconds&bands=true");
  ASSERT_EQ(answer["bands"].size(), 2U);
  EXPECT_EQ(answer["bands"][0].dump(),
            R"({"labels":{"phase":"data"},"sets":750,"usual":0.0,"min":[1.0],"median":[1.0],"max":[9.0]})");
  EXPECT_EQ(answer["left_out"], 0) << "more than lines may be";
  EXPECT_EQ(answer["not_finite"], 0);
  ASSERT_EQ(answer["series"].size(), 120U);
  const auto apart = std::ranges::find_if(answer["series"], [](const Json& line) { return line.contains("apart"); });
  ASSERT_NE(apart, answer["series"].end());
  EXPECT_EQ((*apart)["labels"]["process"], "700");
  EXPECT_EQ(Read("name=seconds")["series"].size(), 50U) << "as lines";
}

TEST_F(RangeApiTest, InvalidUtf8IsReplacedAndInfinityIsNull) {
  const Json size = Read("name=%3Cb%3Esize&step=1");
  EXPECT_EQ(size["series"][0]["labels"]["feat"], "a\xef\xbf\xbd\"<");
  EXPECT_EQ(size["series"][0]["values"].dump(), "[7.0,null]");
}

TEST_F(RangeApiTest, ValuesThatAreNoNumbersAreListedBesideTheOthers) {
  EXPECT_EQ(Read("name=%3Cb%3Esize&step=1")["series"][0]["not_finite"].dump(), R"([[1,"+Inf"]])");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto with = [](double value) {
    return MakeSnapshot({{"loss", MetricType::kGauge, {}, {{{}, {value}}, {{{"part", "b"}}, {1}}}}});
  };
  entries_ = {{1000, with(2)}, {2000, with(nan)}, {3000, with(kAbsentValue)}, {4000, with(-HUGE_VAL)}};
  const Json series = Read("name=loss&step=1")["series"];
  EXPECT_EQ(series[0]["values"].dump(), "[2.0,null,null,null]");
  EXPECT_EQ(series[0]["not_finite"].dump(), R"([[1,"NaN"],[3,"-Inf"]])") << "a gauge that is not set has no value at all";
  EXPECT_FALSE(series[1].contains("not_finite"));
}

TEST_F(RangeApiTest, AFamilyTooYoungForTheHistoryHasNoSeriesYet) {
  const auto newest = MakeSnapshot({{"young", MetricType::kHistogram, {1}, {{{}, {1, 0, 1}}}}});
  for (const auto& entries : {entries_, {}}) {
    const JsonAnswer answer = AnswerRange("name=young&start=1000&end=2000&step=0.5", entries, newest.get());
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(Json::parse(answer.body).dump(),
              R"({"name":"young","type":"histogram","as":"quantile","start_ms":1000,"step_ms":500,"points":3,"series":[],)"
              R"("left_out":0})");
    for (const char* query : {"name=young", "name=young&start=1500", "name=young&end=1500"}) {
      EXPECT_EQ(AnswerRange(query, entries, newest.get()).status, 200) << query;
    }
    EXPECT_EQ(AnswerRange("name=none", entries, newest.get()).status, 404);
  }
}

TEST_F(RangeApiTest, TakesTimesLimitAndLabels) {
  const Json some = Read("name=latency&as=rate&start=2000&end=2000&step=0.5&limit=1&match.instance=rep_0");
  EXPECT_EQ(some["points"], 1);
  EXPECT_EQ(some["series"][0]["values"].dump(), "[20.0]");
  EXPECT_THAT(Read("name=latency&match.instance=rep_1")["series"], IsEmpty());
}

TEST_F(RangeApiTest, RefusesInvalidParametersAndQuotesThem) {
  const struct {
    std::string query;
    int status;
    std::string why;
  } cases[] = {
      {"", 400, "name: missing"},
      {"name=none", 404, R"(no family \"none\")"},
      {"name=latency&as=median", 400, R"(as: \"median\" is not value, rate, mean or quantile)"},
      {"name=latency&as=value", 400, "no single value"},
      {"name=latency&q=", 400, "q: "},
      {"name=latency&q=0.5,2", 400, R"(q: \"0.5,2\" is not 1 to 8 numbers from 0 to 1)"},
      {"name=latency&q=nan", 400, "q: "},
      {"name=latency&q=0,0,0,0,0,0,0,0,0", 400, "q: "},
      {"name=latency&start=-1", 400, R"(start: \"-1\" is not a number of milliseconds)"},
      {"name=latency&end=99999999999999999", 400, "end: "},
      {"name=latency&step=0", 400, R"(step: \"0\" is not a number of seconds from 0.1 to 86400)"},
      {"name=latency&step=inf", 400, "step: "},
      {"name=latency&limit=1001", 400, R"(limit: \"1001\" is not a number from 1 to 1000)"},
      {"name=latency&bands=1", 400, R"(bands: \"1\" is not true or false)"},
      {"name=latency&colour=red", 400, R"(unknown parameter \"colour\")"},
  };
  for (const auto& [query, status, why] : cases) {
    const JsonAnswer answer = Ask(query);
    EXPECT_EQ(answer.status, status) << query;
    EXPECT_THAT(answer.body, StartsWith(R"({"error":")")) << query;
    EXPECT_THAT(answer.body, HasSubstr(why)) << query;
  }
}

TEST(ParseParameters, DecodesPercentEncoding) {
  EXPECT_THAT(
      ParseParameters("a=b%2Fc+d&&e&=f&g=%zz%4&h=%2F&%41=%41"),
      ElementsAre(Pair("a", "b/c d"), Pair("e", ""), Pair("", "f"), Pair("g", "%zz%4"), Pair("h", "/"), Pair("A", "A")));
  EXPECT_THAT(ParseParameters(""), IsEmpty());
}

}  // namespace
}  // namespace persia::agent

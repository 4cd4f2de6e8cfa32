#include "web/series_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "web/history_fixture.h"

namespace persia::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(AnswerMetadata, KnowsThePersiaTables) {
  const auto newest = MakeSnapshot({{"index_miss_count", MetricType::kCounter, {}, {{{{"shard", "1"}}, {1}}}},
                                    {"lookup_rpc_time_cost", MetricType::kHistogram, {1}, {{{}, {0, 0, 0}}}},
                                    {"lookup_rpc_time_cost_sec", MetricType::kGauge, {}, {{{}, {0}}}},
                                    {"my_app_sec", MetricType::kGauge, {}, {{{}, {0}}}},
                                    {"staleness_sec", MetricType::kGauge, {}, {{{}, {0}}}}});
  const Json families = Json::parse(AnswerMetadata(newest.get()).body)["families"];
  EXPECT_EQ(families[0].dump(),
            R"({"name":"index_miss_count","type":"counter","help":"","unit":"","table":"accuracy","series":1,)"
            R"("labels":["instance","shard"]})");
  EXPECT_EQ(families[1]["table"], "efficiency");
  EXPECT_EQ(families[2]["table"], "efficiency");
  EXPECT_EQ(families[3]["table"], "");
  EXPECT_EQ(families[4]["table"], "") << "staleness is no time cost";
  EXPECT_EQ(AnswerMetadata(nullptr).body, "{\"families\":[]}\n");
}

TEST(AnswerSeries, ListsLabelSetsUpToTheLimit) {
  const auto newest = MakeSnapshot({{"size", MetricType::kGauge, {}, {{{{"feat", "a"}}, {1}}, {{{"feat", "b"}}, {1}}}}});
  EXPECT_EQ(AnswerSeries("name=size", newest.get()).body,
            "{\"name\":\"size\",\"left_out\":0,\"series\":[{\"instance\":\"rep_0\",\"feat\":\"a\"},{\"instance\":\"rep_0\","
            "\"feat\":\"b\"}]}\n");
  EXPECT_THAT(AnswerSeries("name=size&limit=1", newest.get()).body, HasSubstr("\"left_out\":1"));
  const auto two = MakeSnapshot({{"h", MetricType::kHistogram, {1}, {{{{"role", "trainer"}}, {0, 0, 0}}}},
                                 {"h", MetricType::kHistogram, {2}, {{{{"role", "server"}}, {0, 0, 0}}}}});
  EXPECT_THAT(AnswerSeries("name=h", two.get()).body, AllOf(HasSubstr("trainer"), HasSubstr("server")));
  EXPECT_THAT(AnswerSeries("name=h&limit=1", two.get()).body, HasSubstr("\"left_out\":1"));
  EXPECT_EQ(AnswerSeries("name=other", newest.get()).status, 404);
  EXPECT_EQ(AnswerSeries("name=size", nullptr).status, 404);
  EXPECT_EQ(AnswerSeries("", newest.get()).status, 400);
  EXPECT_THAT(AnswerSeries("name=size&limit=0", newest.get()).body,
              HasSubstr(R"(limit: \"0\" is not a number from 1 to 10000)"));
  EXPECT_THAT(AnswerSeries("size", newest.get()).body, HasSubstr(R"(unknown parameter \"size\")"));
}

}  // namespace
}  // namespace persia::agent

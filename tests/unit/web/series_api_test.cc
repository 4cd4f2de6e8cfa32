#include "web/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
            R"({"name":"index_miss_count","type":"counter","help":"","unit":"","group":"","table":"accuracy","series":1,)"
            R"("labels":["instance","shard"]})");
  EXPECT_EQ(families[1]["table"], "efficiency");
  EXPECT_EQ(families[2]["table"], "efficiency");
  EXPECT_EQ(families[3]["table"], "");
  EXPECT_EQ(families[4]["table"], "") << "staleness is no time cost";
  EXPECT_EQ(AnswerMetadata(nullptr).body, "{\"families\":[]}\n");
}

TEST(AnswerSearch, FindsWordsInNamesHelpAndLabelValues) {
  const auto newest =
      MakeSnapshot({{"ids_total", MetricType::kCounter, {}, {{{{"feat", "Users"}}, {1}}, {{{"feat", "items"}}, {1}}}},
                    {"loss", MetricType::kGauge, {}, {{{{"part", "users"}}, {0}}}},
                    {"steps_total", MetricType::kCounter, {}, {{{}, {7}}}}});
  const auto found = [&](const std::string& query) { return AnswerSearch(query, newest.get()).body; };
  EXPECT_EQ(found("q=users"), "{\"families\":[\"ids_total\",\"loss\"]}\n");
  EXPECT_EQ(found("q=ITEMS+ids"), "{\"families\":[\"ids_total\"]}\n") << "a value and the name";
  EXPECT_EQ(found("q=users%20items"), "{\"families\":[]}\n") << "no series has both";
  EXPECT_EQ(found("q=loss+rep_0"), "{\"families\":[\"loss\"]}\n") << "a value of the identity";
  EXPECT_EQ(found("q=_total"), "{\"families\":[\"ids_total\",\"steps_total\"]}\n");
  EXPECT_EQ(AnswerSearch("q=loss", nullptr).body, "{\"families\":[]}\n");
}

TEST(AnswerSearch, RefusesAMalformedQuery) {
  std::string many = "q=w";
  for (int i = 0; i < 16; ++i) many += "+w";
  for (const std::string& query : {std::string("q="), std::string(), std::string("q=+"), std::string("p=1"), many}) {
    EXPECT_EQ(AnswerSearch(query, nullptr).status, 400) << query;
  }
  EXPECT_EQ(AnswerSearch(many.substr(0, many.size() - 2), nullptr).status, 200);
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

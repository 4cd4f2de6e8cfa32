#include "web/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "web/assets.h"
#include "web/history_fixture.h"

namespace persia::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Report : public ::testing::Test {
 protected:
  // The HTML, and the data in it.
  std::string Make(size_t max_bytes = 32 << 20) {
    AgentStatus status;
    status.history = history_.stats();
    return MakeReport(status, history_.Entries(), newest_.get(), events_,
                      std::chrono::system_clock::time_point(std::chrono::milliseconds(100'000)), max_bytes);
  }
  Json DataOf(const std::string& html) {
    const std::string begin = "<script type=\"application/json\" id=\"report\">";
    const size_t at = html.find(begin) + begin.size();
    return Json::parse(html.substr(at, html.find("</script>", at) - at));
  }

  std::shared_ptr<const Snapshot> newest_ = MakeSnapshot({{"loss", MetricType::kGauge, {}, {{{{"part", "</script>"}}, {0.5}}}},
                                                          {"steps_total", MetricType::kCounter, {}, {{{}, {7}}}}},
                                                         90'000);
  History history_{{.span = std::chrono::seconds(60)}};
  EventLog events_{{}};
};

TEST_F(Report, LoadsNothing) {
  const std::string html = Make();
  for (const Asset& asset : Assets()) {
    EXPECT_THAT(html, Not(HasSubstr("assets/" + std::string(asset.name))));
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST_F(Report, HasWhatTheAgentWouldAnswer) {
  history_.Add(newest_, {});
  const Json data = DataOf(Make());
  EXPECT_EQ(data["metadata"]["families"].size(), 2U);
  EXPECT_EQ(data["status"]["now_ms"], 100'000);
  EXPECT_EQ(data["left_out"], 0);
  const Json& values = data["query_range"]["loss"]["series"][0]["values"];
  EXPECT_THAT(values.dump(), HasSubstr("0.5"));
  EXPECT_EQ(data["series"]["loss"]["series"][0]["part"], "</script>") << "no text of the job ends the data";
}

TEST_F(Report, OfManySeriesItHasBands) {
  std::vector<TestSeries> ranks;
  for (int rank = 0; rank < 1000; ++rank) ranks.push_back({{{"process", std::to_string(rank)}}, {1.0}});
  newest_ = MakeSnapshot({{"few", MetricType::kGauge, {}, {{{}, {1}}}}, {"many", MetricType::kGauge, {}, ranks}}, 90'000);
  history_.Add(newest_, {});
  const Json ranges = DataOf(Make())["query_range"];
  EXPECT_FALSE(ranges["few"].contains("bands"));
  EXPECT_EQ(ranges["many"]["bands"][0]["sets"], 1000);
  EXPECT_LE(ranges["many"]["series"].size(), 120U);
}

TEST_F(Report, OfNothingIsAPageToo) {
  newest_ = nullptr;
  EXPECT_EQ(DataOf(Make())["metadata"]["families"].size(), 0U);
}

TEST_F(Report, BeyondItsSizeChartsAreLeftOutAndCounted) {
  history_.Add(newest_, {});
  const Json data = DataOf(Make(1));
  EXPECT_EQ(data["left_out"], 2);
  EXPECT_TRUE(data["query_range"].empty());
  EXPECT_EQ(data["metadata"]["families"].size(), 2U) << "they keep their names";
}

}  // namespace
}  // namespace persia::agent

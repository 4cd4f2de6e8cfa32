#include "remote/series_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "remote/decoded.h"
#include "remote/write_request.h"

namespace persia::agent {
namespace {

TEST(SeriesTableTest, EachSeriesIsKeptOnceAndFound) {
  SeriesTable table;
  EXPECT_FALSE(table.Find("none"));
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(table.Add("series " + std::to_string(i)));
  for (uint32_t i = 0; i < 10'000; ++i) {
    const std::string labels = "series " + std::to_string(i);
    EXPECT_FALSE(table.Add(labels));
    EXPECT_EQ(table.Find(labels), i);
    EXPECT_EQ(table.labels(i), labels);
  }
  EXPECT_EQ(table.size(), 10'000U);
  EXPECT_FALSE(table.Find("series 10000"));
  EXPECT_FALSE(table.Find(""));
}

using ::testing::ElementsAre;

class SeriesPlanTest : public ::testing::Test {
 protected:
  SeriesPlanTest() {
    layout_.identities = {{"dlrm", {{"instance", "rep_0"}, {"ip_addr", "10.0.0.1"}, {"role", "trainer"}}}, {"dlrm", {}}};
  }

  void Family(std::string name, MetricType type, std::vector<double> bounds, std::vector<double> values, Labels labels = {},
              uint32_t identity = 0) {
    if (layout_.families.empty() || layout_.families.back().name != name) {
      layout_.families.push_back(
          {.name = std::move(name), .type = type, .help = "", .unit = "", .bounds = std::move(bounds), .series = {}});
    }
    layout_.families.back().series.push_back(
        {.identity = identity, .first_value = values_.size(), .labels = std::move(labels)});
    values_.insert(values_.end(), values.begin(), values.end());
  }

  // The series that are sent, one a line; "absent" if it has no value.
  std::vector<std::string> Sent(const RelabelRules& rules = {}) {
    const SeriesPlan plan(layout_, rules);
    conflicting_ = plan.conflicting();
    std::vector<uint64_t> bits;
    plan.Values(values_, bits);
    std::vector<std::string> lines;
    for (size_t i = 0; i < plan.series().size(); ++i) {
      WriteRequest request;
      request.Add(plan.series().labels(i), bits[i], 1);
      std::string line = Lines(request.bytes()).at(0);
      lines.push_back(bits[i] == kAbsent ? line.substr(0, line.rfind('}') + 1) + " absent" : line);
    }
    return lines;
  }

  Layout layout_;
  std::vector<double> values_;
  size_t conflicting_ = 0;
};

RelabelRules Rules(RelabelConfig config) {
  RelabelRules rules;
  rules.push_back(RelabelRule::Make(std::move(config)).value());
  return rules;
}

TEST_F(SeriesPlanTest, EachSeriesHasTheLabelsOfItsIdentityAndJob) {
  Family("batches", MetricType::kCounter, {}, {7}, {{"feat", "user"}, {"zone", "eu"}});
  Family("loss", MetricType::kGauge, {}, {0.25}, {}, 1);
  EXPECT_THAT(Sent(), ElementsAre("batches{feat=user,instance=rep_0,ip_addr=10.0.0.1,job=dlrm,role=trainer,zone=eu} 7 @1",
                                  "loss{job=dlrm} 0.25 @1"));
}

TEST_F(SeriesPlanTest, HistogramsAndSummariesBecomeTheirExposedLines) {
  Family("seconds", MetricType::kHistogram, {0.5, 10}, {12.5, 3, 4, 1}, {}, 1);
  Family("size", MetricType::kSummary, {0.5, 0.99}, {100, 9, 11, kAbsentValue}, {}, 1);
  EXPECT_THAT(Sent(),
              ElementsAre("seconds_bucket{job=dlrm,le=0.5} 3 @1", "seconds_bucket{job=dlrm,le=10} 7 @1",
                          "seconds_bucket{job=dlrm,le=+Inf} 8 @1", "seconds_sum{job=dlrm} 12.5 @1",
                          "seconds_count{job=dlrm} 8 @1", "size{job=dlrm,quantile=0.5} 11 @1",
                          "size{job=dlrm,quantile=0.99} absent", "size_sum{job=dlrm} 100 @1", "size_count{job=dlrm} 9 @1"));
}

TEST_F(SeriesPlanTest, AnAbsentHistogramHasNoLines) {
  Family("seconds", MetricType::kHistogram, {1}, {kAbsentValue, 0, 0}, {}, 1);
  Family("unset", MetricType::kGauge, {}, {kAbsentValue}, {}, 1);
  EXPECT_THAT(Sent(), ElementsAre("seconds_bucket{job=dlrm,le=1} absent", "seconds_bucket{job=dlrm,le=+Inf} absent",
                                  "seconds_sum{job=dlrm} absent", "seconds_count{job=dlrm} absent", "unset{job=dlrm} absent"));
}

// A worker's NaN must not end the series.
TEST_F(SeriesPlanTest, ANanIsNoStaleMarker) {
  Family("a", MetricType::kGauge, {}, {std::bit_cast<double>(kStaleMarker)}, {}, 1);
  Family("b", MetricType::kGauge, {}, {-std::nan("")}, {}, 1);
  Family("c", MetricType::kGauge, {}, {-std::numeric_limits<double>::infinity()}, {}, 1);
  const SeriesPlan plan(layout_, {});
  std::vector<uint64_t> bits;
  plan.Values(values_, bits);
  EXPECT_THAT(bits, ElementsAre(kNormalNan, kNormalNan, 0xfff0'0000'0000'0000));
}

TEST_F(SeriesPlanTest, LinesOfAHistogramAreRelabelledOneByOne) {
  Family("seconds", MetricType::kHistogram, {0.5, 10}, {12.5, 3, 4, 1}, {}, 1);
  Family("total", MetricType::kCounter, {}, {6}, {}, 1);
  EXPECT_THAT(Sent(Rules({.action = RelabelAction::kDrop, .source_labels = {"le"}, .regex = "0.5|10"})),
              ElementsAre("seconds_bucket{job=dlrm,le=+Inf} 8 @1", "seconds_sum{job=dlrm} 12.5 @1",
                          "seconds_count{job=dlrm} 8 @1", "total{job=dlrm} 6 @1"));
  EXPECT_EQ(conflicting_, 0U);
}

TEST_F(SeriesPlanTest, ASeriesWithoutANameIsNotSent) {
  Family("loss", MetricType::kGauge, {}, {1}, {}, 1);
  EXPECT_THAT(Sent(Rules({.action = RelabelAction::kLabelKeep, .regex = "job"})), ElementsAre());
  EXPECT_EQ(conflicting_, 1U);
}

}  // namespace
}  // namespace persia::agent

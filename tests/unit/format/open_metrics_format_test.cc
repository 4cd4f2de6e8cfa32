#include "format/open_metrics_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/scrape_renderer.h"

namespace persia::agent {
namespace {

// tests/e2e/test_scrape_formats.py parses what an agent serves by prometheus_client's strict parser.
class OpenMetricsTest : public ::testing::Test {
 protected:
  OpenMetricsTest() { layout_.identities.push_back({"j", {}}); }

  void Family(const char* name, MetricType type, std::vector<double> values, std::vector<double> bounds = {},
              const char* unit = "") {
    layout_.families.push_back({.name = name,
                                .type = type,
                                .help = "A \"quoted\" \\ back\nslash",
                                .unit = unit,
                                .bounds = std::move(bounds),
                                .series = {{.first_value = values_.size(), .labels = {}, .created_ms = 1}}});
    values_.insert(values_.end(), values.begin(), values.end());
    layout_.value_count = values_.size();
  }
  template <class Renderer = OpenMetricsRenderer>
  std::string Text() {
    std::string text;
    Renderer().Render({std::make_shared<const Layout>(layout_), values_, {}}, text);
    const std::string help = " A \\\"quoted\\\" \\\\ back\\nslash";
    for (size_t at = 0; (at = text.find(help)) != std::string::npos;) text.replace(at, help.size(), "");
    return text;
  }

  Layout layout_;
  std::vector<double> values_;
};

TEST_F(OpenMetricsTest, NothingIsTheEnd) { EXPECT_EQ(Text(), "# EOF\n"); }

TEST_F(OpenMetricsTest, ACounterLosesItsSuffixInCommentsAlone) {
  Family("misses", MetricType::kCounter, {1});
  Family("reads_total", MetricType::kCounter, {2});
  Family("waits_seconds_total", MetricType::kCounter, {0.5}, {}, "seconds");
  Family("writes_total", MetricType::kCounter, {3}, {}, "bytes");
  EXPECT_EQ(
      Text(),
      "# HELP misses\n# TYPE misses unknown\nmisses{job=\"j\"} 1\n"
      "# HELP reads\n# TYPE reads counter\nreads_total{job=\"j\"} 2\n"
      "# HELP waits_seconds\n# TYPE waits_seconds counter\n# UNIT waits_seconds seconds\nwaits_seconds_total{job=\"j\"} 0.5\n"
      "# HELP writes\n# TYPE writes counter\nwrites_total{job=\"j\"} 3\n"
      "# EOF\n");
}

TEST_F(OpenMetricsTest, ACounterWhoseFamilyWouldBeAnothersIsUnknown) {
  Family("a", MetricType::kGauge, {1});
  Family("a_total", MetricType::kCounter, {2});
  Family("b_created", MetricType::kGauge, {3});
  Family("b_total", MetricType::kCounter, {4});
  const std::string text = Text();
  EXPECT_NE(text.find("# TYPE a_total unknown\na_total{job=\"j\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# TYPE b_total unknown\nb_total{job=\"j\"} 4\n"), std::string::npos) << text;
}

TEST_F(OpenMetricsTest, LimitsOfBucketsAreFloatingPointNumbers) {
  Family("h", MetricType::kHistogram, {3.5, 1, 2, 0, 4, 3}, {0.25, 1, 10000, 1e6});
  Family("s", MetricType::kSummary, {12.5, 4, 3, 7}, {0.5, 1});
  Family("u", MetricType::kUntyped, {std::numeric_limits<double>::infinity()});
  EXPECT_EQ(
      Text(),
      "# HELP h\n# TYPE h histogram\n"
      "h_bucket{job=\"j\",le=\"0.25\"} 1\nh_bucket{job=\"j\",le=\"1.0\"} 3\nh_bucket{job=\"j\",le=\"10000.0\"} 3\n"
      "h_bucket{job=\"j\",le=\"1e+06\"} 7\nh_bucket{job=\"j\",le=\"+Inf\"} 10\nh_sum{job=\"j\"} 3.5\nh_count{job=\"j\"} 10\n"
      "# HELP s\n# TYPE s summary\ns{job=\"j\",quantile=\"0.5\"} 3\ns{job=\"j\",quantile=\"1.0\"} 7\n"
      "s_sum{job=\"j\"} 12.5\ns_count{job=\"j\"} 4\n"
      "# HELP u\n# TYPE u unknown\nu{job=\"j\"} +Inf\n"
      "# EOF\n");
}

}  // namespace
}  // namespace persia::agent

#include "format/scrape_renderer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/group_renderer.h"

namespace persia::agent {
namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

class TextRendererTest : public ::testing::Test {
 protected:
  void SetUp() override { layout_.identities.push_back({"embedding", {{"instance", "rep_0"}, {"role", "trainer"}}}); }

  void Family(std::string name, MetricType type, std::string help = "Helps.", std::vector<double> bounds = {}) {
    layout_.families.push_back({.name = std::move(name),
                                .type = type,
                                .help = std::move(help),
                                .unit = "",
                                .bounds = std::move(bounds),
                                .series = {}});
  }
  void Series(const std::vector<double>& values, Labels labels = {}, uint32_t identity = 0) {
    layout_.families.back().series.push_back(
        {.identity = identity, .first_value = values_.size(), .labels = std::move(labels)});
    values_.insert(values_.end(), values.begin(), values.end());
    layout_.value_count = values_.size();
  }
  Snapshot Taken() const { return {std::make_shared<const Layout>(layout_), values_, {}}; }

  std::string Scrape() const {
    std::string text;
    TextRenderer().Render(Taken(), text);
    return text;
  }
  std::string Pushed(size_t identity = 0) const {
    std::string text;
    GroupRenderer().Render(Taken(), identity, text);
    return text;
  }
  static std::string Golden(const std::string& name) {
    std::ifstream file(std::string(GOLDEN_DIR) + "/" + name);
    EXPECT_TRUE(file.is_open()) << name;
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Layout layout_;
  std::vector<double> values_;
};

TEST_F(TextRendererTest, NothingIsAnEmptyText) {
  EXPECT_EQ(Scrape(), "");
  EXPECT_EQ(Pushed(), "");
}

TEST_F(TextRendererTest, EveryTypeMatchesTheGoldenFiles) {
  layout_.identities.push_back({"embedding", {{"instance", "rep_1"}, {"role", "server"}}});
  Family("batch_unique_indices_rate", MetricType::kGauge, "Share of distinct ids in a batch.");
  Series({0.25}, {{"feat", "user_id"}});
  Series({0.75}, {{"feat", "user_id"}}, 1);
  Series({1}, {{"feat", "item_id"}});
  Family("index_miss_count", MetricType::kCounter, "Ids that had no embedding yet.");
  Series({123456789});
  Family("lookup_rpc_time_cost", MetricType::kHistogram, "Seconds that a look-up took.", {0.001, 0.25, 1, 10000});
  Series({3.5, 1, 2, 0, 4, 3}, {{"shard", "0"}});
  Series({0, 0, 0, 0, 0, 0}, {{"shard", "1"}}, 1);
  Family("step_seconds", MetricType::kSummary, "Seconds a step took.", {0.5, 0.99});
  Series({12.5, 4, 3, std::nan("")});
  Family("up", MetricType::kUntyped, "");
  Series({-0.0});
  Family("wide", MetricType::kGauge, "The ends of the scale.");
  Series({kInfinity}, {{"end", "upper"}});
  Series({-kInfinity}, {{"end", "lower"}});
  EXPECT_EQ(Scrape(), Golden("scrape.txt"));
  EXPECT_EQ(Pushed(0), Golden("push_trainer.txt"));
  EXPECT_EQ(Pushed(1), Golden("push_server.txt"));
}

TEST_F(TextRendererTest, TextIsEscaped) {
  layout_.identities[0] = {"say \"hi\"", {{"path", "C:\\new"}}};
  Family("x", MetricType::kGauge, "A \"quoted\" \\ back\nslash");
  Series({1}, {{"label", "one\ntwo"}});
  EXPECT_EQ(Scrape(),
            "# HELP x A \"quoted\" \\\\ back\\nslash\n"
            "# TYPE x gauge\n"
            "x{job=\"say \\\"hi\\\"\",path=\"C:\\\\new\",label=\"one\\ntwo\"} 1\n");
}

TEST_F(TextRendererTest, AbsentValuesAreNotShown) {
  Family("a", MetricType::kGauge);
  Series({kAbsentValue}, {{"n", "1"}});
  Series({2}, {{"n", "2"}});
  Family("b", MetricType::kGauge);
  Series({kAbsentValue});
  Family("h", MetricType::kHistogram, "", {1});
  Series({kAbsentValue, 1, 1}, {{"n", "1"}});
  Series({3, 1, 1}, {{"n", "2"}});
  Family("s", MetricType::kSummary, "", {0.5, 0.9});
  Series({1, 2, kAbsentValue, 4});
  EXPECT_EQ(Pushed(),
            "# HELP a Helps.\n# TYPE a gauge\na{n=\"2\"} 2\n"
            "# TYPE h histogram\nh_bucket{n=\"2\",le=\"1\"} 1\nh_bucket{n=\"2\",le=\"+Inf\"} 2\nh_sum{n=\"2\"} "
            "3\nh_count{n=\"2\"} 2\n"
            "# TYPE s summary\ns{quantile=\"0.9\"} 4\ns_sum 1\ns_count 2\n");
}

TEST_F(TextRendererTest, AnOrdinaryNotANumberIsShown) {
  Family("x", MetricType::kGauge, "");
  Series({std::nan("")});
  EXPECT_EQ(Pushed(), "# TYPE x gauge\nx NaN\n");
}

TEST_F(TextRendererTest, NewValuesOfTheSameLayoutReplaceTheOld) {
  Family("x", MetricType::kGauge, "");
  Series({1});
  Family("y", MetricType::kGauge, "");
  Series({kAbsentValue});
  TextRenderer renderer;
  std::string text = "left from before";
  Snapshot snapshot = Taken();
  renderer.Render(snapshot, text);
  EXPECT_EQ(text, "# TYPE x gauge\nx{job=\"embedding\",instance=\"rep_0\",role=\"trainer\"} 1\n");
  snapshot.values = {kAbsentValue, 1234.5};
  renderer.Render(snapshot, text);
  EXPECT_EQ(text, "# TYPE y gauge\ny{job=\"embedding\",instance=\"rep_0\",role=\"trainer\"} 1234.5\n");
}

TEST_F(TextRendererTest, AnotherLayoutIsSeen) {
  Family("x", MetricType::kGauge, "");
  Series({1});
  GroupRenderer renderer;
  std::string text;
  renderer.Render(Taken(), 0, text);
  Family("y", MetricType::kGauge, "");
  Series({2});
  renderer.Render(Taken(), 0, text);
  EXPECT_EQ(text, "# TYPE x gauge\nx 1\n# TYPE y gauge\ny 2\n");
}

TEST_F(TextRendererTest, HistogramsOfOneNameWithOtherBoundsHaveOneHeader) {
  Family("h", MetricType::kHistogram, "Helps.", {1});
  Series({kAbsentValue, 0, 0});
  Family("h", MetricType::kHistogram, "Helps.", {2});
  Series({3, 1, 0}, {{"a", "1"}});
  Family("h", MetricType::kHistogram, "Helps.", {4});
  Series({5, 0, 1}, {{"a", "2"}});
  EXPECT_EQ(Pushed(), R"(# HELP h Helps.
# TYPE h histogram
h_bucket{a="1",le="2"} 1
h_bucket{a="1",le="+Inf"} 1
h_sum{a="1"} 3
h_count{a="1"} 1
h_bucket{a="2",le="4"} 0
h_bucket{a="2",le="+Inf"} 1
h_sum{a="2"} 5
h_count{a="2"} 1
)");
}

TEST_F(TextRendererTest, FamiliesCanBeLeftOutAndTheOthersAreWrittenAsEver) {
  Family("a", MetricType::kGauge, "Helps.");
  Series({1});
  Family("h", MetricType::kHistogram, "", {1, 2});
  Series({4, 1, 2, 3});
  Series({kAbsentValue, 1, 2, 3});
  Family("z", MetricType::kCounter, "");
  Series({5});
  GroupRenderer renderer;
  std::string text;
  std::vector<FamilySize> families;
  renderer.Render(Taken(), 0, text, FamilyNames{"h", "no_such"}, &families);
  EXPECT_EQ(text, "# HELP a Helps.\n# TYPE a gauge\na 1\n# TYPE z counter\nz 5\n");
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[0].family->name, "a");
  EXPECT_EQ(families[0].bytes + families[1].bytes, text.size());
  EXPECT_EQ(families[1].series, 1U);
  renderer.Render(Taken(), 0, text, FamilyNames{"a", "z"});
  EXPECT_TRUE(text.starts_with("# TYPE h histogram\nh_bucket{le=\"1\"} 1\n")) << text;
  renderer.Render(Taken(), 0, text, FamilyNames{"a", "h", "z"}, &families);
  EXPECT_EQ(text, "");
  EXPECT_TRUE(families.empty());
}

TEST_F(TextRendererTest, AnIdentityWithoutSeriesIsAnEmptyText) {
  layout_.identities.push_back({"embedding", {{"role", "idle"}}});
  Family("x", MetricType::kGauge);
  Series({1});
  EXPECT_EQ(Pushed(1), "");
}

}  // namespace
}  // namespace persia::agent

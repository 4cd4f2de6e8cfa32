// The agent's own sources together with processes, and the labels of the settings on both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "merge/merge_test.h"

namespace persia::agent::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Builds a snapshot of an own source, one series at a time.
class OwnSource {
 public:
  explicit OwnSource(Identity identity = {"dlrm", {{"instance", "rep_0"}, {"role", "agent"}}}) {
    layout_.identities.push_back(std::move(identity));
  }

  OwnSource& Family(std::string name, MetricType type, std::vector<double> bounds = {}) {
    layout_.families.push_back(
        {.name = std::move(name), .type = type, .help = "", .unit = "", .bounds = std::move(bounds), .series = {}});
    return *this;
  }
  // All values of the series are `value`.
  OwnSource& Series(double value, Labels labels = {}) {
    FamilyLayout& family = layout_.families.back();
    family.series.push_back({.identity = 0, .first_value = layout_.value_count, .labels = std::move(labels)});
    layout_.value_count += family.ValuesPerSeries();
    values_.resize(layout_.value_count, value);
    return *this;
  }
  [[nodiscard]] std::shared_ptr<const Snapshot> Done() const {
    return std::make_shared<const Snapshot>(Snapshot{std::make_shared<const Layout>(layout_), values_, {}});
  }

 private:
  Layout layout_;
  std::vector<double> values_;
};

class OwnSourcesTest : public MergeTest {
 protected:
  Flat Merged(const std::vector<Process*>& processes, const OwnSnapshots& own) {
    for (Process* process : processes) process->Put();
    source().Read();
    source().Retire();
    source().Commit();
    source().Plan(own);
    last_ = source().Expose(own);
    return Flatten(*last_);
  }

  std::shared_ptr<const Snapshot> last_;
};

TEST_F(OwnSourcesTest, FamiliesOfAllSourcesAreSortedByName) {
  Process a(*this);
  a.segment.Counter("", "m", {}, 1);
  const auto first = OwnSource().Family("z", MetricType::kGauge).Series(2).Done();
  const auto second = OwnSource().Family("a", MetricType::kHistogram, {1}).Series(3).Done();
  EXPECT_THAT(Merged({&a}, {first, second}),
              ElementsAre(Pair("a@rep_0/agent", "3: 3 3"), Pair("m", "1"), Pair("z@rep_0/agent", "2")));
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(OwnSourcesTest, AMetricWithTheNameOfAnOwnFamilyGetsALabelSource) {
  Process a(*this);
  a.segment.Counter("", "x_total", {}, 1);
  const auto own = OwnSource().Family("x_total", MetricType::kCounter).Series(2).Done();
  EXPECT_THAT(Merged({&a}, {own}),
              UnorderedElementsAre(Pair(R"(x_total{source="/x_total"})", "1"), Pair("x_total@rep_0/agent", "2")));
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("metric (, x_total) gets a label source")));
}

TEST_F(OwnSourcesTest, AMetricOfAnotherTypeIsLeftOut) {
  Process a(*this);
  a.segment.Gauge("", "x_total", {}, 1);
  const auto own = OwnSource().Family("x_total", MetricType::kCounter).Series(2).Done();
  EXPECT_THAT(Merged({&a}, {own}), ElementsAre(Pair("x_total@rep_0/agent", "2")));
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("the newest definition, the agent's own metric, is a counter")));
  EXPECT_EQ(source().stats().left_out.definition, 1U);
}

TEST_F(OwnSourcesTest, AMetricNamedLikeASampleOfAnOwnHistogramIsRenamed) {
  Process a(*this);
  a.segment.Counter("", "h_count", {}, 1);
  const auto own = OwnSource().Family("h", MetricType::kHistogram, {1}).Series(2).Done();
  EXPECT_THAT(Merged({&a}, {own}), UnorderedElementsAre(Pair("h_count_counter", "1"), Pair("h@rep_0/agent", "2: 2 2")));
}

TEST_F(OwnSourcesTest, AFamilyWithoutSeriesReservesItsName) {
  Process a(*this);
  a.segment.Gauge("", "process_threads", {}, 1);
  const auto own = OwnSource().Family("process_threads", MetricType::kGauge).Done();
  EXPECT_THAT(Merged({&a}, {own}), ElementsAre(Pair(R"(process_threads{source="/process_threads"})", "1")));
}

TEST_F(OwnSourcesTest, LabelsOfTheSettingsAreOnEveryIdentity) {
  Process a(*this);
  a.segment.Counter("", "c", {}, 1);
  const auto own = OwnSource().Family("x", MetricType::kGauge).Series(2).Done();
  source().SetIdentityLabels({{"role", "no"}, {"team", "ads"}}, "7f");
  Merged({&a}, {own});
  EXPECT_THAT(last_->layout->identities,
              ElementsAre(Identity{"dlrm", {{"agent", "7f"}, {"instance", "rep_0"}, {"role", "agent"}, {"team", "ads"}}},
                          Identity{"dlrm", {{"agent", "7f"}, {"instance", "rep_0"}, {"role", "worker"}, {"team", "ads"}}}));
  source().SetIdentityLabels({}, "");
  EXPECT_TRUE(source().Plan({own}));
  EXPECT_FALSE(source().Plan({own}));
}

TEST_F(OwnSourcesTest, ALabelOfASeriesIsRenamedForOneOfTheSettings) {
  Process a(*this);
  a.segment.Counter("", "c", {{"team", "mine"}}, 1);
  a.segment.Gauge("", "g", {}, 2, GaugePolicy::kEach);
  const auto own = OwnSource().Family("x", MetricType::kGauge).Series(3, {{"process", "0"}}).Done();
  source().SetIdentityLabels({{"process", "all"}, {"team", "ads"}}, "");
  EXPECT_THAT(Merged({&a}, {own}),
              UnorderedElementsAre(Pair(R"(c{exported_team="mine"})", "1"), Pair(R"(g{exported_process="0"})", "2"),
                                   Pair(R"(x{exported_process="0"}@rep_0/agent)", "3")));
}

TEST_F(OwnSourcesTest, LabelsOfOwnSeriesAreMadeFitForPrometheus) {
  const auto own = OwnSource()
                       .Family("g", MetricType::kGauge)
                       .Series(1, {{"empty", ""}, {"job", "mine"}, {"le", "1"}})
                       .Family("h", MetricType::kHistogram, {5})
                       .Series(2, {{"le", "1"}})
                       .Done();
  EXPECT_THAT(Merged({}, {own}), UnorderedElementsAre(Pair(R"(g{exported_job="mine",le="1"}@rep_0/agent)", "1"),
                                                      Pair(R"(h{exported_le="1"}@rep_0/agent)", "2: 2 2")));
}

// For example, the kernel's names of interfaces.
TEST_F(OwnSourcesTest, LabelsOfOwnSeriesBecomeValidTextAndStayDifferent) {
  const auto own = OwnSource()
                       .Family("g", MetricType::kGauge)
                       .Series(1, {{"device", "e\x80"}})
                       .Series(2, {{"device", "e\xff"}})
                       .Series(3, {{"device", "e\uFFFD"}})
                       .Series(4, {{"device", "\u00e9"}})
                       .Done();
  EXPECT_THAT(
      Merged({}, {own}),
      UnorderedElementsAre(Pair("g{device=\"e\uFFFD\"}@rep_0/agent", "1"), Pair("g{device=\"e\uFFFD_2\"}@rep_0/agent", "2"),
                           Pair("g{device=\"e\uFFFD_3\"}@rep_0/agent", "3"), Pair("g{device=\"\u00e9\"}@rep_0/agent", "4")));
}

TEST_F(OwnSourcesTest, TheLabelOfDroppedCountsIsRenamedForOneOfTheSettings) {
  Process a(*this);
  a.segment.Counter("", "c", {}, 1);
  source().SetIdentityLabels({{"reason", "x"}}, "");
  Merged({&a}, {});
  const auto dropped = FamiliesNamed(*last_->layout, "persia_metrics_dropped_total");
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ((*dropped[0].series[0].labels.begin()).first, "exported_reason");
}

TEST_F(OwnSourcesTest, AHistogramOfAnOwnFamilysNameWithOtherBoundsIsLeftOut) {
  const double bounds[] = {1, 2};
  const uint64_t buckets[] = {1, 2, 3};
  Process a(*this, {.role = "agent"});
  a.segment.Histogram("", "h", {}, bounds, 4, buckets);
  const auto own = OwnSource().Family("h", MetricType::kHistogram, {5}).Series(3).Done();
  EXPECT_THAT(Merged({&a}, {own}), ElementsAre(Pair("h@rep_0/agent", "3: 3 3")));
}

TEST_F(OwnSourcesTest, TheLayoutIsTheSameObjectUntilASourcesLayoutChanges) {
  Process a(*this);
  a.segment.Counter("", "c", {}, 1);
  const auto own = OwnSource().Family("x", MetricType::kGauge).Series(2).Done();
  Merged({&a}, {own});
  const auto layout = last_->layout;
  EXPECT_THAT(Merged({&a}, {std::make_shared<const Snapshot>(Snapshot{own->layout, {5}, {}})}),
              Contains(Pair("x@rep_0/agent", "5")));
  EXPECT_EQ(last_->layout, layout);
  Merged({&a}, {OwnSource().Family("y", MetricType::kGauge).Series(2).Done()});
  EXPECT_NE(last_->layout, layout);
}

}  // namespace
}  // namespace persia::agent::testing

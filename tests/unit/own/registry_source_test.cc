#include "own/registry_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const Identity kSelf{"job", {{"role", "agent"}}};

// Returns the test's families, which a registry would not produce.
class Handmade : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override { return families; }
  std::vector<prometheus::MetricFamily> families;
};

class RegistrySourceTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Snapshot> Collect() { return source_.Collect(); }
  static const FamilyLayout& Family(const Snapshot& snapshot, const std::string& name) {
    for (const FamilyLayout& family : snapshot.layout->families) {
      if (family.name == name) return family;
    }
    throw std::out_of_range(name);
  }
  // The labels and values of each series.
  static std::vector<std::pair<Labels, std::vector<double>>> SeriesOf(const Snapshot& snapshot, const std::string& name) {
    std::vector<std::pair<Labels, std::vector<double>>> all;
    const FamilyLayout& family = Family(snapshot, name);
    for (const SeriesLayout& series : family.series) {
      const auto first = snapshot.values.begin() + static_cast<ptrdiff_t>(series.first_value);
      all.emplace_back(series.labels.ToList(),
                       std::vector<double>(first, first + static_cast<ptrdiff_t>(family.ValuesPerSeries())));
    }
    return all;
  }

  prometheus::Registry registry_;
  RegistrySource source_{registry_, kSelf};
};

TEST_F(RegistrySourceTest, AHistogramWithTheBoundsOfASchemaIsNative) {
  prometheus::Histogram::BucketBoundaries bounds;
  for (int k = -8; k <= 24; ++k) bounds.push_back(std::exp2(k / 4.0));
  auto& histogram = prometheus::BuildHistogram().Name("native").Register(registry_).Add({}, bounds);
  for (const double value : {0.1, 1.0, 1.01, 100.0}) histogram.Observe(value);
  bounds[3] = 0.42;
  prometheus::BuildHistogram().Name("other").Register(registry_).Add({}, bounds);
  const auto snapshot = Collect();
  const FamilyLayout& family = Family(*snapshot, "native");
  ASSERT_TRUE(family.native);
  EXPECT_EQ(family.native->schema, 2);
  EXPECT_EQ(family.native->first, -7);
  EXPECT_EQ(family.native->ZeroThreshold(), 0.25);
  EXPECT_THAT(family.bounds, ElementsAre(0.25, 0.5, 1, 2, 4, 8, 16, 32, 64));
  const double* values = snapshot->values.data() + family.series.at(0).first_value;
  EXPECT_EQ(values[1], 1) << "the zero bucket";
  EXPECT_EQ(values[2 + 0 + 7], 1);
  EXPECT_EQ(values[2 + 1 + 7], 1);
  EXPECT_EQ(values[family.ValuesPerSeries() - 1], 1) << "above the last bound";
  ClassicBuffer buffer;
  const double* classic = family.BucketCounts(values, buffer);
  EXPECT_THAT(std::vector<double>(classic, classic + 10), ElementsAre(1, 0, 1, 1, 0, 0, 0, 0, 0, 1));
  EXPECT_FALSE(Family(*snapshot, "other").native);
}

TEST_F(RegistrySourceTest, AnEmptyRegistryIsAnEmptySnapshot) {
  EXPECT_THAT(Collect()->layout->families, IsEmpty());
  EXPECT_THAT(Collect()->layout->identities, ElementsAre(kSelf));
}

TEST_F(RegistrySourceTest, EveryTypeIsConverted) {
  prometheus::BuildGauge().Name("g").Help("A gauge.").Register(registry_).Add({{"b", "2"}, {"a", "1"}}).Set(-1.5);
  prometheus::BuildCounter().Name("c").Help("A counter.").Register(registry_).Add({}).Increment(7);
  auto& histogram = prometheus::BuildHistogram()
                        .Name("h")
                        .Help("A histogram.")
                        .Register(registry_)
                        .Add({}, prometheus::Histogram::BucketBoundaries{1, 2});
  for (double value : {0.5, 1.5, 1.75, 5.0}) histogram.Observe(value);
  auto& summary = prometheus::BuildSummary()
                      .Name("s")
                      .Help("A summary.")
                      .Register(registry_)
                      .Add({}, prometheus::Summary::Quantiles{{0.5, 0.01}});
  summary.Observe(3);

  const auto snapshot = Collect();
  ASSERT_THAT(snapshot->layout->families, SizeIs(4));
  EXPECT_EQ(snapshot->layout->families[0].name, "c");
  EXPECT_EQ(Family(*snapshot, "g").type, MetricType::kGauge);
  EXPECT_EQ(Family(*snapshot, "g").help, "A gauge.");
  EXPECT_THAT(SeriesOf(*snapshot, "g"), ElementsAre(Pair(Labels{{"a", "1"}, {"b", "2"}}, ElementsAre(-1.5))));
  EXPECT_EQ(Family(*snapshot, "c").type, MetricType::kCounter);
  EXPECT_THAT(SeriesOf(*snapshot, "c"), ElementsAre(Pair(Labels{}, ElementsAre(7))));
  EXPECT_THAT(Family(*snapshot, "h").bounds, ElementsAre(1, 2));
  EXPECT_THAT(SeriesOf(*snapshot, "h"), ElementsAre(Pair(Labels{}, ElementsAre(8.75, 1, 2, 1))));
  EXPECT_THAT(Family(*snapshot, "s").bounds, ElementsAre(0.5));
  EXPECT_THAT(SeriesOf(*snapshot, "s"), ElementsAre(Pair(Labels{}, ElementsAre(3, 1, 3))));
}

TEST_F(RegistrySourceTest, TheLayoutStaysWhileTheSeriesDo) {
  auto& family = prometheus::BuildGauge().Name("g").Register(registry_);
  auto& gauge = family.Add({{"n", "1"}});
  const auto first = Collect();
  gauge.Set(5);
  const auto second = Collect();
  EXPECT_EQ(first->layout, second->layout);
  EXPECT_THAT(SeriesOf(*second, "g"), ElementsAre(Pair(Labels{{"n", "1"}}, ElementsAre(5))));
  auto& other = family.Add({{"n", "2"}});
  const auto third = Collect();
  EXPECT_NE(third->layout, second->layout);
  EXPECT_THAT(SeriesOf(*third, "g"), SizeIs(2));
  family.Remove(&other);
  EXPECT_THAT(SeriesOf(*Collect(), "g"), SizeIs(1));
}

TEST_F(RegistrySourceTest, ASeriesThatReplacesAnotherIsInTheLayout) {
  auto& family = prometheus::BuildGauge().Name("g").Register(registry_);
  auto& first = family.Add({{"n", "1"}});
  const auto before = Collect();
  family.Remove(&first);
  family.Add({{"n", "2"}}).Set(5);
  EXPECT_NE(Collect()->layout, before->layout);
  EXPECT_THAT(SeriesOf(*Collect(), "g"), ElementsAre(Pair(Labels{{"n", "2"}}, ElementsAre(5))));
}

TEST_F(RegistrySourceTest, AHistogramMayLackTheLastBucket) {
  Handmade handmade;
  prometheus::ClientMetric metric;
  metric.histogram.sample_count = 10;
  metric.histogram.sample_sum = 20;
  metric.histogram.bucket = {{4, 1.0}};
  handmade.families = {{"h", "", prometheus::MetricType::Histogram, {metric}}};
  RegistrySource source(handmade, kSelf);
  EXPECT_THAT(SeriesOf(*source.Collect(), "h"), ElementsAre(Pair(Labels{}, ElementsAre(20, 4, 6))));
  // A histogram that was read while it was written to: the count lags behind the buckets.
  handmade.families[0].metric[0].histogram.sample_count = 3;
  EXPECT_THAT(SeriesOf(*source.Collect(), "h"), ElementsAre(Pair(Labels{}, ElementsAre(20, 4, 0))));
}

TEST_F(RegistrySourceTest, FamiliesAndLabelsAreSorted) {
  Handmade handmade;
  prometheus::ClientMetric labelled;
  labelled.label = {{"b", "2"}, {"a", "1"}};
  labelled.gauge.value = 5;
  prometheus::ClientMetric plain;
  plain.counter.value = 6;
  handmade.families = {{"z", "", prometheus::MetricType::Gauge, {labelled}},
                       {"y", "", prometheus::MetricType::Counter, {plain}}};
  RegistrySource source(handmade, kSelf);
  const auto snapshot = source.Collect();
  EXPECT_EQ(snapshot->layout->families.at(0).name, "y");
  EXPECT_THAT(SeriesOf(*snapshot, "y"), ElementsAre(Pair(Labels{}, ElementsAre(6))));
  EXPECT_THAT(SeriesOf(*snapshot, "z"), ElementsAre(Pair(Labels{{"a", "1"}, {"b", "2"}}, ElementsAre(5))));
}

TEST_F(RegistrySourceTest, AnotherTypeIsAnotherLayout) {
  Handmade handmade;
  handmade.families = {{"x", "", prometheus::MetricType::Gauge, {prometheus::ClientMetric()}}};
  RegistrySource source(handmade, kSelf);
  source.Collect();
  handmade.families[0].type = prometheus::MetricType::Counter;
  EXPECT_EQ(source.Collect()->layout->families.at(0).type, MetricType::kCounter);
}

}  // namespace
}  // namespace persia::agent

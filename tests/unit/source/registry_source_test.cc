#include "source/registry_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const Identity kSelf{"job", {{"role", "agent"}}};

// Gives families as a program of its own making might.
class Handmade : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    if (!fails.empty()) throw std::runtime_error(fails);
    return families;
  }
  std::vector<prometheus::MetricFamily> families;
  std::string fails;
};

prometheus::ClientMetric GaugeOf(double value, std::vector<prometheus::ClientMetric::Label> labels = {}) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  metric.label = std::move(labels);
  return metric;
}

class RegistrySourceTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Snapshot> Collect() { return CollectFrom(source_); }
  static std::shared_ptr<const Snapshot> CollectFrom(RegistrySource& source) {
    Result<std::shared_ptr<const Snapshot>> snapshot = source.Collect();
    EXPECT_TRUE(snapshot.ok()) << snapshot.error();
    return snapshot.value();
  }
  static const FamilyLayout& Family(const Snapshot& snapshot, const std::string& name) {
    for (const FamilyLayout& family : snapshot.layout->families) {
      if (family.name == name) return family;
    }
    throw std::out_of_range(name);
  }
  // Labels and values of each series.
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

TEST_F(RegistrySourceTest, AnEmptyRegistryIsAnEmptySnapshot) {
  EXPECT_THAT(Collect()->layout->families, IsEmpty());
  EXPECT_THAT(Collect()->layout->identities, ElementsAre(kSelf));
}

TEST_F(RegistrySourceTest, EveryTypeComesAcross) {
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

TEST_F(RegistrySourceTest, FamiliesOfOneNameAreOne) {
  Handmade handmade;
  handmade.families = {{"g", "", prometheus::MetricType::Gauge, {GaugeOf(1, {{"part", "a"}})}},
                       {"g", "", prometheus::MetricType::Gauge, {GaugeOf(2, {{"part", "b"}})}}};
  RegistrySource source(handmade, kSelf);
  const auto snapshot = CollectFrom(source);
  EXPECT_THAT(snapshot->layout->families, SizeIs(1));
  EXPECT_THAT(SeriesOf(*snapshot, "g"),
              ElementsAre(Pair(Labels{{"part", "a"}}, ElementsAre(1)), Pair(Labels{{"part", "b"}}, ElementsAre(2))));
  EXPECT_THAT(source.TakeDiagnostics(), IsEmpty());
}

TEST_F(RegistrySourceTest, OtherBoundsInAFamilyAreLeftOutAndReportedOnce) {
  auto& family = prometheus::BuildHistogram().Name("h").Register(registry_);
  family.Add({{"n", "1"}}, prometheus::Histogram::BucketBoundaries{1});
  family.Add({{"n", "2"}}, prometheus::Histogram::BucketBoundaries{2});
  EXPECT_THAT(SeriesOf(*Collect(), "h"), SizeIs(1));
  const std::vector<Diagnostic> diagnostics = source_.TakeDiagnostics();
  ASSERT_THAT(diagnostics, SizeIs(1));
  EXPECT_THAT(diagnostics[0].text,
              HasSubstr("metric \"h\" of a prometheus-cpp registry is left out, in part or whole: other bounds"));
  Collect();
  EXPECT_THAT(source_.TakeDiagnostics(), IsEmpty());
}

TEST_F(RegistrySourceTest, WhatPrometheusCannotTakeIsMadeValid) {
  Handmade handmade;
  handmade.families = {{"my.gauge", "bad \xff byte", prometheus::MetricType::Gauge, {GaugeOf(1, {{"job", "x"}, {"a-b", ""}})}}};
  RegistrySource source(handmade, kSelf);
  const auto snapshot = CollectFrom(source);
  EXPECT_EQ(Family(*snapshot, "my_gauge").help, "bad \xEF\xBF\xBD byte");
  EXPECT_THAT(SeriesOf(*snapshot, "my_gauge"), ElementsAre(Pair(Labels{{"exported_job", "x"}}, ElementsAre(1))));
}

TEST_F(RegistrySourceTest, ClashesInAHandmadeCollectableAreLeftOut) {
  Handmade handmade;
  handmade.families = {{"x", "", prometheus::MetricType::Gauge, {GaugeOf(1), GaugeOf(2), GaugeOf(3, {{"n", "1"}})}},
                       {"x", "", prometheus::MetricType::Counter, {GaugeOf(4, {{"n", "2"}})}}};
  RegistrySource source(handmade, kSelf);
  EXPECT_THAT(SeriesOf(*CollectFrom(source), "x"),
              ElementsAre(Pair(Labels{}, ElementsAre(1)), Pair(Labels{{"n", "1"}}, ElementsAre(3))));
  EXPECT_THAT(source.TakeDiagnostics(), SizeIs(2));
}

TEST_F(RegistrySourceTest, AHistogramMayLackTheLastBucket) {
  Handmade handmade;
  prometheus::ClientMetric metric;
  metric.histogram.sample_count = 10;
  metric.histogram.sample_sum = 20;
  metric.histogram.bucket = {{4, 1.0}};
  handmade.families = {{"h", "", prometheus::MetricType::Histogram, {metric}}};
  RegistrySource source(handmade, kSelf);
  EXPECT_THAT(SeriesOf(*CollectFrom(source), "h"), ElementsAre(Pair(Labels{}, ElementsAre(20, 4, 6))));
}

TEST_F(RegistrySourceTest, ACollectableThatThrowsIsAnError) {
  Handmade handmade;
  handmade.fails = "no luck";
  RegistrySource source(handmade, kSelf);
  const auto snapshot = source.Collect();
  ASSERT_FALSE(snapshot.ok());
  EXPECT_EQ(snapshot.error(), "a prometheus-cpp registry cannot be read: no luck");
}

}  // namespace
}  // namespace persia::agent

// The values of each instrument after its calls.
#include "persia/metrics/instruments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fast_math.h"
#include "persia/metrics/catalog.h"
#include "persia/metrics/family.h"
#include "persia/metrics/timer.h"
#include "segment_format.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using segment::Drop;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class InstrumentsTest : public WorkerTest {};

// What the counter of losses has of a metric.
uint64_t LostOf(const SegmentView& segment, const std::string& metric, const std::string& reason) {
  return segment.series.at("persia_metrics/lost_total{metric=\"" + metric + "\",reason=\"" + reason + "\"}").whole;
}

TEST_F(InstrumentsTest, CounterKeepsWholeAndFractionalIncrementsApart) {
  const auto segment = SegmentOf([] {
    Counter counter("g", "c", {.help = "Help.", .unit = "bytes"});
    counter.Increment();
    counter.Increment(5);
    counter.Increment(uint64_t{1} << 60);
    counter.Increment(3.0);
    counter.Increment(0.0);
    counter.Increment(-0.0);
    counter.Increment(0.25);
    counter.Increment(1e17);
  });
  const SeriesView& series = segment.series.at("g/c");
  EXPECT_EQ(series.whole, (uint64_t{1} << 60) + 9);
  EXPECT_EQ(series.fraction, 0.25 + 1e17);
  EXPECT_EQ(series.help, "Help.");
  EXPECT_EQ(series.unit, "bytes");
}

TEST_F(InstrumentsTest, CounterIgnoresAndCountsBadIncrements) {
  const auto segment = SegmentOf([] {
    Counter counter("g", "c");
    counter.Increment(-1);
    counter.Increment(-0.5);
    counter.Increment(-1e300);
    counter.Increment(kNan);
    counter.Increment(kInf);
    counter.Increment(-kInf);
    counter.Increment();
  });
  EXPECT_EQ(segment.series.at("g/c").whole, 1U);
  EXPECT_EQ(segment.series.at("g/c").fraction, 0);
  EXPECT_EQ(segment.DroppedFor(Drop::kBadValue), 6U);
}

TEST_F(InstrumentsTest, GaugeIsUnsetUntilItIsSet) {
  const auto segment = SegmentOf([] {
    Gauge unset("g", "unset", GaugeMerge::kMax);
    Gauge set("g", "set");
    set.Set(-2.5);
    Gauge added("g", "added");
    added.Add(3);
    added.Subtract(1);
    Gauge infinite("g", "infinite");
    infinite.Set(kInf);
  });
  EXPECT_FALSE(segment.series.at("g/unset").set);
  EXPECT_EQ(segment.series.at("g/unset").gauge_policy, static_cast<int>(GaugeMerge::kMax));
  EXPECT_EQ(segment.series.at("g/set").value, -2.5);
  EXPECT_EQ(segment.series.at("g/added").value, 2);
  EXPECT_EQ(segment.series.at("g/infinite").value, kInf);
}

TEST_F(InstrumentsTest, HistogramBoundsAreInclusiveAndInfinitiesAreTaken) {
  const auto segment = SegmentOf([] {
    const double bounds[] = {1, 2, 4};
    Histogram histogram("g", "h", bounds);
    for (const double value : {0.5, 1.0, 1.5, 2.0, 4.0, 4.5, -1.0}) {
      histogram.Observe(value);
    }
    histogram.Observe(kNan);
    Histogram infinite("g", "infinite", LinearBounds(0, 1, 2));
    infinite.Observe(kInf);
    infinite.Observe(-kInf);
  });
  EXPECT_EQ(segment.series.at("g/infinite").buckets, (std::vector<uint64_t>{1, 0, 1}));
  EXPECT_EQ(segment.series.at("g/h").buckets, (std::vector<uint64_t>{3, 2, 1, 1}));
  EXPECT_EQ(segment.series.at("g/h").fraction, 12.5);
  EXPECT_EQ(segment.DroppedFor(Drop::kBadValue), 1U);
}

// As training code is often compiled, with comparisons that take no NaN into account.
TEST_F(InstrumentsTest, NansAreCaughtInCodeCompiledWithFastMath) {
  const auto segment = SegmentOf([] {
    Counter counter("g", "c");
    Histogram histogram("g", "h", LinearBounds(0, 1, 3));
    for (const double value : {1.0, kNan, -kNan, kInf}) {
      IncrementWithFastMath(counter, value);
      ObserveWithFastMath(histogram, value);
    }
    IncrementWithFastMath(counter, 0.5);
    IncrementWithFastMath(counter, -1);
  });
  EXPECT_EQ(segment.series.at("g/c").whole, 1U);
  EXPECT_EQ(segment.series.at("g/c").fraction, 0.5);
  EXPECT_EQ(segment.series.at("g/h").buckets, (std::vector<uint64_t>{0, 1, 0, 1}));
  EXPECT_EQ(segment.series.at("g/h").fraction, kInf);
  EXPECT_EQ(segment.DroppedFor(Drop::kBadValue), 6U);
}

TEST_F(InstrumentsTest, FractionsThatAreConstantsAreFractionsInCodeCompiledWithFastMath) {
  const auto segment = SegmentOf([] {
    Counter counter("g", "c");
    IncrementByConstantsWithFastMath(counter);
  });
  EXPECT_EQ(segment.series.at("g/c").whole, 3U);
  EXPECT_EQ(segment.series.at("g/c").fraction, 2.0);
  EXPECT_EQ(segment.DroppedFor(Drop::kBadValue), 1U);
}

TEST_F(InstrumentsTest, TimeCostIsAHistogramAndTheLastValue) {
  const auto segment = SegmentOf([] {
    TimeCost cost("g", "cost", {.help = "Time.", .unit = "seconds"});
    cost.Observe(0.25);
    cost.Observe(0.0005);
    ScopedTimer cancelled(cost);
    cancelled.Cancel();
  });
  EXPECT_EQ(segment.series.at("g/cost").Count(), 2U);
  EXPECT_EQ(segment.series.at("g/cost").fraction, 0.2505);
  EXPECT_EQ(segment.series.at("g/cost_sec").value, 0.0005);
}

TEST_F(InstrumentsTest, ScopedTimerObservesSeconds) {
  double at_least = 0;
  const auto segment = SegmentOf([&] {
    Histogram histogram("g", "h", DefaultSecondsBounds());
    ScopedTimer timer(histogram);
    while (timer.Seconds() < 0.002) {
    }
  });
  at_least = segment.series.at("g/h").fraction;
  EXPECT_GE(at_least, 0.002);
  EXPECT_LT(at_least, 60);
}

TEST_F(InstrumentsTest, AskingTwiceGivesTheSameSeries) {
  const auto segment = SegmentOf([] {
    Counter("g", "c").Increment();
    Counter("g", "c", {.help = "Another help is no conflict."}).Increment();
    Family<Counter> family("g", "f");
    family.With({{"b", "2"}, {"a", "1"}}).Increment();
    family.With({{"a", "1"}, {"b", "2"}}).Increment();
    Counter("g", "f", {.labels = {{"a", "1"}, {"b", "2"}}}).Increment();
    Family<Counter>("g", "f", {.labels = {{"b", "2"}}}).With({{"a", "1"}}).Increment();
  });
  EXPECT_EQ(segment.series.at("g/c").whole, 2U);
  EXPECT_EQ(segment.series.at("g/f{a=\"1\",b=\"2\"}").whole, 4U);
  EXPECT_EQ(segment.series.size(), 2U);
}

TEST_F(InstrumentsTest, TheSeriesWithoutLabelsIsApartFromThoseWithSome) {
  const auto segment = SegmentOf([] {
    Counter("g", "c", {.labels = {{"a", "1"}}}).Increment(1);
    Counter("g", "c").Increment(10);
    Counter("g", "c", {.labels = {{"a", "2"}}}).Increment(100);
    Counter("g", "c").Increment(1000);
  });
  EXPECT_EQ(segment.series.at("g/c").whole, 1010U);
  EXPECT_EQ(segment.series.at("g/c{a=\"1\"}").whole, 1U);
  EXPECT_EQ(segment.series.at("g/c{a=\"2\"}").whole, 100U);
}

TEST_F(InstrumentsTest, NamesAndValuesAreAnyText) {
  const auto segment = SegmentOf([] {
    Counter("grüppe/1", "名前 \"x\"", {.labels = {{"läbel", "a\nb\\"}}}).Increment();
    Counter("", "no group").Increment();
  });
  EXPECT_EQ(segment.series.at("grüppe/1/名前 \"x\"{läbel=\"a\nb\\\"}").whole, 1U);
  EXPECT_EQ(segment.series.at("/no group").whole, 1U);
}

TEST_F(InstrumentsTest, ConflictCountsNothingAndSaysSoOnce) {
  const auto outcome = RunWorker([] {
    Counter counter("g", "x");
    for (int i = 0; i < 3; ++i) {
      Gauge gauge("g", "x");
      gauge.Set(7);
      gauge.Add(1);
    }
    Histogram first("g", "h", LinearBounds(1, 1, 3));
    Histogram second("g", "h", LinearBounds(1, 1, 4));
    second.Observe(2);
    second.Observe(100);
    Family<Histogram>("g", "h", LinearBounds(1, 1, 2)).With({{"a", "b"}}).Observe(1);
    counter.Increment();
  });
  const auto segment = OnlySegment();
  EXPECT_EQ(segment.series.size(), 4U) << "and the losses of each";
  EXPECT_EQ(segment.series.at("g/x").whole, 1U);
  EXPECT_EQ(segment.series.at("g/h").Count(), 0U);
  EXPECT_EQ(segment.DroppedFor(Drop::kTypeConflict), 5U);
  EXPECT_EQ(LostOf(segment, "g/x", "type_conflict"), 3U);
  EXPECT_EQ(LostOf(segment, "g/h", "type_conflict"), 2U);
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 2) << outcome.error_output;
}

TEST_F(InstrumentsTest, ARefusalNamesBothDefinitions) {
  const auto outcome = RunWorker([] {
    Counter("g", "type");
    Histogram("g", "type");
    Gauge("g", "policy", GaugeMerge::kSum);
    Gauge("g", "policy", GaugeMerge::kEach);
    Histogram("g", "bounds", {0.5, 1});
    Histogram("g", "bounds", LinearBounds(1, 1, 12));
    Histogram("g", "buckets", NativeBuckets{.max_buckets = 100});
    Histogram("g", "buckets", NativeBuckets{.max_buckets = 200});
  });
  for (
      const std::string text : {
          R"(metric "type" of group "g" (g_type) is a counter, and was requested again as a histogram; that handle counts nothing)",
          R"(metric "policy" of group "g" (g_policy) has the merge policy sum, and was requested again with each; that handle)",
          R"(metric "bounds" of group "g" (g_bounds) has the bounds 0.5, 1, and was requested again with 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... (12); )",
          R"(metric "buckets" of group "g" (g_buckets) has at most 100 buckets, and was requested again with 200; )",
      }) {
    EXPECT_NE(outcome.error_output.find(text), std::string::npos) << text << "\n" << outcome.error_output;
  }
}

TEST_F(InstrumentsTest, BadBoundsAreRefusedByName) {
  const std::vector<std::pair<std::vector<double>, std::string>> cases = {
      {{2, 1}, "bound[1] is 1, not above the one before, 2"},
      {{1, 1}, "bound[1] is 1, not above"},
      {{1, kInf}, "bound[1] is not finite"},
      {{kNan}, "bound[0] is not finite"},
      {LinearBounds(0, 1, 501), "501 bounds; at most 500"},
  };
  for (const auto& [bounds, message] : cases) {
    const auto outcome = RunWorker([&bad = bounds] {
      Histogram histogram("my_group", "latency", bad);
      histogram.Observe(1);
    });
    EXPECT_EQ(outcome.wait_status, 0);
    EXPECT_NE(
        outcome.error_output.find("metric \"latency\" of group \"my_group\" (my_group_latency) counts nothing: " + message),
        std::string::npos)
        << outcome.error_output;
  }
}

TEST_F(InstrumentsTest, BadNamesAndLabelsAreRefused) {
  const auto outcome = RunWorker([] {
    Counter("g", "").Increment();
    Counter("g", std::string(257, 'n')).Increment();
    Counter(std::string(257, 'g'), "c").Increment();
    Counter("g", "twice", {.labels = {{"a", "1"}, {"a", "2"}}}).Increment();
    Counter("g", "nameless", {.labels = {{"", "1"}}}).Increment();
    Counter("g", "long", {.labels = {{"a", std::string(4097, 'v')}}}).Increment();
    Counter("g", "many", {.labels = LabelSet(33, {"a", "b"})}).Increment();
    Counter("g", "good").Increment();
  });
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 5) << "one for all bad names, and one for each family\n" << outcome.error_output;
  const auto segment = OnlySegment();
  EXPECT_EQ(segment.series.size(), 5U) << "and the losses of four";
  EXPECT_EQ(segment.DroppedFor(Drop::kBadName), 7U);
  EXPECT_EQ(LostOf(segment, "g/twice", "bad_name"), 1U);
  EXPECT_EQ(LostOf(segment, "g/many", "bad_name"), 1U);
}

// Also of a process that has given no name to the counter of losses, and of one that has taken it.
TEST_F(InstrumentsTest, LostValuesAreCountedByMetricAndLoggedOnceForEach) {
  const auto outcome = RunWorker([] {
    Counter first("train", "first");
    Counter labelled("train", "labelled", {.labels = {{"a", "b"}}});
    Histogram histogram("train", "seconds", {1, 2});
    Counter("", "alone").Increment(-1);
    for (int i = 0; i < 3; ++i) {
      first.Increment(kNan);
      labelled.Increment(-1);
      histogram.Observe(kNan);
    }
    Counter().Increment(-1);
  });
  const auto segment = OnlySegment();
  EXPECT_EQ(LostOf(segment, "train/first", "bad_value"), 3U);
  EXPECT_EQ(LostOf(segment, "train/labelled", "bad_value"), 3U);
  EXPECT_EQ(LostOf(segment, "train/seconds", "bad_value"), 3U);
  EXPECT_EQ(LostOf(segment, "alone", "bad_value"), 1U);
  EXPECT_EQ(segment.DroppedFor(Drop::kBadValue), 11U) << "also that of no metric";
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 4) << outcome.error_output;
  for (
      const std::string text :
      {R"(metric "first" of group "train" (train_first) loses values: a counter takes no NaN and no negative number; use a gauge)",
       R"(metric "seconds" of group "train" (train_seconds) loses values: a histogram takes no NaN)",
       R"(metric "alone" of group "" (alone) loses values: )"}) {
    EXPECT_NE(outcome.error_output.find(text), std::string::npos) << text << "\n" << outcome.error_output;
  }
}

TEST_F(InstrumentsTest, AProgramMayHaveAMetricOfTheNameOfTheLosses) {
  const auto segment = SegmentOf([] {
    Gauge("persia_metrics", "lost_total").Set(1);
    Counter("g", "c").Increment(-1);
    Gauge("g", "c").Set(1);
  });
  EXPECT_EQ(segment.series.at("persia_metrics/lost_total").value, 1);
  EXPECT_EQ(segment.DroppedFor(Drop::kBadValue), 1U);
  EXPECT_EQ(segment.DroppedFor(Drop::kTypeConflict), 1U);
}

TEST_F(InstrumentsTest, NamesLabelsAndBoundsUpToTheLimitsAreTaken) {
  LabelSet labels;
  for (int i = 0; i < 32; ++i) labels.emplace_back("l" + std::to_string(i), "v");
  std::vector<double> bounds(500);
  std::iota(bounds.begin(), bounds.end(), 1);
  const auto outcome = RunWorker([&] {
    Counter("g", std::string(256, 'n')).Increment();
    Counter(std::string(256, 'g'), "c").Increment();
    Counter("g", "name", {.labels = {{std::string(256, 'l'), ""}}}).Increment();
    Counter("g", "value", {.labels = {{"a", std::string(4096, 'v')}}}).Increment();
    Counter("g", "many", {.labels = labels}).Increment();
    Counter("g", "help", {.help = std::string(4096, 'h'), .unit = std::string(256, 'u')}).Increment();
    Histogram("g", "wide", bounds).Observe(500.5);
  });
  EXPECT_EQ(outcome.error_output, "");
  const auto segment = OnlySegment();
  EXPECT_EQ(segment.series.size(), 7U);
  for (const auto& [name, series] : segment.series) EXPECT_EQ(series.whole + series.Count(), 1U) << name;
  EXPECT_EQ(segment.series.at("g/wide").buckets.back(), 1U);
  EXPECT_EQ(segment.series.at("g/help").help.size(), 4096U);
  EXPECT_EQ(segment.series.at("g/help").unit.size(), 256U);
}

TEST_F(InstrumentsTest, CatalogMakesItsFifteenMetrics) {
  const auto segment = SegmentOf([] {
    catalog::IndexMissCount();
    catalog::IndexMissRatio();
    catalog::GradientIdMissCount();
    catalog::EstimatedDistinctId().With({{"feat", "f"}});
    catalog::BatchUniqueIndicesRate().With({{"feat", "f"}});
    catalog::Staleness();
    catalog::NanCount().With({{"feat", "f"}});
    catalog::NanGradSkipped().With({{"feat", "f"}});
    catalog::LookupMixedBatchTimeCost();
    catalog::NumPendingBatches();
    catalog::LookupCreateRequestsTimeCost();
    catalog::LookupRpcTimeCost();
    catalog::UpdateGradientTimeCost();
    catalog::SummationTimeCost();
    catalog::LookupBatchedTimeCost();
  });
  size_t expected = 0;
  for (const catalog::Entry* entry : catalog::kEntries) {
    const std::string labels = entry->label.empty() ? "" : "{" + std::string(entry->label) + "=\"f\"}";
    const std::string name = "persia/" + std::string(entry->name);
    ASSERT_TRUE(segment.series.contains(name + labels)) << name + labels;
    EXPECT_EQ(segment.series.at(name + labels).help, entry->help);
    EXPECT_EQ(segment.series.at(name + labels).unit, entry->unit);
    ++expected;
    if (entry->type == catalog::Type::kTimeCost) {
      EXPECT_TRUE(segment.series.contains(name + "_sec"));
      ++expected;
    }
  }
  EXPECT_EQ(segment.series.size(), expected);
}

TEST(Bounds, HelpersGiveWhatTheySay) {
  EXPECT_EQ(LinearBounds(1, 0.5, 3), (std::vector<double>{1, 1.5, 2}));
  EXPECT_EQ(ExponentialBounds(1, 4, 3), (std::vector<double>{1, 4, 16}));
  EXPECT_TRUE(LinearBounds(1, 1, 0).empty());
}

}  // namespace
}  // namespace persia::metrics::tests

// What a program reads back of its own values.
#include "persia/metrics/read.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "persia/metrics/metrics.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

class ReadTest : public WorkerTest {
 protected:
  void Check(const std::function<void()>& body) {
    const auto outcome = RunBareWorker(body);
    EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  }
};

TEST_F(ReadTest, EachInstrumentReturnsItsValue) {
  Check([] {
    Counter counter("g", "counter");
    EXPECT_EQ(counter.Value(), 0);
    counter.Increment(3);
    counter.Increment(0.5);
    EXPECT_EQ(counter.Value(), 3.5);

    Gauge gauge("g", "gauge");
    EXPECT_EQ(gauge.Value(), std::nullopt);
    gauge.Add(-2);
    EXPECT_EQ(gauge.Value(), -2);

    Histogram histogram("g", "histogram", {0.1, 1, 10});
    EXPECT_EQ(histogram.Value().count, 0U);
    histogram.Observe(0.1);
    histogram.Observe(100);
    histogram.Observe(0.5, 4);
    histogram.Observe(7, 0);
    const HistogramValue value = histogram.Value();
    EXPECT_EQ(value.count, 6U);
    EXPECT_EQ(value.sum, 0.1 + 100 + 2);
    EXPECT_EQ(value.bounds, (std::vector<double>{0.1, 1, 10}));
    EXPECT_EQ(value.buckets, (std::vector<uint64_t>{1, 4, 0, 1}));

    TimeCost cost("g", "cost");
    EXPECT_EQ(cost.Value().last, std::nullopt);
    cost.Observe(0.5);
    cost.Observe(0.25, 2);
    EXPECT_EQ(cost.Value().histogram.count, 3U);
    EXPECT_EQ(cost.Value().histogram.sum, 1);
    EXPECT_EQ(cost.Value().histogram.bounds.size(), DefaultSecondsBounds().size());
    EXPECT_EQ(cost.Value().last, 0.25);

    Stream stream("g", "stream");
    EXPECT_EQ(stream.Value().last, std::nullopt);
    stream.Add(-2);
    stream.Add(0);
    stream.Add(1.5, 2);
    EXPECT_EQ(stream.Value().count, 4U);
    EXPECT_EQ(stream.Value().sum, 1);
    EXPECT_EQ(stream.Value().last, 1.5);

    EXPECT_EQ(events::Count("g", "saved"), 0U);
    events::Record("g", "saved", {{"bytes", int64_t{1}}});
    events::Record("g", "saved");
    EXPECT_EQ(events::Count("g", "saved"), 2U);
    EXPECT_EQ(events::Count("g", "other"), 0U);
  });
}

TEST_F(ReadTest, HandlesThatCountNothingMakeNoFileAndReadAsZero) {
  const auto outcome = RunWorker([] {
    Counter counter;
    counter.Increment();
    counter.Increment(0.5);
    EXPECT_EQ(counter.Value(), 0);
    Gauge gauge;
    gauge.Set(3);
    gauge.Add(1);
    EXPECT_EQ(gauge.Value(), std::nullopt);
    Histogram histogram;
    histogram.Observe(3);
    histogram.Observe(3, 2);
    EXPECT_EQ(histogram.Value().count, 0U);
    Stream stream;
    stream.Add(3);
    EXPECT_EQ(stream.Value().count, 0U);
    TimeCost cost;
    cost.Observe(1);
    EXPECT_EQ(cost.Value().histogram.count, 0U);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_TRUE(SegmentsIn(directory()).empty());
}

TEST_F(ReadTest, ValueHasTheCountsOfAllThreadsAndNeverFallsWhileTheyCount) {
  Check([] {
    Counter counter("g", "c");
    std::atomic<bool> done = false;
    std::atomic<uint64_t> counted = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        uint64_t own = 0;
        for (; !done; ++own) counter.Increment();
        counted += own;
      });
    }
    double last = 0;
    while (last < 100'000) {
      const double now = counter.Value();
      ASSERT_GE(now, last);
      last = now;
    }
    done = true;
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(counter.Value(), static_cast<double>(counted));
  });
}

TEST_F(ReadTest, SnapshotHasAllMetricsByNameAndLabels) {
  Check([] {
    Family<Counter> nans("g", "nans", {.help = "NaNs.", .unit = "values", .labels = {{"job", "a"}}});
    nans.With({{"feat", "user"}}).Increment(2);
    nans.With({{"feat", "item"}}).Increment(1);
    Gauge("g", "gauge", GaugeMerge::kSum).Set(4);
    Gauge("g", "unset");
    Histogram("g", "native", NativeBuckets{.factor = 2, .zero_threshold = 1, .most = 4}).Observe(3);
    Stream("g", "both").Add(7);
    events::Record("g", "both");
    events::Record("g", "both");

    const Snapshot snapshot = ReadSnapshot();
    EXPECT_EQ(snapshot.Value("g", "nans", {{"job", "a"}, {"feat", "user"}}), 2);
    EXPECT_EQ(snapshot.Value("g", "nans", {{"feat", "item"}, {"job", "a"}}), 1);
    EXPECT_EQ(snapshot.Value("g", "nans", {{"feat", "item"}}), std::nullopt);
    EXPECT_EQ(snapshot.Value("g", "nans"), std::nullopt);
    EXPECT_EQ(snapshot.Value("g", "other"), std::nullopt);
    const MetricSnapshot* metric = snapshot.FindMetric("g", "nans");
    ASSERT_NE(metric, nullptr);
    EXPECT_EQ(metric->kind, MetricKind::kCounter);
    EXPECT_EQ(metric->help, "NaNs.");
    EXPECT_EQ(metric->unit, "values");
    EXPECT_EQ(metric->series.size(), 2U);
    EXPECT_EQ(metric->series[0].labels, (LabelSet{{"feat", "user"}, {"job", "a"}}));
    EXPECT_EQ(snapshot.FindMetric("g", "gauge")->merge, GaugeMerge::kSum);
    ASSERT_NE(snapshot.Find("g", "unset"), nullptr);
    EXPECT_EQ(snapshot.Find("g", "unset")->value, std::nullopt);
    EXPECT_EQ(snapshot.FindMetric("g", "native")->kind, MetricKind::kNativeHistogram);
    EXPECT_EQ(snapshot.FindMetric("g", "native")->bounds, (std::vector<double>{1, 2, 4}));
    EXPECT_EQ(snapshot.Find("g", "native")->buckets, (std::vector<uint64_t>{0, 0, 1, 0}));
    EXPECT_EQ(snapshot.Value("g", "native"), 1);
    EXPECT_EQ(snapshot.Find("g", "both")->sum, 7);
    EXPECT_EQ(snapshot.FindEvent("g", "both")->series.at(0).value, 2);

    EXPECT_EQ(ReadValue("g", "nans", {{"job", "a"}, {"feat", "user"}}), 2);
    EXPECT_EQ(ReadValue("g", "nans"), std::nullopt);
    EXPECT_EQ(ReadValue("g", "gauge"), 4);
    EXPECT_EQ(ReadValue("g", "unset"), std::nullopt);
    EXPECT_EQ(ReadValue("g", "native"), 1);
    EXPECT_EQ(ReadValue("g", "both"), 7);
    EXPECT_EQ(ReadValue("g", "no such metric"), std::nullopt);
    EXPECT_EQ(ReadSnapshot().FindMetric("g", "no such metric"), nullptr);
  });
}

TEST_F(ReadTest, AFamilyHasEachInstrument) {
  Check([] {
    Family<Gauge>("g", "gauges", GaugeMerge::kMax, {.help = "Gauges."}).With({{"a", "b"}}).Set(1);
    Family<Histogram>("g", "default").With({{"a", "b"}}).Observe(1);
    Family<Histogram>("g", "braces", {1, 2}).With({{"a", "b"}}).Observe(1);
    Family<Histogram>("g", "native", NativeBuckets{}).With({{"a", "b"}}).Observe(1);
    Family<TimeCost> costs("g", "costs", {0.5, 1}, {.help = "Costs.", .labels = {{"c", "d"}}});
    costs.With({{"a", "b"}}).Observe(0.25);
    Family<TimeCost>("g", "default costs").With({{"a", "b"}}).Observe(0.25);
    Family<Stream> streams("g", "streams");
    streams.With({{"a", "b"}}).Add(3);
    streams.With({{"a", "c"}}).Add(4);

    const Snapshot snapshot = ReadSnapshot();
    EXPECT_EQ(snapshot.FindMetric("g", "gauges")->merge, GaugeMerge::kMax);
    EXPECT_EQ(snapshot.FindMetric("g", "default")->bounds.size(), DefaultSecondsBounds().size());
    EXPECT_EQ(snapshot.FindMetric("g", "braces")->bounds, (std::vector<double>{1, 2}));
    EXPECT_EQ(snapshot.FindMetric("g", "native")->kind, MetricKind::kNativeHistogram);
    EXPECT_EQ(snapshot.Value("g", "costs", {{"a", "b"}, {"c", "d"}}), 1);
    EXPECT_EQ(snapshot.Value("g", "costs_sec", {{"a", "b"}, {"c", "d"}}), 0.25);
    EXPECT_EQ(snapshot.FindMetric("g", "costs_sec")->help, "Costs. The last one.");
    EXPECT_EQ(snapshot.FindMetric("g", "default costs")->bounds.size(), DefaultSecondsBounds().size());
    EXPECT_EQ(snapshot.Value("g", "streams", {{"a", "b"}}), 3);
    EXPECT_EQ(snapshot.Value("g", "streams", {{"a", "c"}}), 4);
    // The family and the instrument of one definition are one metric.
    TimeCost("g", "costs", {0.5, 1}, {.labels = {{"a", "b"}, {"c", "d"}}}).Observe(0.75);
    EXPECT_EQ(ReadValue("g", "costs", {{"a", "b"}, {"c", "d"}}), 2);
  });
}

}  // namespace
}  // namespace persia::metrics::tests

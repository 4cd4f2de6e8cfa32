// The copy of a prometheus-cpp registry in this process's segment.
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "persia/metrics/instruments.h"
#include "persia/metrics/prometheus_cpp.h"
#include "said.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// With the bounds 1, 2, ... and infinity, and these cumulative counts.
prometheus::MetricFamily HistogramFamily(const std::vector<uint64_t>& counts, double sum) {
  ClientMetric metric;
  metric.histogram = {counts.back(), sum, {}};
  for (size_t i = 0; i < counts.size(); ++i) {
    metric.histogram.bucket.push_back({counts[i], i + 1 < counts.size() ? static_cast<double>(i + 1) : kInf});
  }
  return {"h", "", MetricType::Histogram, {metric}};
}

class RegistryCopyTest : public WorkerTest {
 protected:
  // The segment after copying a counter's values, one after another.
  SegmentView AfterCounts(const std::vector<double>& values) {
    return SegmentOf([&] {
      const auto said = std::make_shared<Said>();
      said->Say({CounterFamily("c", values.front())});
      RegistryCopy copy(said, kNever);
      copy.CopyNow();
      for (const double value : values) {
        said->Say({CounterFamily("c", value)});
        copy.CopyNow();
      }
    });
  }
};

// Four processes, one of them after a restart, each of which reads the bytes of a card.
TEST_F(RegistryCopyTest, TotalsThatOthersCountAreCopiedAsTheyAre) {
  for (const double bytes : {600.0, 700.0, 806.0, 5.0}) {
    const auto outcome = RunWorker([bytes] {
      const auto card = std::make_shared<Said>();
      RegistryCopy copy(card, CountedBy::kOthers, kNever);
      prometheus::MetricFamily sizes = HistogramFamily({1, 2}, 2);
      for (const double now : {bytes - 5, bytes}) {
        card->Say({CounterFamily("bytes_total", now), sizes});
        copy.CopyNow();
      }
    });
    EXPECT_EQ(
        outcome.error_output,
        "persia-metrics: \"h\" of a prometheus-cpp registry is left out: histograms and summaries are not copied if others "
        "count them\n");
    const auto segment = OnlySegment();
    EXPECT_EQ(segment.series.size(), 1U);
    EXPECT_EQ(segment.series.at("/bytes_total").gauge_policy, static_cast<int>(GaugeMerge::kMax));
    EXPECT_EQ(segment.series.at("/bytes_total").value, bytes);
    std::filesystem::remove(SegmentsIn(directory()).at(0));
  }
}

TEST_F(RegistryCopyTest, EveryKindArrivesWithLabelsAndHelp) {
  const auto segment = SegmentOf([] {
    const auto registry = std::make_shared<prometheus::Registry>();
    auto& counters =
        prometheus::BuildCounter().Name("steps_total").Help("Steps.").Labels({{"job_kind", "a"}}).Register(*registry);
    auto& counter = counters.Add({{"phase", "warm"}});
    auto& gauge = prometheus::BuildGauge().Name("loss").Register(*registry).Add({});
    auto& histogram = prometheus::BuildHistogram().Name("cost").Help("Cost.").Register(*registry).Add(
        {}, prometheus::Histogram::BucketBoundaries{0.5, 1});
    auto& summary = prometheus::BuildSummary().Name("size").Register(*registry).Add(
        {{"of", "batch"}}, prometheus::Summary::Quantiles{{0.5, 0.05}, {0.99, 0.001}});
    counter.Increment(2.5);
    RegistryCopy copy(registry, kNever);
    for (int round = 1; round <= 3; ++round) {
      counter.Increment(3);
      gauge.Set(round);
      for (const double value : {0.5, 0.75, 8.0}) {
        histogram.Observe(value);
      }
      summary.Observe(4);
      copy.CopyNow();
      copy.CopyNow();
    }
    counter.Increment();
  });
  const SeriesView& counter = segment.series.at("/steps_total{job_kind=\"a\",phase=\"warm\"}");
  EXPECT_EQ(static_cast<double>(counter.whole) + counter.fraction, 12.5);
  EXPECT_EQ(counter.help, "Steps.");
  EXPECT_EQ(segment.series.at("/loss").value, 3);
  const SeriesView& histogram = segment.series.at("/cost");
  EXPECT_EQ(histogram.bounds, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(histogram.buckets, (std::vector<uint64_t>{3, 3, 3}));
  EXPECT_EQ(histogram.fraction, 27.75);
  EXPECT_EQ(histogram.help, "Cost.");
  EXPECT_EQ(segment.series.at("/size_count{of=\"batch\"}").whole, 3U);
  EXPECT_EQ(segment.series.at("/size_sum{of=\"batch\"}").whole, 12U);
  EXPECT_EQ(segment.series.at("/size{of=\"batch\",quantile=\"0.5\"}").value, 4);
  EXPECT_EQ(segment.series.at("/size{of=\"batch\",quantile=\"0.99\"}").value, 4);
  EXPECT_EQ(segment.series.size(), 7U);
}

TEST_F(RegistryCopyTest, CounterThatFellCountsFromZeroAgain) {
  EXPECT_EQ(AfterCounts({5, 7, 3, 4}).series.at("/c").whole, 11U);
}

TEST_F(RegistryCopyTest, CounterThatFellToZeroCountsFromThere) {
  EXPECT_EQ(AfterCounts({5, 0, 0, 2}).series.at("/c").whole, 7U);
}

TEST_F(RegistryCopyTest, CounterThatIsNoneAddsNothing) {
  const auto segment = AfterCounts({2, kNan, kInf, -4, 3});
  EXPECT_EQ(segment.series.at("/c").whole, 3U);
  EXPECT_EQ(segment.dropped, std::vector<uint64_t>(segment.dropped.size(), 0));
}

TEST_F(RegistryCopyTest, HistogramThatIsReadWhileItCountsIsCountedOnce) {
  const struct {
    const char* what;
    std::vector<std::vector<uint64_t>> shown;  // cumulative
    std::vector<uint64_t> buckets;
  } cases[] = {
      {"the last bound late", {{100, 200, 300}, {101, 201, 300}, {101, 201, 301}}, {101, 100, 100}},
      {"the first bound late", {{100, 200, 300}, {100, 200, 301}, {101, 201, 301}, {101, 201, 302}}, {101, 100, 101}},
      {"the middle late", {{1, 2, 3}, {2, 2, 4}, {2, 3, 4}, {2, 3, 5}}, {2, 1, 2}},
      {"never whole", {{1, 2, 3}, {2, 3, 3}, {4, 4, 4}, {4, 5, 6}}, {4, 1, 1}},
  };
  for (const auto& one : cases) {
    const auto segment = SegmentOf([&] {
      const auto said = std::make_shared<Said>();
      said->Say({HistogramFamily(one.shown.front(), 0)});
      RegistryCopy copy(said, kNever);
      for (const auto& counts : one.shown) {
        said->Say({HistogramFamily(counts, 0)});
        copy.CopyNow();
      }
    });
    EXPECT_EQ(segment.series.at("/h").buckets, one.buckets) << one.what;
    std::filesystem::remove_all(directory());
    std::filesystem::create_directory(directory());
  }
}

TEST_F(RegistryCopyTest, SumOfASummaryStaysAtTheHighestThatItHasBeen) {
  const auto segment = SegmentOf([] {
    const auto said = std::make_shared<Said>();
    const auto show = [&](const std::string& name, uint64_t count, double sum) {
      ClientMetric metric;
      metric.summary.sample_count = count;
      metric.summary.sample_sum = sum;
      said->Say({{name, "", MetricType::Summary, {metric}}});
    };
    show("falls", 1, 5);
    RegistryCopy copy(said, kNever);
    copy.CopyNow();
    uint64_t count = 1;
    for (const double sum : {3.0, 4.0, 6.0, -1.0}) {
      show("falls", ++count, sum);
      copy.CopyNow();
    }
    show("negative", 1, -2);
    copy.CopyNow();
  });
  EXPECT_EQ(segment.series.at("/falls_count").whole, 5U);
  EXPECT_EQ(segment.series.at("/falls_sum").whole, 6U);
  EXPECT_EQ(segment.series.at("/negative_count").whole, 1U);
  EXPECT_EQ(segment.series.at("/negative_sum").whole, 0U);
}

TEST_F(RegistryCopyTest, HistogramThatFellCountsFromZeroAgain) {
  const auto segment = SegmentOf([] {
    const auto said = std::make_shared<Said>();
    const auto show = [&](std::vector<uint64_t> counts, double sum) { said->Say({HistogramFamily(counts, sum)}); };
    show({2, 3, 4}, 8);
    RegistryCopy copy(said, kNever);
    copy.CopyNow();
    show({3, 4, 5}, kNan);
    copy.CopyNow();
    show({3, 4, 5}, 9);
    copy.CopyNow();
    show({1, 9, 9}, 10);
    copy.CopyNow();
  });
  EXPECT_EQ(segment.series.at("/h").buckets, (std::vector<uint64_t>{4, 9, 1}));
  EXPECT_EQ(segment.series.at("/h").fraction, 19);
}

TEST_F(RegistryCopyTest, HistogramOfOtherBoundsWaitsForItsOwn) {
  const auto outcome = RunWorker([] {
    const auto registry = std::make_shared<prometheus::Registry>();
    auto& family = prometheus::BuildHistogram().Name("h").Register(*registry);
    const std::vector<double> bounds = {1, 2};
    const std::vector<double> others = {1};
    auto* histogram = &family.Add({}, bounds);
    histogram->Observe(1);
    RegistryCopy copy(registry, kNever);
    copy.CopyNow();
    for (const auto* made_with : {&others, &bounds}) {
      family.Remove(histogram);
      histogram = &family.Add({}, *made_with);
      histogram->Observe(2);
      copy.CopyNow();
      copy.CopyNow();
    }
  });
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
  EXPECT_EQ(OnlySegment().series.at("/h").buckets, (std::vector<uint64_t>{1, 1, 0}));
}

TEST_F(RegistryCopyTest, UntypedAndNewerTypesAreGauges) {
  const auto segment = SegmentOf([] {
    const auto said = std::make_shared<Said>();
    ClientMetric metric;
    metric.untyped.value = -2;
    said->Say({{"u", "", MetricType::Untyped, {metric}}, {"build", "", static_cast<MetricType>(5), {metric}}});
    RegistryCopy copy(said, kNever);
  });
  EXPECT_EQ(segment.series.at("/u").value, -2);
  EXPECT_EQ(segment.series.at("/build_info").value, 1);
}

TEST_F(RegistryCopyTest, NewSeriesAreTakenUpAndVanishedOnesKeepTheirCount) {
  const auto segment = SegmentOf([] {
    const auto registry = std::make_shared<prometheus::Registry>();
    auto& family = prometheus::BuildCounter().Name("c").Register(*registry);
    auto& first = family.Add({{"n", "1"}});
    first.Increment(4);
    RegistryCopy copy(registry, kNever);
    copy.CopyNow();
    family.Remove(&first);
    family.Add({{"n", "2"}}).Increment(2);
    copy.CopyNow();
    family.Add({{"n", "1"}}).Increment(3);
  });
  EXPECT_EQ(segment.series.at("/c{n=\"1\"}").whole, 7U);
  EXPECT_EQ(segment.series.at("/c{n=\"2\"}").whole, 2U);
}

}  // namespace
}  // namespace persia::metrics::tests

// What of a prometheus-cpp registry arrives in this process's segment.
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "persia/metrics/instruments.h"
#include "persia/metrics/prometheus_cpp.h"
#include "worker.h"

namespace persia::metrics::testing {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::chrono::hours kNever(1);  // by itself: at once, and at its end
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Shows what a test says.
class Said : public prometheus::Collectable {
 public:
  explicit Said(std::vector<MetricFamily> families = {}) : families_(std::move(families)) {}
  void Say(std::vector<MetricFamily> families) {
    const std::lock_guard lock(mutex_);
    families_ = std::move(families);
  }
  [[nodiscard]] std::vector<MetricFamily> Collect() const override {
    const std::lock_guard lock(mutex_);
    return families_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<MetricFamily> families_;
};

MetricFamily CounterFamily(const std::string& name, double value, std::vector<ClientMetric::Label> labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  return {name, "", MetricType::Counter, {metric}};
}

// A copy that is never destroyed; its pointer stays, so that nobody calls it a leak.
void MakeForEver(std::shared_ptr<prometheus::Collectable> registry) {
  static auto& copies = *new std::vector<RegistryCopy*>();
  copies.push_back(new RegistryCopy(std::move(registry), kNever));
}

class RegistryCopyTest : public WorkerTest {
 protected:
  // The segment after copying what a counter shows, one value after another.
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

TEST_F(RegistryCopyTest, HistogramThatFellCountsFromZeroAgain) {
  const auto segment = SegmentOf([] {
    const auto said = std::make_shared<Said>();
    const auto show = [&](std::vector<ClientMetric::Bucket> buckets, uint64_t count, double sum) {
      ClientMetric metric;
      metric.histogram = {count, sum, std::move(buckets)};
      said->Say({{"h", "", MetricType::Histogram, {metric}}});
    };
    show({{2, 1}, {3, 2}, {4, kInf}}, 4, 8);
    RegistryCopy copy(said, kNever);
    copy.CopyNow();
    show({{3, 1}, {4, 2}, {5, kInf}}, 5, kNan);
    copy.CopyNow();
    show({{3, 1}, {4, 2}, {5, kInf}}, 5, 9);
    copy.CopyNow();
    show({{1, 1}, {9, 2}, {9, kInf}}, 9, 10);
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

TEST_F(RegistryCopyTest, CopiesByItselfWhileOthersCount) {
  const auto segment = SegmentOf([] {
    const auto registry = std::make_shared<prometheus::Registry>();
    auto& counter = prometheus::BuildCounter().Name("c").Register(*registry).Add({});
    auto& gauge = prometheus::BuildGauge().Name("g").Register(*registry).Add({});
    RegistryCopy copy(registry, std::chrono::milliseconds(0));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 20000; ++round) {
          counter.Increment();
          gauge.Set(round);
        }
        copy.CopyNow();
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
  EXPECT_EQ(segment.series.at("/c").whole, 60000U);
  EXPECT_EQ(segment.series.at("/g").value, 19999);
}

TEST_F(RegistryCopyTest, LastCopyIsMadeAtExit) {
  const auto outcome = RunWorker([] {
    const auto registry = std::make_shared<prometheus::Registry>();
    auto& counter = prometheus::BuildCounter().Name("c").Register(*registry).Add({});
    MakeForEver(registry);
    counter.Increment(5);
    std::exit(0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(OnlySegment().series.at("/c").whole, 5U);
}

TEST_F(RegistryCopyTest, RegistryThatBlocksHoldsUpAnExitForSecondsOnly) {
  class Stuck : public prometheus::Collectable {
   public:
    [[nodiscard]] std::vector<MetricFamily> Collect() const override {
      for (;;) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
    }
  };
  const auto outcome = RunWorker([] {
    Counter("g", "c").Increment();
    MakeForEver(std::make_shared<Stuck>());
    std::exit(0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(OnlySegment().series.at("g/c").whole, 1U);
}

TEST_F(RegistryCopyTest, HostileFamiliesCostThemselvesOnly) {
  const auto outcome = RunWorker([] {
    const auto said = std::make_shared<Said>();
    ClientMetric histogram;
    histogram.histogram = {5, 1, {{9, 2}, {3, 1}, {5, kNan}}};
    ClientMetric wide;
    for (int i = 0; i < 600; ++i) {
      wide.histogram.bucket.push_back({uint64_t(i), double(i)});
    }
    said->Say({CounterFamily("", 1),
               CounterFamily(std::string(300, 'n'), 1),
               CounterFamily("twice", 1, {{"a", "1"}, {"a", "2"}}),
               CounterFamily("same", 4),
               CounterFamily("same", 9),
               {"backward", "", MetricType::Histogram, {histogram}},
               {"wide", "", MetricType::Histogram, {wide}},
               {"mixed", "", MetricType::Histogram, {ClientMetric{}}},
               {"mixed", "", MetricType::Gauge, {ClientMetric{}}},
               CounterFamily("ü\n\xff{}", 2, {{"\"", "\n"}}),
               CounterFamily("good", 3)});
    RegistryCopy copy(said, kNever);
    for (int i = 0; i < 3; ++i) {
      copy.CopyNow();
    }
  });
  EXPECT_EQ(outcome.wait_status, 0);
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 6) << outcome.error_output;
  const auto segment = OnlySegment();
  EXPECT_EQ(segment.series.at("/same").whole, 4U);
  EXPECT_EQ(segment.series.at("/good").whole, 3U);
  EXPECT_EQ(segment.series.at("/ü\n\xff{}{\"=\"\n\"}").whole, 2U);
  EXPECT_EQ(segment.series.size(), 4U);
}

TEST_F(RegistryCopyTest, RegistryThatThrowsIsTriedAgain) {
  class Moody : public prometheus::Collectable {
   public:
    [[nodiscard]] std::vector<MetricFamily> Collect() const override {
      if (!good) {
        throw std::runtime_error("not now");
      }
      return {CounterFamily("c", 6)};
    }
    std::atomic<bool> good = false;
  };
  const auto outcome = RunWorker([] {
    const auto moody = std::make_shared<Moody>();
    RegistryCopy copy(moody, kNever);
    copy.CopyNow();
    copy.CopyNow();
    moody->good = true;
  });
  EXPECT_EQ(outcome.error_output,
            "persia-metrics: a prometheus-cpp registry was not copied, and will be tried again: not now\n");
  EXPECT_EQ(OnlySegment().series.at("/c").whole, 6U);
}

TEST_F(RegistryCopyTest, OwnMetricsAreNotCopiedIntoThemselves) {
  const auto outcome = RunWorker([] {
    Counter("", "c").Increment();
    RegistryCopy own(AsCollectable(), kNever);
    RegistryCopy none(nullptr);
    own.CopyNow();
    none.CopyNow();
  });
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
  EXPECT_EQ(OnlySegment().series.at("/c").whole, 1U);
}

TEST_F(RegistryCopyTest, ForkedChildCopiesNothingAndEnds) {
  const auto segment = SegmentOf([this] {
    const auto registry = std::make_shared<prometheus::Registry>();
    auto& counter = prometheus::BuildCounter().Name("c").Register(*registry).Add({});
    counter.Increment(2);
    auto copy = std::make_unique<RegistryCopy>(registry, kNever);
    const auto child = RunBareWorker([&] {
      counter.Increment();
      copy->CopyNow();
      copy.reset();
      std::exit(0);
    });
    EXPECT_EQ(child.wait_status, 0) << child.error_output;
    copy.reset();
  });
  EXPECT_EQ(segment.series.at("/c").whole, 2U);
}

}  // namespace
}  // namespace persia::metrics::testing

// Memory that runs out costs measurements, which are counted, and nothing else: no exception, no end of the process.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "failing_memory.h"
#include "persia/metrics/c.h"
#include "persia/metrics/metrics.h"
#include "segment_format.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

class MemoryTest : public WorkerTest {
 protected:
  // Runs `body` in a new process for each allocation in it that may fail. `body` arms the failure. Afterwards
  // counts and exports must work, and a measurement that is missing must be counted.
  void FailEachAllocation(const std::function<void(const std::function<void()>& arm)>& body, const std::string& series) {
    bool failed = true;
    int runs = 0;
    for (long n = 0; failed; ++n, ++runs) {
      const auto outcome = RunWorker([&] {
        ASSERT_NE(std::freopen("/dev/null", "w", stdout), nullptr);  // for the output of emit
        body([n] { FailAllocationAfter(n); });
        const bool has_failed = AllocationHasFailed();
        FailAllocationAfter(-1);
        Counter("g", "afterwards").Increment(3);
        ASSERT_TRUE(Init().exporting) << n;
        const SegmentView segment = OnlySegment();
        ASSERT_EQ(segment.series.at("g/afterwards").whole, 3U) << n;
        ASSERT_TRUE(segment.series.contains(series) || segment.dropped.at(static_cast<size_t>(segment::Drop::kOutOfMemory)) > 0)
            << n;
        if (!has_failed) _exit(42);  // the tables that an index has outgrown are no leak
      });
      failed = !(WIFEXITED(outcome.wait_status) && WEXITSTATUS(outcome.wait_status) == 42);
      ASSERT_TRUE(!failed || outcome.wait_status == 0) << "at allocation " << n << ": " << outcome.error_output;
      for (const std::string& path : SegmentsIn(directory())) {
        std::remove(path.c_str());
      }
    }
    EXPECT_GT(runs, 3) << "nothing was allocated";
  }
};

const Description kAbout = {.help = std::string(100, 'h'), .labels = {{"a label with a long name", "a value that is long"}}};
constexpr char kName[] = "a name that is longer than a short string";

TEST_F(MemoryTest, OfACounter) {
  FailEachAllocation(
      [](const auto& arm) {
        arm();
        Counter(kName, kName, kAbout).Increment();
      },
      std::string(kName) + "/" + kName + R"({a label with a long name="a value that is long"})");
}

TEST_F(MemoryTest, OfATimeCost) {
  FailEachAllocation(
      [](const auto& arm) {
        arm();
        TimeCost(kName, kName, kAbout).Observe(1);
      },
      std::string(kName) + "/" + kName + R"(_sec{a label with a long name="a value that is long"})");
}

TEST_F(MemoryTest, OfAFamily) {
  FailEachAllocation(
      [](const auto& arm) {
        arm();
        Family<Histogram> family(kName, kName, LinearBounds(0, 1, 10), kAbout);
        family.With({{"b", "a value that is long enough"}}).Observe(1);
      },
      std::string(kName) + "/" + kName +
          R"({a label with a long name="a value that is long",b="a value that is long enough"})");
}

TEST_F(MemoryTest, OfAnIndexThatGrows) {
  FailEachAllocation(
      [this](const auto& arm) {
        Family<Counter> family("g", "c");
        for (int i = 0; i < 31; ++i) {
          family.With({{"i", std::to_string(i)}});
        }
        arm();
        for (int i = 31; i < 35; ++i) {
          family.With({{"i", std::to_string(i)}}).Increment();
        }
        FailAllocationAfter(-1);
        for (unsigned i = 0; i < 100; ++i) {
          Counter("g", "c" + std::to_string(i)).Increment(i);
        }
        const SegmentView segment = OnlySegment();
        for (unsigned i = 0; i < 100; ++i) {
          ASSERT_EQ(segment.series.at("g/c" + std::to_string(i)).whole, i) << "its family has the number of another one";
        }
      },
      "g/c{i=\"34\"}");
}

TEST_F(MemoryTest, OfInit) {
  const auto outcome = [&](long n) {
    return RunBareWorker([&, n] {
      Counter counter("g", "c");
      counter.Increment();
      const Options options{.job_name = "a job with a name that is long", .role = kName, .metrics_dir = directory()};
      FailAllocationAfter(n);
      Init(options);
      const bool has_failed = AllocationHasFailed();
      FailAllocationAfter(-1);
      ASSERT_TRUE(Init(options).exporting);
      ASSERT_EQ(OnlySegment().series.at("g/c").whole, 1U);
      ASSERT_EQ(OnlySegment().role, kName);
      if (!has_failed) _exit(42);  // the tables that an index has outgrown are no leak
    });
  };
  for (long n = 0;; ++n) {
    const auto ended = outcome(n);
    for (const std::string& path : SegmentsIn(directory())) {
      std::remove(path.c_str());
    }
    if (WIFEXITED(ended.wait_status) && WEXITSTATUS(ended.wait_status) == 42) break;
    ASSERT_EQ(ended.wait_status, 0) << "at allocation " << n << ": " << ended.error_output;
  }
}

class SilentHandler : public MetricHandler {
 public:
  void Emit(const MetricData& /*data*/) override {}
};

TEST_F(MemoryTest, OfStreamsEventsAndProf) {
  FailEachAllocation(
      [](const auto& arm) {
        const auto handler = std::make_shared<SilentHandler>();
        arm();
        PutMetric(kName, 1, kName);
        Configure(handler, kName);
        GetStream(kName).AddValue(kName, 1);
        PutMetric(kName, 1, "another group with a long name");
        { const Prof prof(kName, "a third group with a long name"); }
        Stream(kName, kName).Add(1);
        Family<TimeCost>("family", kName, kAbout).With({{"feat", kName}}).Observe(1);
        static_cast<void>(Histogram(kName, "histogram").Value());
        static_cast<void>(ReadSnapshot());
        events::Record("a type with a name that is long", kName, {{"key", "value"}});
        benchmarkai::Emit({{kName, 1}});
      },
      std::string(kName) + "/" + kName);
}

TEST_F(MemoryTest, OfEventHandlers) {
  FailEachAllocation(
      [](const auto& arm) {
        const auto handler = std::make_shared<events::NullEventHandler>();
        const events::Event event{.name = kName, .metadata = {{kName, std::string(kName)}}};
        arm();
        events::Configure(handler, kName);
        events::Record(kName, kName, {{"key", "value"}});
        events::RecordEvent(event);
      },
      std::string(kName) + "/" + kName);
}

constexpr persia_metrics_pair_t kLabelsInC[] = {{"a label with a long name", "a value that is long"}};
constexpr persia_metrics_description_t kAboutInC = {kName, kName, kLabelsInC, 1};
const std::string kNameAndLabels = std::string(kName) + R"({a label with a long name="a value that is long"})";

TEST_F(MemoryTest, OfInitCountersAndGaugesInC) {
  FailEachAllocation(
      [](const auto& arm) {
        arm();
        persia_metrics_init("a job with a name that is long", kName, -1);
        persia_metrics_counter_t* counter = persia_metrics_counter(kName, kName, &kAboutInC);
        persia_metrics_counter_add(counter, 1);
        persia_metrics_counter_value(counter);
        persia_metrics_gauge_set(persia_metrics_gauge(kName, "gauge", PERSIA_METRICS_GAUGE_SUM, &kAboutInC), 1);
      },
      std::string(kName) + "/" + kNameAndLabels);
}

TEST_F(MemoryTest, OfDistributionsInC) {
  FailEachAllocation(
      [](const auto& arm) {
        arm();
        persia_metrics_histogram_t* histogram = persia_metrics_histogram(kName, kName, nullptr, 0, &kAboutInC);
        persia_metrics_histogram_observe_many(histogram, 1, 2);
        persia_metrics_histogram_value(histogram, nullptr, nullptr, 0);
        persia_metrics_time_cost_observe(persia_metrics_time_cost(kName, "time cost", nullptr, 0, &kAboutInC), 1);
        persia_metrics_stream_add(persia_metrics_stream(kName, "stream", &kAboutInC), 1);
      },
      std::string(kName) + "/" + kNameAndLabels);
}

TEST_F(MemoryTest, OfReadsEventsAndEmitInC) {
  FailEachAllocation(
      [](const auto& arm) {
        persia_metrics_counter_add(persia_metrics_counter(kName, kName, &kAboutInC), 1);
        arm();
        persia_metrics_read([](const persia_metrics_series_t*, void*) {}, nullptr);
        double value = 0;
        persia_metrics_read_value(kName, kName, kLabelsInC, 1, &value);
        persia_metrics_set_log_handler([](const char*, void*) {}, nullptr);
        persia_metrics_set_log_handler(nullptr, nullptr);
        persia_metrics_event(kName, kName, kLabelsInC, 1);
        const persia_metrics_number_t number = {kName, 1};
        char error[8];
        persia_metrics_emit(&number, 1, error, sizeof error);
      },
      std::string(kName) + "/" + kNameAndLabels);
}

}  // namespace
}  // namespace persia::metrics::tests

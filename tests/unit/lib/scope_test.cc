// testing::Scope: a test starts from 0.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "c_program.h"
#include "persia/metrics/metrics.h"
#include "persia/metrics/testing.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using testing::Scope;

class ScopeTest : public WorkerTest {
 protected:
  void Check(const std::function<void()>& body) {
    const auto outcome = RunBareWorker(body);
    EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  }
};

// An instrument of each kind, and what it counts.
struct Instruments {
  Counter counter{"g", "counter"};
  Gauge gauge{"g", "gauge"};
  Histogram histogram{"g", "histogram", {1, 10}};
  TimeCost cost{"g", "cost", {1}};
  Stream stream{"g", "stream"};

  void Use(int times) {
    for (int i = 0; i < times; ++i) {
      counter.Increment();
      counter.Increment(0.5);
      gauge.Add(1);
      histogram.Observe(5);
      cost.Observe(0.25);
      stream.Add(2);
      events::Record("g", "event", {{"i", int64_t{i}}});
    }
  }
  // Whether the counts of as many uses are there, and the last values of so many.
  void ExpectUses(int times) const { ExpectUses(times, times); }
  void ExpectUses(int times, int last) const {
    const auto count = static_cast<uint64_t>(times);
    EXPECT_EQ(counter.Value(), 1.5 * times);
    EXPECT_EQ(gauge.Value(), last == 0 ? std::nullopt : std::optional<double>(last));
    EXPECT_EQ(histogram.Value().buckets, (std::vector<uint64_t>{0, count, 0}));
    EXPECT_EQ(histogram.Value().sum, 5 * times);
    EXPECT_EQ(cost.Value().histogram.count, count);
    EXPECT_EQ(cost.Value().last.has_value(), last > 0);
    EXPECT_EQ(stream.Value().count, count);
    EXPECT_EQ(stream.Value().sum, 2 * times);
    EXPECT_EQ(stream.Value().last.has_value(), last > 0);
    EXPECT_EQ(events::Count("g", "event"), count);
    EXPECT_EQ(ReadValue("g", "counter"), 1.5 * times);
    EXPECT_EQ(ReadValue("g", "gauge").has_value(), last > 0);
    const Snapshot snapshot = ReadSnapshot();
    EXPECT_EQ(snapshot.Value("g", "histogram"), times);
    EXPECT_EQ(snapshot.Find("g", "stream")->count, count);
  }
};

TEST_F(ScopeTest, ATestStartsFromZero) {
  Check([] {
    Instruments all;
    all.Use(100);
    for (int round = 0; round < 2; ++round) {  // the second one sees nothing of the first one
      const Scope scope;
      all.ExpectUses(0);
      all.Use(3);
      all.ExpectUses(3);
      Instruments().Use(2);  // other handles of the same series
      all.ExpectUses(5);
      all.gauge.Set(7);
      EXPECT_EQ(all.gauge.Value(), 7);
      all.gauge.Unset();
      EXPECT_EQ(all.gauge.Value(), std::nullopt);
    }
    all.ExpectUses(110, 100);
    all.Use(1);
    all.ExpectUses(111, 101);
  });
}

TEST_F(ScopeTest, ScopesNest) {
  Check([] {
    Instruments all;
    const Scope outer;
    all.Use(1);
    {
      const Scope inner;
      all.Use(2);
      all.ExpectUses(2);
    }
    all.ExpectUses(3, 1);
  });
}

TEST_F(ScopeTest, ARemovalInAScopeLasts) {
  Check([] {
    Instruments all;
    all.Use(10);
    {
      const Scope scope;
      all.Use(3);
      EXPECT_TRUE(RemoveSeries("g", "counter"));
      EXPECT_TRUE(RemoveSeries("g", "gauge"));
      EXPECT_EQ(ReadValue("g", "counter"), std::nullopt);
    }
    EXPECT_EQ(ReadValue("g", "counter"), std::nullopt);
    Instruments().Use(4);
    EXPECT_EQ(all.counter.Value(), 6) << "what was counted before its removal is removed";
    EXPECT_EQ(all.gauge.Value(), 4);
    EXPECT_EQ(all.histogram.Value().count, 17U) << "never removed";
    const Scope scope;
    EXPECT_TRUE(RemoveSeries("g", "counter"));
    Instruments().Use(2);
    EXPECT_EQ(all.counter.Value(), 3);
  });
}

TEST_F(ScopeTest, MetricsThatAreMadeInAScopeStay) {
  Check([] {
    {
      const Scope scope;
      Instruments all;
      all.Use(2);
      all.ExpectUses(2);
      Enum("g", "phase", {"a", "b"}).Set("b");
      EXPECT_EQ(Enum("g", "phase", {"a", "b"}).Value(), "b");
      Gauge("g", "more").Set(1);
      EXPECT_EQ(Gauge("g", "unset").Value(), std::nullopt);
      for (int i = 0; i < 2000; ++i) {  // in new chunks, too
        Gauge gauge("many", std::to_string(i));
        EXPECT_EQ(gauge.Value(), std::nullopt);
        gauge.Set(i);
        EXPECT_EQ(gauge.Value(), i);
      }
    }
    Instruments all;
    EXPECT_EQ(all.counter.Value(), 3);
    EXPECT_EQ(all.gauge.Value(), std::nullopt);
    EXPECT_EQ(all.histogram.Value().count, 2U);
    EXPECT_EQ(all.stream.Value().count, 2U);
    EXPECT_EQ(all.stream.Value().last, 2);
    EXPECT_EQ(Gauge("g", "more").Value(), std::nullopt);
    Gauge last("many", "1999");
    EXPECT_EQ(last.Value(), std::nullopt);
    last.Set(3);
    EXPECT_EQ(last.Value(), 3);
  });
}

TEST_F(ScopeTest, AllThreadsCountInIt) {
  Check([] {
    Instruments all;
    all.Use(1);
    const Scope scope;
    std::vector<std::thread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] { all.Use(25); });
    }
    for (std::thread& worker : workers) {
      worker.join();
    }
    std::thread([&] { all.ExpectUses(100); }).join();
    all.ExpectUses(100);
  });
}

// Each sees also what the others count, but never less than its own.
TEST_F(ScopeTest, ScopesOfSeveralThreadsMayOverlap) {
  Check([] {
    Instruments all;
    all.Use(1);
    std::atomic<bool> stop = false;
    std::atomic<int> outside = 0;
    std::thread none([&] {
      while (!stop) {
        all.counter.Increment();
        EXPECT_LT(all.counter.Value(), 1e6);
        ++outside;
      }
    });
    std::vector<std::thread> tests;
    for (int test = 1; test <= 4; ++test) {
      tests.emplace_back([&, test] {
        for (int round = 0; round < 20; ++round) {
          const Scope scope;
          all.Use(test);
          const double counted = all.counter.Value();
          EXPECT_LT(counted, 1e6) << "a base above what was counted";
          const HistogramValue observed = all.histogram.Value();
          EXPECT_LE(observed.count, 801U);
          EXPECT_LE(observed.sum, 801 * 5);
        }
      });
    }
    for (std::thread& test : tests) {
      test.join();
    }
    stop = true;
    none.join();
    const Scope scope;
    all.ExpectUses(0);
    all.Use(2);
    all.ExpectUses(2);
  });
}

double CountOf(const SegmentView& segment, const char* counter) {
  const SeriesView& series = segment.series.at(counter);
  return static_cast<double>(series.whole) + series.fraction;
}

TEST_F(ScopeTest, TheExportedSegmentHasAllCountsAndTheFormerGauges) {
  const auto segment = SegmentOf([] {
    Instruments all;
    all.Use(10);
    {
      const Scope scope;
      all.Use(3);
      Counter("g", "later").Increment(9);
      Gauge("g", "later_gauge").Set(1);
    }
    all.Use(1);
  });
  EXPECT_EQ(CountOf(segment, "g/counter"), 21);
  EXPECT_EQ(segment.series.at("g/gauge").value, 11);
  EXPECT_EQ(CountOf(segment, "g/later"), 9);
  EXPECT_FALSE(segment.series.at("g/later_gauge").set);
  EXPECT_EQ(segment.series.at("g/histogram").Count(), 14U);
  EXPECT_EQ(segment.series.at("g/stream").Count(), 14U);
  EXPECT_EQ(segment.events.size(), 14U);
}

// Init moves what was counted before it.
TEST_F(ScopeTest, AnExportMayBeginInAScope) {
  const auto outcome = RunBareWorker([directory = directory()] {
    Instruments all;
    all.Use(10);
    {
      const Scope scope;
      all.Use(3);
      Options options;
      options.job_name = "job";
      options.metrics_dir = directory;
      EXPECT_TRUE(Init(options).exporting);
      all.Use(1);
      all.ExpectUses(4);
    }
    all.ExpectUses(14, 10);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(CountOf(OnlySegment(), "g/counter"), 21);
  EXPECT_EQ(OnlySegment().series.at("g/gauge").value, 10);
}

TEST_F(ScopeTest, InAForkedChildAScopeHasNoEffect) {
  Check([] {
    Instruments all;
    std::optional<Scope> scope(std::in_place);
    all.Use(3);
    const pid_t child = fork();
    if (child == 0) {
      all.ExpectUses(0);
      all.Use(2);
      all.ExpectUses(2);
      {
        const Scope own;
        all.Use(1);
        all.ExpectUses(1);
      }
      scope.reset();
      all.Use(1);
      all.ExpectUses(4, 3);
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    all.ExpectUses(3);
  });
}

TEST_F(ScopeTest, WhereMetricsAreDisabledAScopeSeesNothing) {
  Check([] {
    setenv("PERSIA_METRICS_ENABLED", "0", 1);
    const Scope scope;
    Counter counter("g", "counter");
    Gauge gauge("g", "gauge");
    counter.Increment();
    gauge.Set(1);
    Gauge().Set(1);
    EXPECT_EQ(counter.Value(), 0);
    EXPECT_EQ(gauge.Value(), std::nullopt);
  });
}

TEST_F(ScopeTest, CHasScopes) {
  Check([] { EXPECT_EQ(ScopeInC(), 0); });
}

}  // namespace
}  // namespace persia::metrics::tests

// testing::Scope: counts that only a test's own threads see.
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
  // Whether the calling thread sees the counts of as many uses, and nothing else.
  void ExpectUses(int times) const {
    const auto count = static_cast<uint64_t>(times);
    const std::optional<double> once = times == 0 ? std::nullopt : std::optional<double>(1);
    EXPECT_EQ(counter.Value(), 1.5 * times);
    EXPECT_EQ(gauge.Value(), times == 0 ? std::nullopt : std::optional<double>(times));
    EXPECT_EQ(histogram.Value().buckets, (std::vector<uint64_t>{0, count, 0}));
    EXPECT_EQ(histogram.Value().sum, 5 * times);
    EXPECT_EQ(cost.Value().histogram.count, count);
    EXPECT_EQ(cost.Value().last.has_value(), once.has_value());
    EXPECT_EQ(stream.Value().count, count);
    EXPECT_EQ(stream.Value().sum, 2 * times);
    EXPECT_EQ(stream.Value().last.has_value(), once.has_value());
    EXPECT_EQ(events::Count("g", "event"), count);
    EXPECT_EQ(ReadValue("g", "counter"), 1.5 * times);
    EXPECT_EQ(ReadValue("g", "gauge").has_value(), once.has_value());
    const Snapshot snapshot = ReadSnapshot();
    EXPECT_EQ(snapshot.Value("g", "histogram"), times);
    EXPECT_EQ(snapshot.Find("g", "stream")->count, count);
  }
};

TEST_F(ScopeTest, ATestSeesItsOwnCountsOnly) {
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
    all.ExpectUses(100);
    all.Use(1);
    all.ExpectUses(101);
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
    all.ExpectUses(1);
  });
}

TEST_F(ScopeTest, ARemovalInAScopeLeavesItsOwnCounts) {
  Check([] {
    Instruments all;
    all.Use(10);
    EXPECT_TRUE(RemoveSeries("g", "counter"));
    EXPECT_TRUE(RemoveSeries("g", "gauge"));
    Instruments again;
    again.Use(1);
    {
      const Scope scope;
      again.Use(3);
      EXPECT_EQ(again.counter.Value(), 4.5);
      EXPECT_TRUE(RemoveSeries("g", "counter"));
      EXPECT_TRUE(RemoveSeries("g", "gauge"));
      Instruments().Use(2);
      again.ExpectUses(5);
    }
    EXPECT_EQ(again.counter.Value(), 0) << "what the process had counted was removed";
    EXPECT_EQ(again.gauge.Value(), std::nullopt);
    Instruments().Use(4);
    EXPECT_EQ(again.counter.Value(), 6);
    EXPECT_EQ(again.gauge.Value(), 4);
    EXPECT_EQ(again.histogram.Value().count, 15U) << "never removed";
  });
}

TEST_F(ScopeTest, MetricsThatAreMadeInAScopeStayWithoutItsValues) {
  Check([] {
    {
      const Scope scope;
      Instruments all;
      all.Use(2);
      all.ExpectUses(2);
      Enum("g", "phase", {"a", "b"}).Set("b");
      EXPECT_EQ(Enum("g", "phase", {"a", "b"}).Value(), "b");
      Gauge("g", "more").Set(1);  // in a chunk that the scope has already
      EXPECT_EQ(Gauge("g", "unset").Value(), std::nullopt);
      for (int i = 0; i < 2000; ++i) {  // and in new ones
        Gauge gauge("many", std::to_string(i));
        EXPECT_EQ(gauge.Value(), std::nullopt);
        gauge.Set(i);
        EXPECT_EQ(gauge.Value(), i);
      }
    }
    Instruments().ExpectUses(0);
    EXPECT_EQ(Gauge("g", "more").Value(), std::nullopt);
    Gauge last("many", "1999");
    EXPECT_EQ(last.Value(), std::nullopt);
    last.Set(3);
    EXPECT_EQ(last.Value(), 3);
  });
}

TEST_F(ScopeTest, ThreadsInScopesOfTheirOwnDoNotSeeEachOther) {
  Check([] {
    Instruments all;
    all.Use(1);
    std::atomic<bool> stop = false;
    std::atomic<int> outside = 0;
    std::thread none([&] {  // in no scope
      while (!stop) {
        all.Use(1);
        ++outside;
      }
    });
    std::vector<std::thread> tests;
    for (int test = 1; test <= 4; ++test) {
      tests.emplace_back([&, test] {
        for (int round = 0; round < 20; ++round) {
          const Scope scope;
          all.Use(test);
          all.ExpectUses(test);
        }
      });
    }
    for (std::thread& test : tests) {
      test.join();
    }
    while (outside < 100) {
      std::this_thread::yield();
    }
    stop = true;
    none.join();
    all.ExpectUses(1 + outside);
  });
}

TEST_F(ScopeTest, AThreadOfTheCodeUnderTestMayEnter) {
  Check([] {
    Instruments all;
    Scope scope;
    std::vector<std::thread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        all.Use(1);  // not yet in the scope
        {
          const auto entered = scope.Enter();
          all.Use(25);
        }
        all.Use(1);
      });
    }
    for (std::thread& worker : workers) {
      worker.join();
    }
    all.ExpectUses(100);
    std::thread([&] { all.ExpectUses(8); }).join();
  });
}

double CountOf(const SegmentView& segment, const char* counter) {
  const SeriesView& series = segment.series.at(counter);
  return static_cast<double>(series.whole) + series.fraction;
}

TEST_F(ScopeTest, TheExportedSegmentHasNothingOfAScopeAndLosesNothing) {
  const auto segment = SegmentOf([] {
    Instruments all;
    all.Use(10);
    {
      const Scope scope;
      all.Use(3);
      std::thread([&] { all.Use(5); }).join();
      Counter("g", "later").Increment(9);
      std::thread([&] { Counter("g", "later").Increment(2); }).join();
      all.ExpectUses(3);
    }
    all.Use(1);
  });
  EXPECT_EQ(CountOf(segment, "g/counter"), 24);
  EXPECT_EQ(segment.series.at("g/gauge").value, 16);
  EXPECT_EQ(CountOf(segment, "g/later"), 2);
  EXPECT_EQ(segment.series.at("g/histogram").Count(), 16U);
  EXPECT_EQ(segment.series.at("g/stream").Count(), 16U);
  EXPECT_EQ(segment.events.size(), 16U);
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
      std::thread([&] { all.Use(5); }).join();
    }
    all.ExpectUses(15);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(CountOf(OnlySegment(), "g/counter"), 22.5);
  EXPECT_EQ(OnlySegment().series.at("g/gauge").value, 15);
}

TEST_F(ScopeTest, AForkedChildIsInNoScope) {
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
      all.ExpectUses(3);
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

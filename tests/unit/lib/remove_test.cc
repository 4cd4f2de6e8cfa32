// Series that are removed, and requested again.
#include "persia/metrics/remove.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "persia/metrics/metrics.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

class RemoveTest : public WorkerTest {
 protected:
  void Check(const std::function<void()>& body) {
    const auto outcome = RunBareWorker(body);
    EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  }
};

TEST_F(RemoveTest, ARemovedSeriesHasNoValue) {
  Check([] {
    Family<Counter> family("g", "c", {.labels = {{"zone", "a"}}});
    family.With({{"i", "1"}}).Increment(3);
    family.With({{"i", "2"}}).Increment(4);
    EXPECT_FALSE(family.Remove({{"i", "3"}}));
    EXPECT_TRUE(family.Remove({{"i", "1"}}));
    EXPECT_FALSE(family.Remove({{"i", "1"}}));
    EXPECT_EQ(ReadValue("g", "c", {{"zone", "a"}, {"i", "1"}}), std::nullopt);
    EXPECT_EQ(ReadValue("g", "c", {{"zone", "a"}, {"i", "2"}}), 4);
    const Snapshot snapshot = ReadSnapshot();
    ASSERT_EQ(snapshot.metrics.size(), 1U);
    EXPECT_EQ(snapshot.metrics[0].series.size(), 1U);
    family.Clear();
    EXPECT_TRUE(ReadSnapshot().metrics[0].series.empty());
  });
}

TEST_F(RemoveTest, ASeriesThatIsRequestedAgainStartsFromZero) {
  Check([] {
    const auto threads = [](const auto& record) {
      record();
      std::thread(record).join();
    };
    Counter counter("g", "c");
    threads([&] { counter.Increment(3), counter.Increment(0.5); });
    Gauge gauge("g", "g");
    gauge.Set(3);
    Histogram histogram("g", "h", {1, 2});
    threads([&] { histogram.Observe(1.5); });
    Histogram native("g", "n", NativeBuckets{.factor = 2, .zero_threshold = 1, .most = 4});
    threads([&] { native.Observe(1.5); });
    Stream stream("g", "s");
    threads([&] { stream.Add(2), stream.Add(-1), stream.Add(0); });
    TimeCost cost("g", "t", {1, 2});
    threads([&] { cost.Observe(1.5); });
    for (const char* name : {"c", "g", "h", "n", "s", "t", "t_sec"}) {
      EXPECT_TRUE(RemoveSeries("g", name)) << name;
    }
    // What handles from before count now goes nowhere.
    threads([&] {
      counter.Increment(10);
      gauge.Set(10);
      histogram.Observe(0.5);
      native.Observe(0.5);
      stream.Add(10);
      cost.Observe(0.5);
    });
    EXPECT_EQ(ReadValue("g", "c"), std::nullopt);
    EXPECT_EQ(ReadValue("g", "g"), std::nullopt);

    Counter counter_again("g", "c");
    EXPECT_EQ(counter_again.Value(), 0);
    EXPECT_EQ(Gauge("g", "g").Value(), std::nullopt);
    EXPECT_EQ(Histogram("g", "h", {1, 2}).Value().count, 0U);
    EXPECT_EQ(Histogram("g", "h", {1, 2}).Value().sum, 0);
    EXPECT_EQ(Histogram("g", "n", NativeBuckets{.factor = 2, .zero_threshold = 1, .most = 4}).Value().count, 0U);
    EXPECT_EQ(Stream("g", "s").Value().last, std::nullopt);
    EXPECT_EQ(TimeCost("g", "t", {1, 2}).Value().histogram.count, 0U);
    counter.Increment(1.25);  // the same series
    counter_again.Increment();
    EXPECT_EQ(ReadValue("g", "c"), 2.25);
    stream.Add(7);
    EXPECT_EQ(stream.Value().count, 1U);
    EXPECT_EQ(stream.Value().sum, 7);
  });
}

TEST_F(RemoveTest, ACompoundInstrumentIsRemovedWhole) {
  Check([] {
    Family<TimeCost> costs("g", "cost");
    costs.With({{"op", "a"}}).Observe(1);
    EXPECT_TRUE(costs.Remove({{"op", "a"}}));
    EXPECT_EQ(ReadValue("g", "cost", {{"op", "a"}}), std::nullopt);
    EXPECT_EQ(ReadValue("g", "cost_sec", {{"op", "a"}}), std::nullopt);
    costs.With({{"op", "a"}}).Observe(1);
    costs.Clear();
    EXPECT_EQ(ReadValue("g", "cost_sec", {{"op", "a"}}), std::nullopt);

    Info build("g", "build");
    EXPECT_FALSE(build.Remove());
    build.Set({{"version", "1"}});
    EXPECT_TRUE(build.Remove());
    EXPECT_EQ(ReadValue("g", "build_info", {{"version", "1"}}), std::nullopt);
    build.Set({{"version", "1"}});
    EXPECT_EQ(ReadValue("g", "build_info", {{"version", "1"}}), 1);

    Enum phase("g", "phase", {"warm", "train"});
    phase.Set("train");
    EXPECT_TRUE(phase.Remove());
    EXPECT_FALSE(phase.Remove());
    EXPECT_EQ(ReadValue("g", "phase", {{"g_phase", "train"}}), std::nullopt);
    EXPECT_EQ(Enum("g", "phase", {"warm", "train"}).Value(), "warm");
  });
}

TEST_F(RemoveTest, AFunctionEndsWithItsSeries) {
  Check([] {
    SetCallbackPeriod(std::chrono::milliseconds(10));
    std::atomic<int> calls = 0;
    Gauge gauge("g", "g");
    gauge.SetFunction([&] { return ++calls; });
    while (calls == 0) std::this_thread::yield();
    EXPECT_TRUE(RemoveSeries("g", "g"));
    const int then = calls;
    // Another function is called in the meantime.
    static std::atomic<int> others = 0;  // the function is called until the process ends
    Gauge("g", "other").SetFunction([&] { return ++others; });
    while (others < 3) std::this_thread::yield();
    EXPECT_EQ(calls, then);
    EXPECT_EQ(Gauge("g", "g").Value(), std::nullopt);
  });
}

// The agent adds what was counted before: within a run, no exported count falls.
TEST_F(RemoveTest, TheSegmentMarksTheSeriesAndKeepsItsCounts) {
  const SegmentView segment = SegmentOf([] {
    Family<Counter> family("g", "c");
    for (const char* i : {"1", "2", "3"}) {
      family.With({{"i", i}}).Increment(3);
    }
    family.Remove({{"i", "1"}});
    family.Remove({{"i", "2"}});
    family.With({{"i", "2"}}).Increment(4);
    Gauge("g", "g").Set(1);
    RemoveSeries("g", "g");
  });
  EXPECT_TRUE(segment.series.at(R"(g/c{i="1"})").removed);
  EXPECT_EQ(segment.series.at(R"(g/c{i="1"})").whole, 3U);
  EXPECT_FALSE(segment.series.at(R"(g/c{i="2"})").removed);
  EXPECT_EQ(segment.series.at(R"(g/c{i="2"})").whole, 7U);
  EXPECT_FALSE(segment.series.at(R"(g/c{i="3"})").removed);
  EXPECT_TRUE(segment.series.at("g/g").removed);
  EXPECT_FALSE(segment.series.at("g/g").set);
  EXPECT_EQ(segment.removals, 4U);
}

TEST_F(RemoveTest, ARemovalBeforeTheExportIsExported) {
  const auto outcome = RunBareWorker([&] {
    Counter("g", "gone").Increment();
    Counter("g", "back").Increment(2);
    RemoveSeries("g", "gone");
    RemoveSeries("g", "back");
    Counter("g", "back").Increment(3);
    ASSERT_TRUE(Init({.metrics_dir = directory()}).exporting);
    EXPECT_EQ(ReadValue("g", "gone"), std::nullopt);
    EXPECT_EQ(ReadValue("g", "back"), 3);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_TRUE(OnlySegment().series.at("g/gone").removed);
  EXPECT_FALSE(OnlySegment().series.at("g/back").removed);
  EXPECT_EQ(OnlySegment().series.at("g/back").whole, 5U);
}

TEST_F(RemoveTest, AForkedChildHasTheSeriesThatItsParentHad) {
  const auto outcome = RunWorker([] {
    Counter gone("g", "gone");
    Counter kept("g", "kept");
    gone.Increment(5);
    kept.Increment(5);
    RemoveSeries("g", "gone");
    RemoveSeries("g", "kept");
    Counter("g", "kept").Increment();
    const pid_t child = fork();
    if (child == 0) {
      kept.Increment(2);
      bool right = ReadValue("g", "kept") == 2 && ReadValue("g", "gone") == std::nullopt;
      Counter("g", "gone").Increment(3);
      right = right && ReadValue("g", "gone") == 3 && RemoveSeries("g", "kept");
      _exit(right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(ReadValue("g", "kept"), 1);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  const std::vector<std::string> paths = SegmentsIn(directory());
  ASSERT_EQ(paths.size(), 2U);
  for (const std::string& path : paths) {
    const SegmentView segment = ReadSegment(path);
    const bool parent = segment.series.at("g/gone").removed;
    EXPECT_EQ(segment.series.at("g/kept").removed, !parent);
    EXPECT_EQ(segment.series.at("g/kept").whole, parent ? 6U : 2U);
    EXPECT_EQ(segment.series.at("g/gone").whole, parent ? 5U : 3U);
  }
}

TEST_F(RemoveTest, NoCountIsLostBesideRemovals) {
  constexpr int kCounts = 20'000;
  constexpr int kThreads = 3;
  const SegmentView segment = SegmentOf([] {
    Family<Counter> family("g", "c");
    std::atomic<int> running = kThreads;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int count = 0; count < kCounts; ++count) {
          family.With({{"i", std::to_string(count % 3)}}).Increment();
        }
        --running;
      });
    }
    const auto read = [&] { return ReadValue("g", "c", {{"i", "0"}}).value_or(0); };
    while (running > 0) {
      family.Remove({{"i", "0"}});
      family.Clear();
      ASSERT_GE(read(), 0);
      ASSERT_LE(read(), kThreads * kCounts);
    }
    for (std::thread& thread : threads) thread.join();
    for (const char* i : {"0", "1", "2"}) {
      family.With({{"i", i}});
    }
  });
  uint64_t counted = 0;
  for (const auto& [name, series] : segment.series) {
    EXPECT_FALSE(series.removed) << name;
    counted += series.whole;
  }
  EXPECT_EQ(counted, uint64_t{kThreads} * kCounts);
}

}  // namespace
}  // namespace persia::metrics::tests

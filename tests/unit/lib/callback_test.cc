// Gauges and counters whose values come from functions; Info and Enum.
#include "persia/metrics/callback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "persia/metrics/metrics.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

class CallbackTest : public WorkerTest {
 protected:
  void Check(const std::function<void()>& body) {
    const auto outcome = RunBareWorker([&] {
      SetCallbackPeriod(milliseconds(10));
      body();
    });
    EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
    output_ = outcome.error_output;
  }
  std::string output_;
};

template <class Condition>
bool Becomes(const Condition& condition) {
  const auto until = steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// A function may be called until the process ends, so its variables are static.
TEST_F(CallbackTest, AGaugeFollowsItsFunction) {
  Check([] {
    static std::atomic<double> value = 3;
    Gauge gauge("g", "gauge");
    gauge.SetFunction([&] { return value.load(); });
    EXPECT_TRUE(Becomes([&] { return gauge.Value() == 3; }));
    value = 4;
    EXPECT_TRUE(Becomes([&] { return gauge.Value() == 4; }));
  });
}

TEST_F(CallbackTest, ACounterTakesTheIncreaseOfItsFunction) {
  Check([] {
    static std::atomic<double> total = 3;
    static std::atomic<int> calls = 0;
    Counter counter("g", "counter");
    counter.Increment(100);
    counter.SetFunction([&] {
      ++calls;
      return total.load();
    });
    EXPECT_TRUE(Becomes([&] { return counter.Value() == 103; }));
    total = 5;
    EXPECT_TRUE(Becomes([&] { return counter.Value() == 105; }));
    total = 2;  // a reset
    EXPECT_TRUE(Becomes([&] { return counter.Value() == 107; }));
    const int before = calls;
    EXPECT_TRUE(Becomes([&] { return calls > before + 2; }));
    EXPECT_EQ(counter.Value(), 107);
  });
}

TEST_F(CallbackTest, AGaugeHasNoValueOnceItsFunctionIsGone) {
  Check([] {
    Gauge gauge("g", "gauge");
    static std::atomic<int> calls = 0;
    gauge.SetFunction([&] { return ++calls; });
    EXPECT_TRUE(Becomes([&] { return gauge.Value().has_value(); }));
    gauge.SetFunction({});
    EXPECT_EQ(gauge.Value(), std::nullopt);
    const int last = calls;
    static std::atomic<int> others = 0;
    Gauge("g", "other").SetFunction([&] { return ++others; });
    EXPECT_TRUE(Becomes([&] { return others > 3; }));
    EXPECT_EQ(calls, last);
  });
}

TEST_F(CallbackTest, RemovalWaitsForARunningCall) {
  Check([] {
    Gauge gauge("g", "gauge");
    static std::atomic<bool> runs = false;
    gauge.SetFunction([&] {
      runs = true;
      std::this_thread::sleep_for(milliseconds(200));
      runs = false;
      return 1;
    });
    EXPECT_TRUE(Becomes([&] { return runs.load(); }));
    gauge.SetFunction({});
    EXPECT_FALSE(runs);
  });
}

TEST_F(CallbackTest, AFunctionMayRemoveItself) {
  Check([] {
    static Gauge gauge("g", "gauge");
    static std::atomic<int> calls = 0;
    gauge.SetFunction([] {
      ++calls;
      gauge.SetFunction({});
      return 1;
    });
    static std::atomic<int> others = 0;
    Gauge("g", "other").SetFunction([&] { return ++others; });
    EXPECT_TRUE(Becomes([&] { return others > 3; }));
    EXPECT_EQ(calls, 1);
  });
}

TEST_F(CallbackTest, AFunctionThatThrowsHasNoValueAndCostsNoOther) {
  Check([] {
    static std::atomic<bool> throws = true;
    Gauge bad("g", "bad");
    Gauge good("g", "good");
    bad.Set(7);
    bad.SetFunction([&]() -> double { return throws ? throw std::runtime_error("no") : 2; });
    good.SetFunction([] { return 1; });
    EXPECT_TRUE(Becomes([&] { return good.Value() == 1 && !bad.Value().has_value(); }));
    throws = false;
    EXPECT_TRUE(Becomes([&] { return bad.Value() == 2; }));
  });
  const std::string line =
      "persia-metrics: the function of a gauge or counter threw an exception: no; it has no value until the function returns "
      "one\n";
  EXPECT_THAT(output_, HasSubstr(line));
  EXPECT_THAT(output_.substr(output_.find(line) + 1), Not(HasSubstr(line))) << "once";
}

// As Python ends a thread that comes back after the interpreter's end.
TEST_F(CallbackTest, AFunctionMayEndItsThread) {
  Check([] {
    static std::atomic<bool> ends = false;
    Gauge("g", "gauge").SetFunction([&]() -> double {
      ends = true;
      pthread_exit(nullptr);
    });
    EXPECT_TRUE(Becomes([&] { return ends.load(); }));
    static std::atomic<int> others = 0;
    Gauge("g", "other").SetFunction([&] { return ++others; });
    EXPECT_TRUE(Becomes([&] { return others > 3; }));
  });
}

TEST_F(CallbackTest, AFunctionThatHangsCostsNoOther) {
  Check([] {
    static std::mutex mutex;
    static std::condition_variable released;
    static bool go_on = false;
    Gauge hangs("g", "hangs");
    hangs.Set(7);
    static std::atomic<int> calls = 0;
    hangs.SetFunction([&] {
      ++calls;
      std::unique_lock lock(mutex);
      released.wait(lock, [&] { return go_on; });
      return 9;
    });
    static std::atomic<int> others = 0;
    for (int i = 0; i < 20; ++i) {
      Gauge("g", std::to_string(i)).SetFunction([&] { return ++others; });
    }
    EXPECT_TRUE(Becomes([&] { return !hangs.Value().has_value() && others > 100; }));
    EXPECT_EQ(calls, 1);
    const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
    const auto threads_in_hang = threads();
    {
      const std::lock_guard lock(mutex);
      go_on = true;
    }
    released.notify_all();
    EXPECT_TRUE(Becomes([&] { return hangs.Value() == 9 && calls > 1; }));
    EXPECT_TRUE(Becomes([&] { return threads() < threads_in_hang; })) << "the thread that hung has to end";
    hangs.SetFunction({});
  });
  EXPECT_EQ(std::count(output_.begin(), output_.end(), '\n'), 1) << output_;
}

TEST_F(CallbackTest, AForkedChildHasNoFunctionsButMaySetSome) {
  Check([] {
    static std::atomic<int> calls = 0;
    Gauge gauge("g", "gauge");
    gauge.SetFunction([&] { return ++calls; });
    EXPECT_TRUE(Becomes([&] { return calls > 2; }));
    const pid_t child = fork();
    if (child == 0) {
      Gauge own("g", "own");
      own.SetFunction([] { return 5; });
      const bool good = Becomes([&] { return own.Value() == 5; }) && !gauge.Value().has_value();
      _exit(good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

TEST_F(CallbackTest, ThousandsOfFunctionsAreSetAndRemovedWhileTheyRun) {
  Check([] {
    static std::atomic<int> calls = 0;
    std::vector<Gauge> gauges;
    for (int i = 0; i < 2000; ++i) {
      gauges.emplace_back("g", std::to_string(i));
      gauges.back().SetFunction([&] { return ++calls; });
    }
    EXPECT_TRUE(Becomes([&] { return calls > 4000; }));
    for (Gauge& gauge : gauges) {
      gauge.SetFunction({});
      ASSERT_EQ(gauge.Value(), std::nullopt);
    }
  });
}

TEST_F(CallbackTest, AHandleThatCountsNothingTakesNoFunction) {
  Check([] {
    Gauge().SetFunction([]() -> double { abort(); });
    Gauge("g", "gauge").SetFunction([] { return 1; });
    EXPECT_TRUE(Becomes([] { return ReadValue("g", "gauge") == 1; }));
  });
}

TEST_F(CallbackTest, UnsetTakesTheValueAway) {
  const auto segment = SegmentOf([] {
    Gauge gauge("g", "gauge");
    gauge.Set(1);
    gauge.Unset();
    EXPECT_EQ(gauge.Value(), std::nullopt);
    Gauge again("g", "again");
    again.Set(1);
    again.Unset();
    again.Add(2);
  });
  EXPECT_FALSE(segment.series.at("g/gauge").set);
  EXPECT_EQ(segment.series.at("g/again").value, 2);
}

TEST_F(CallbackTest, InfoHasTheLastTextsOnly) {
  const auto segment = SegmentOf([] {
    Info build("g", "build", {.help = "Build.", .labels = {{"of", "job"}}});
    build.Set({{"version", "1"}, {"revision", "a"}});
    build.Set({{"version", "2"}, {"revision", "b"}});
    build.Set({{"version", "2"}, {"revision", "b"}});
    build.Set({{"version", "3"}, {"version", "3"}});  // refused: a label twice
    Info gone("g", "gone");
    gone.Set({{"version", "1"}});
    gone.Unset();
  });
  EXPECT_FALSE(segment.series.at(R"(g/gone_info{version="1"})").set);
  EXPECT_FALSE(segment.series.at(R"(g/build_info{of="job",revision="a",version="1"})").set);
  EXPECT_EQ(segment.series.at(R"(g/build_info{of="job",revision="b",version="2"})").value, 1);
}

TEST_F(CallbackTest, EnumHasOneStateAtOne) {
  const auto segment = SegmentOf([] {
    Enum phase("g", "phase", {"warm", "train", "done"}, {.help = "Phase."});
    EXPECT_EQ(phase.Value(), "warm");
    phase.Set("train");
    phase.Set("unknown");
    EXPECT_EQ(phase.Value(), "train");
    EXPECT_EQ(Enum("g", "phase", {"warm", "train", "done"}).Value(), "train");
    Enum("", "bare", {"a"});
    Enum gone("g", "gone", {"a", "b"});
    gone.Unset();
    EXPECT_EQ(gone.Value(), "");
  });
  EXPECT_FALSE(segment.series.at(R"(g/gone{g_gone="a"})").set);
  EXPECT_EQ(segment.series.at(R"(g/phase{g_phase="warm"})").value, 0);
  EXPECT_EQ(segment.series.at(R"(g/phase{g_phase="train"})").value, 1);
  EXPECT_EQ(segment.series.at(R"(g/phase{g_phase="done"})").value, 0);
  EXPECT_EQ(segment.series.at(R"(/bare{bare="a"})").value, 1);
  EXPECT_EQ(segment.DroppedFor(segment::Drop::kBadValue), 1U);
}

}  // namespace
}  // namespace persia::metrics::tests

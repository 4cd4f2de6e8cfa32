// The times at which a registry is copied, and misbehaving registries.
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "no_threads.h"
#include "out_of_memory.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/prometheus_cpp.h"
#include "said.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class Stuck : public prometheus::Collectable {
 public:
  [[nodiscard]] std::vector<MetricFamily> Collect() const override {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
};

// A copy that is never destroyed; its pointer stays, so that no checker reports a leak.
void MakeForEver(std::shared_ptr<prometheus::Collectable> registry) {
  static auto& copies = *new std::vector<RegistryCopy*>();
  copies.push_back(new RegistryCopy(std::move(registry), kNever));
}

class RegistryCopyLifeTest : public WorkerTest {};

TEST_F(RegistryCopyLifeTest, CopiesByItselfWhileOthersCount) {
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

TEST_F(RegistryCopyLifeTest, LastCopyIsMadeAtExit) {
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

TEST_F(RegistryCopyLifeTest, WhatDestructorsOfGlobalsCountIsCopiedByAGlobalThatOutlivesThem) {
  struct CountsAtItsEnd {
    ~CountsAtItsEnd() { counter->Increment(); }
    prometheus::Counter* counter = nullptr;
  };
  const auto outcome = RunWorker([] {
    static std::unique_ptr<RegistryCopy> copy;
    static CountsAtItsEnd last;
    const auto registry = std::make_shared<prometheus::Registry>();
    last.counter = &prometheus::BuildCounter().Name("c").Register(*registry).Add({});
    copy = std::make_unique<RegistryCopy>(registry, kNever);
    last.counter->Increment(5);
    std::exit(0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(OnlySegment().series.at("/c").whole, 6U);
}

TEST_F(RegistryCopyLifeTest, RegistriesThatBlockHoldUpAnExitForTwoSecondsTogether) {
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = RunWorker([] {
    const auto said = std::make_shared<Said>();
    for (int i = 0; i < 24; ++i) {
      MakeForEver(std::make_shared<Stuck>());
    }
    MakeForEver(said);
    {
      const NoThreads no_threads;
      MakeForEver(std::make_shared<Stuck>());
    }
    said->Say({CounterFamily("c", 5)});
    std::exit(0);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40)) << "one after another they take fifty";
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(OnlySegment().series.at("/c").whole, 5U);
}

TEST_F(RegistryCopyLifeTest, WithoutAThreadItIsCopiedWhenAskedAndAtTheEnd) {
  const auto outcome = RunWorker([] {
    const NoThreads no_threads;
    const auto said = std::make_shared<Said>();
    MakeForEver(said);
    said->Say({CounterFamily("c", 5)});
    std::exit(0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
  EXPECT_EQ(OnlySegment().series.at("/c").whole, 5U);
}

TEST_F(RegistryCopyLifeTest, MemoryThatIsOutEndsNoProgram) {
  const auto outcome = RunWorker([] {
    const auto said = std::make_shared<Said>();
    said->Say({CounterFamily("c", 5)});
    for (int left = 0; left < 60; ++left) {
      allocations_left = left;
      {
        RegistryCopy copy(said, kNever);
        copy.CopyNow();
      }
      allocations_left = kAnyNumberOfAllocations;
    }
    Counter("g", "c").Increment();
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(OnlySegment().series.at("g/c").whole, 1U);
}

TEST_F(RegistryCopyLifeTest, HostileFamiliesCostThemselvesOnly) {
  const auto outcome = RunWorker([] {
    const auto said = std::make_shared<Said>();
    ClientMetric histogram;
    histogram.histogram = {5, 1, {{9, 2}, {3, 1}, {5, std::numeric_limits<double>::quiet_NaN()}}};
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
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 4) << "one for each reason; " << outcome.error_output;
  const auto segment = OnlySegment();
  EXPECT_EQ(segment.series.at("/same").whole, 4U);
  EXPECT_EQ(segment.series.at("/good").whole, 3U);
  EXPECT_EQ(segment.series.at("/ü\n\xff{}{\"=\"\n\"}").whole, 2U);
  // With one of each metric that lost values.
  const auto is_copied = [](const auto& series) { return !series.first.starts_with("persia_metrics/"); };
  EXPECT_EQ(std::ranges::count_if(segment.series, is_copied), 4);
}

TEST_F(RegistryCopyLifeTest, RegistryThatThrowsIsTriedAgain) {
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
            "persia-metrics: a prometheus-cpp registry was not copied; the next copy tries again: not now\n");
  EXPECT_EQ(OnlySegment().series.at("/c").whole, 6U);
}

TEST_F(RegistryCopyLifeTest, OwnMetricsAreNotCopiedIntoThemselves) {
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

// The fork occurs during a copy: the child inherits its locks, and no thread of the child releases them.
TEST_F(RegistryCopyLifeTest, ForkedChildCopiesNothingAndEnds) {
  class Slow : public prometheus::Collectable {
   public:
    [[nodiscard]] std::vector<MetricFamily> Collect() const override {
      entered = true;
      entered.notify_all();
      released.wait(false);
      return {CounterFamily("c", 2)};
    }
    mutable std::atomic<bool> entered = false;
    std::atomic<bool> released = false;
  };
  const auto segment = SegmentOf([this] {
    const auto slow = std::make_shared<Slow>();
    auto copy = std::make_unique<RegistryCopy>(slow, kNever);
    slow->entered.wait(false);
    const auto child = RunBareWorker([&] {
      copy->CopyNow();
      copy.reset();
      std::exit(0);
    });
    EXPECT_EQ(child.wait_status, 0) << child.error_output;
    slow->released = true;
    slow->released.notify_all();
    copy.reset();
  });
  EXPECT_EQ(segment.series.at("/c").whole, 2U);
}

}  // namespace
}  // namespace persia::metrics::tests

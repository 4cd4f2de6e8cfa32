// torchelastic's metrics API, as its documentation describes it.
#include "persia/metrics/metric_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "persia/metrics/prof.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Keeps the values that it gets.
class MetricKeeper : public MetricHandler {
 public:
  void Emit(const MetricData& data) override {
    kept.push_back(std::string(data.group_name) + "/" + std::string(data.name) + "=" + std::to_string(data.value));
    last_time = data.timestamp;
  }
  std::vector<std::string> kept;
  double last_time = 0;
};

class MetricThrower : public MetricHandler {
 public:
  void Emit(const MetricData& /*data*/) override { throw std::runtime_error("no room"); }
};

class MetricStreamTest : public WorkerTest {};

TEST_F(MetricStreamTest, ExportsWhereNobodyConfiguredAnything) {
  const auto segment = SegmentOf([] {
    MetricStream stream = GetStream("my_app");
    stream.AddValue("calculate_latency", 3);
    stream.AddValue("calculate_latency", 5);
    PutMetric("checkpoint.write_latency_ms", 12.5);
    PutMetric("steps", 1, "my_app");
  });
  EXPECT_EQ(segment.series.at("my_app/calculate_latency").value, 5);
  EXPECT_EQ(segment.series.at("my_app/calculate_latency").fraction, 8);
  EXPECT_EQ(segment.series.at("torchelastic/checkpoint.write_latency_ms").value, 12.5);
  EXPECT_EQ(segment.series.at("my_app/steps").value, 1);
}

TEST_F(MetricStreamTest, AGroupHasItsHandlerAndOthersTheDefault) {
  const auto segment = SegmentOf([] {
    const auto mine = std::make_shared<MetricKeeper>();
    const auto others = std::make_shared<MetricKeeper>();
    const double before = static_cast<double>(time(nullptr));
    Configure(mine, "my_app");
    Configure(others);
    GetStream("my_app").AddValue("a", 1);
    PutMetric("b", 2, "my_app");
    GetStream("else").AddValue("c", 3);
    Configure(nullptr, "my_app");
    GetStream("my_app").AddValue("d", 4);
    Configure(nullptr);
    GetStream("my_app").AddValue("exported", 5);
    EXPECT_THAT(mine->kept, ElementsAre("my_app/a=1.000000", "my_app/b=2.000000"));
    EXPECT_THAT(others->kept, ElementsAre("else/c=3.000000", "my_app/d=4.000000"));
    EXPECT_GE(mine->last_time, before);
    EXPECT_LE(mine->last_time, before + 600);
  });
  EXPECT_EQ(segment.series.size(), 1U);
  EXPECT_EQ(segment.series.at("my_app/exported").value, 5);
}

TEST_F(MetricStreamTest, AStreamKeepsTheHandlerOfWhenItWasAskedFor) {
  const auto outcome = RunBareWorker([] {
    const auto first = std::make_shared<MetricKeeper>();
    const auto second = std::make_shared<MetricKeeper>();
    Configure(first, "my_app");
    MetricStream stream = GetStream("my_app");
    Configure(second, "my_app");
    stream.AddValue("a", 1);
    EXPECT_THAT(first->kept, ElementsAre("my_app/a=1.000000"));
    EXPECT_TRUE(second->kept.empty());
  });
  EXPECT_EQ(outcome.wait_status, 0);
}

TEST_F(MetricStreamTest, AHandlerThatThrowsHarmsItsCallersValueOnly) {
  const auto outcome = RunBareWorker([] {
    Configure(std::make_shared<MetricThrower>(), "bad");
    const auto good = std::make_shared<MetricKeeper>();
    Configure(good, "good");
    for (int i = 0; i < 3; ++i) {
      GetStream("bad").AddValue("a", 1);
    }
    GetStream("good").AddValue("a", 1);
    EXPECT_EQ(good->kept.size(), 1U);
  });
  EXPECT_EQ(outcome.wait_status, 0);
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1);
  EXPECT_THAT(outcome.error_output, HasSubstr("a metric handler threw"));
}

// Another thread configures without a pause while this one forks: no child may find a lock held.
TEST_F(MetricStreamTest, AForkedChildCanAddWhateverOtherThreadsDid) {
  const auto outcome = RunBareWorker([] {
    std::atomic<bool> stop = false;
    // Made before: this test is not about an allocator's own locks.
    const auto handler = std::make_shared<NullMetricHandler>();
    Configure(handler, "my_app");
    std::thread other([&] {
      while (!stop) Configure(handler, "my_app");
    });
    for (int i = 0; i < 200; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(150);  // a lock that is held for ever; below the limit of a test
        GetStream("my_app").AddValue("a", 1);
        _exit(0);
      }
      int status = -1;
      waitpid(pid, &status, 0);
      EXPECT_EQ(status, 0);
    }
    stop = true;
    other.join();
  });
  EXPECT_EQ(outcome.wait_status, 0);
}

TEST_F(MetricStreamTest, ProfCountsSuccessesAndFailuresAndTheirTime) {
  const auto segment = SegmentOf([] {
    for (int i = 0; i < 3; ++i) {
      const Prof prof("step", "my_app");
    }
    auto sum = Profiled("sum", [](int a, int b) { return a + b; });
    EXPECT_EQ(sum(2, 3), 5);
    try {
      const Prof prof("step", "my_app");
      throw std::runtime_error("failed");
    } catch (const std::runtime_error&) {
      // A scope that ends well while another exception is on its way.
    }
  });
  EXPECT_EQ(segment.series.at("my_app/step.success").fraction, 3);
  EXPECT_EQ(segment.series.at("my_app/step.failure").fraction, 1);
  EXPECT_EQ(segment.series.at("my_app/step.duration.ms").Count(), 4U);
  EXPECT_EQ(segment.series.at("torchelastic/sum.success").fraction, 1);
  EXPECT_FALSE(segment.series.contains("torchelastic/sum.failure"));
}

TEST_F(MetricStreamTest, AScopeInADestructorDuringUnwindingIsASuccess) {
  struct Cleaner {
    ~Cleaner() { const Prof prof("clean", "my_app"); }
  };
  const auto segment = SegmentOf([] {
    try {
      const Cleaner cleaner;
      throw std::runtime_error("failed");
    } catch (const std::runtime_error&) {
    }
  });
  EXPECT_EQ(segment.series.at("my_app/clean.success").fraction, 1);
}

}  // namespace
}  // namespace persia::metrics::tests

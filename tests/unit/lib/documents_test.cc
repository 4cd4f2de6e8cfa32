// The samples of the torchelastic and Benchmark AI documents, as a user would write them in C++: they print the text in the
// documents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "persia/metrics/metrics.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using ::testing::MatchesRegex;

class DocumentsTest : public WorkerTest {
 protected:
  // The text that a program prints on stdout.
  std::string Printed(const std::function<void()>& program) {
    const Outcome outcome = RunBareWorker([&] {
      dup2(STDERR_FILENO, STDOUT_FILENO);
      program();  // each line is out when it returns: the worker ends by _exit
    });
    EXPECT_EQ(outcome.wait_status, 0);
    return outcome.error_output;
  }
};

void Calculate() {}

void MyMethod() {
  MetricStream ms = getStream("my_app");
  const time_t start = time(nullptr);
  Calculate();
  const time_t end = time(nullptr);
  ms.AddValue("calculate_latency", static_cast<int>(end - start));
}

TEST_F(DocumentsTest, PublishMetricsOnTheConsole) {
  const std::string printed = Printed([] {
    Configure(std::make_shared<ConsoleMetricHandler>(), "torchelastic");
    Configure(std::make_shared<ConsoleMetricsHandler>(), "my_app");
    MyMethod();
    PutMetric("checkpoint.write_latency_ms", 12.5);
    ConsoleMetricsHandler().Emit({1574213883.4182858, "my_app", "my_metric", 0.5});
  });
  EXPECT_THAT(printed, MatchesRegex("\\[[0-9.]+\\]\\[my_app\\]: calculate_latency=[0-9]+\n"
                                    "\\[[0-9.]+\\]\\[torchelastic\\]: checkpoint\\.write_latency_ms=12\\.5\n"
                                    "\\[1574213883\\.4182858\\]\\[my_app\\]: my_metric=0\\.5\n"));
}

TEST_F(DocumentsTest, RecordEvents) {
  const std::string printed = Printed([] {
    events::Configure(std::make_shared<events::NullEventHandler>());
    events::Configure(std::make_shared<events::ConsoleEventHandler>(), "foo");
    events::RecordEvent({.name = "unseen"});
    events::RecordEvent({.name = "test_event", .type = "foo", .timestamp = 1});
    events::Record("console", "test", {{"key", std::string_view("value")}});
  });
  EXPECT_EQ(printed, "{\"name\": \"test_event\", \"type\": \"foo\", \"metadata\": {}, \"timestamp\": 1}\n");
}

TEST_F(DocumentsTest, EmitByBenchmarkAi) {
  const std::string printed = Printed([] {
    const double elapsed_time = 12.5;
    EXPECT_TRUE(benchmarkai::Emit({{"alexnet.batchsize16.latency", elapsed_time}}).ok());
  });
  EXPECT_EQ(printed, "{\"alexnet.batchsize16.latency\": 12.5}\n");
}

}  // namespace
}  // namespace persia::metrics::tests

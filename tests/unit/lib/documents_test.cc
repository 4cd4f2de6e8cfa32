// The samples of the torchelastic and Benchmark AI documents, as a user would write them in C++: they print the text in the
// documents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

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
      program();
      std::fflush(stdout);
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

TEST_F(DocumentsTest, AddMetricData) {
  const SegmentView segment = SegmentOf(MyMethod);
  EXPECT_TRUE(segment.series.at("my_app/calculate_latency").set);
}

TEST_F(DocumentsTest, PublishMetricsOnTheConsole) {
  const std::string printed = Printed([] {
    Configure(std::make_shared<ConsoleMetricHandler>(), "torchelastic");
    Configure(std::make_shared<ConsoleMetricsHandler>(), "my_app");
    MyMethod();
    PutMetric("checkpoint.write_latency_ms", 12.5);
  });
  EXPECT_THAT(printed, MatchesRegex("\\[[0-9.]+\\]\\[my_app\\]: calculate_latency=[0-9]+\n"
                                    "\\[[0-9.]+\\]\\[torchelastic\\]: checkpoint\\.write_latency_ms=12\\.5\n"));
}

class StdoutMetricHandler : public MetricHandler {
 public:
  void Emit(const MetricData& metric_data) override {
    std::printf("[%.7f][%s]: %s=%g\n", metric_data.timestamp, std::string(metric_data.group_name).c_str(),
                std::string(metric_data.name).c_str(), metric_data.value);
  }
};

TEST_F(DocumentsTest, ACustomMetricHandler) {
  const std::string printed = Printed([] {
    Configure(std::make_shared<StdoutMetricHandler>(), "my_app");
    getStream("my_app").AddValue("my_metric", 42);
    getStream("my_app").AddValue("my_metric", 43);
  });
  EXPECT_THAT(printed, MatchesRegex("\\[[0-9]+\\.[0-9]{7}\\]\\[my_app\\]: my_metric=42\n"
                                    "\\[[0-9]+\\.[0-9]{7}\\]\\[my_app\\]: my_metric=43\n"));
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

class StdoutEventHandler : public events::EventHandler {
 public:
  void Record(const events::Event& event) override {
    std::printf("[%s]: event_name: %s\n", event.type.c_str(), event.name.c_str());
  }
};

TEST_F(DocumentsTest, ACustomEventHandler) {
  const std::string printed = Printed([] {
    events::Configure(std::make_shared<StdoutEventHandler>(), "stdout_events");
    events::Record("stdout_events", "started");
  });
  EXPECT_EQ(printed, "[stdout_events]: event_name: started\n");
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

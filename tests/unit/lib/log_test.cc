// The program's handler of the library's log lines, and how often a mistake is logged.
#include "persia/metrics/log.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "persia/metrics/c.h"
#include "persia/metrics/metrics.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

class LogTest : public WorkerTest {};

void ADefinitionThatIsRefused(const char* name) {
  Counter{"g", name};
  Gauge{"g", name};
}

TEST_F(LogTest, AHandlerTakesTheLines) {
  const auto outcome = RunBareWorker([] {
    std::vector<std::string> lines;
    SetLogHandler([&](std::string_view line) { lines.emplace_back(line); });
    ADefinitionThatIsRefused("first");
    SetLogHandler({});
    ADefinitionThatIsRefused("second");
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].find("metric \"first\" of group \"g\" (g_first) is a counter, and was requested again as a gauge;"), 0U)
        << lines[0];
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
  EXPECT_NE(outcome.error_output.find("persia-metrics: metric \"second\""), std::string::npos) << outcome.error_output;
}

TEST_F(LogTest, AHandlerThatThrowsLosesNoLine) {
  const auto outcome = RunBareWorker([] {
    SetLogHandler([](std::string_view) { throw std::runtime_error("no"); });
    ADefinitionThatIsRefused("metric");
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
}

TEST_F(LogTest, AHandlerInC) {
  const auto outcome = RunBareWorker([] {
    std::string line;
    persia_metrics_set_log_handler([](const char* text, void* context) { *static_cast<std::string*>(context) = text; }, &line);
    ADefinitionThatIsRefused("metric");
    persia_metrics_set_log_handler(nullptr, nullptr);
    EXPECT_EQ(line.find("metric \"metric\" of group \"g\""), 0U) << line;
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.error_output, "");
}

TEST_F(LogTest, ABadNameIsLoggedOnceAndCountedEachTime) {
  const auto outcome = RunBareWorker([] {
    for (int i = 0; i < 1000; ++i) {
      PutMetric(std::string(257, 'n'), 1, "g");
      events::Record("g", "");
      Family<Counter>("g", "labels").With({{"", "x"}}).Increment();
      persia_metrics_counter_add(persia_metrics_counter("", "", nullptr), 1);
    }
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 2) << outcome.error_output;  // of names, and of label names
}

}  // namespace
}  // namespace persia::metrics::tests

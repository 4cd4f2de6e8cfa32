// The parts of the library that bindings to other languages use, and programs in C++ seldom do.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "persia/metrics/internal/process.h"
#include "persia/metrics/metrics.h"
#include "worker.h"

namespace persia::metrics {
namespace {

using BindingTest = tests::WorkerTest;

TEST_F(BindingTest, ItsLanguageStandsInTheSegment) {
  const auto segment = SegmentOf([] {
    internal::SetLanguage("python");
    Counter("g", "c").Increment();
  });
  EXPECT_EQ(segment.language, "python");
}

TEST_F(BindingTest, AskingWhetherMetricsAreExportedOpensWhatTheEnvironmentAsksFor) {
  const auto outcome = RunWorker([&] {
    ASSERT_TRUE(Exporting());
    ASSERT_EQ(OnlySegment().role, "worker");
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

TEST_F(BindingTest, NobodyIsExportedWithoutHavingAsked) {
  const auto outcome = RunBareWorker([&] {
    Counter("g", "c").Increment();
    ASSERT_FALSE(Exporting());
    ASSERT_TRUE(Init({.metrics_dir = directory()}).exporting);
    ASSERT_TRUE(Exporting());
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

TEST_F(BindingTest, AForkedChildIsExportedLikeItsParent) {
  const auto outcome = RunWorker([] {
    ASSERT_TRUE(Exporting());
    const pid_t child = fork();
    if (child == 0) {
      _exit(Exporting() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

}  // namespace
}  // namespace persia::metrics

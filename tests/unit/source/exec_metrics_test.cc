#include "source/exec_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ExecMetricsTest, TheRunTimeGrowsUntilTheCommandEnds) {
  ExecRecord::TimePoint now{seconds(1000)};
  ExecRecord record([&] { return now; });
  ExecMetrics metrics({"dlrm", {{"role", "agent"}}}, record);
  const auto first = metrics.Collect().value();
  ASSERT_EQ(first->layout->families.size(), 3U);
  EXPECT_EQ(first->layout->families[0].name, "persia_exec_exit_code");
  EXPECT_EQ(std::bit_cast<uint64_t>(first->values[0]), kAbsent) << "none yet";
  EXPECT_EQ(first->values[1], 0);
  EXPECT_EQ(first->values[2], 1);
  now += milliseconds(2500);
  EXPECT_EQ(metrics.Collect().value()->values[1], 2.5);
  record.CommandEnded(137);
  now += seconds(60);
  const auto last = metrics.Collect().value();
  EXPECT_THAT(last->values, ::testing::ElementsAre(137, 2.5, 0));
  EXPECT_EQ(last->layout, first->layout);
}

TEST(ExecMetricsTest, KeepsHowChildrenEnded) {
  ExecRecord record;
  record.ChildEnded(7, 99, 3 << 8);
  EXPECT_EQ(record.ends().ReasonOf(7, 99), "exit_3");
}

}  // namespace
}  // namespace persia::agent

#include "own/exec_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class ExecMetricsTest : public ::testing::Test {
 protected:
  // As the supervisor does.
  void ChildEnds(uint32_t pid, uint64_t start_ticks, int wait_status) {
    record_->children[record_->child_count % supervisor::Record::kMaxChildren] = {pid, wait_status, start_ticks};
    ++record_->child_count;
  }

  const std::unique_ptr<supervisor::Record> record_ = std::make_unique<supervisor::Record>();
};

TEST_F(ExecMetricsTest, TheRunTimeGrowsUntilTheCommandEnds) {
  ExecRecord::TimePoint now{seconds(1000)};
  record_->began_ns = nanoseconds(now.time_since_epoch()).count();
  record_->agent_starts = 1;
  ExecRecord record(*record_, [&] { return now; });
  ExecMetrics metrics({"dlrm", {{"role", "agent"}}}, record);
  const auto first = metrics.Collect();
  ASSERT_EQ(first->layout->families.size(), 5U);
  EXPECT_EQ(first->layout->families[0].name, "persia_agent_restarts_total");
  EXPECT_EQ(first->layout->families[1].name, "persia_exec_exit_code");
  EXPECT_EQ(std::bit_cast<uint64_t>(first->values[1]), kAbsent) << "none yet";
  EXPECT_EQ(first->values[0], 0);
  EXPECT_EQ(first->values[2], 0) << "not interrupted";
  EXPECT_EQ(first->values[3], 0);
  EXPECT_EQ(first->values[4], 1);
  now += milliseconds(2500);
  EXPECT_EQ(metrics.Collect()->values[3], 2.5);
  record_->agent_starts = 3;
  record_->exit_code = 137;
  record_->ended_ns = nanoseconds(now.time_since_epoch()).count();
  now += seconds(60);
  const auto last = metrics.Collect();
  EXPECT_THAT(last->values, ::testing::ElementsAre(2, 137, 0, 2.5, 0));
  EXPECT_EQ(last->layout, first->layout);
}

// As the kernel rounds the start time of a process.
TEST_F(ExecMetricsTest, TheCommandsBeginIsInTicksSinceBootWithTheTimeInSuspend) {
  ASSERT_EQ(sysconf(_SC_CLK_TCK), 100);
  record_->began_ns = 5'019'000'000;
  record_->suspended_ms = 1000;
  EXPECT_EQ(ExecRecord(*record_).began_ticks(), 601U);
}

class ShutdownTest : public ExecMetricsTest {
 protected:
  // As of `age` after the signal.
  std::optional<std::string> SignalAfter(seconds age) {
    return Ask([this, age] { return asked_at_ + age; });
  }
  std::optional<std::string> Ask(const std::function<ExecRecord::TimePoint()>& now) {
    const auto interruption = ExecRecord(*record_, now).interruption();
    return interruption ? std::optional(interruption->signal + (interruption->from_terminal ? " by a key" : "")) : std::nullopt;
  }
  static uint64_t Nanoseconds(ExecRecord::TimePoint time) {
    return static_cast<uint64_t>(nanoseconds(time.time_since_epoch()).count());
  }
  void IsAskedToEnd(uint32_t signal) {
    record_->end_signal = signal;
    record_->shutdown_until_ns = Nanoseconds(asked_at_) + supervisor::kShutdownNs;
  }
  void CommandEnds(seconds age, int exit_code) {
    record_->exit_code = exit_code;
    record_->ended_ns = Nanoseconds(asked_at_ + age);
  }

  const ExecRecord::TimePoint asked_at_{seconds(1000)};
};

TEST_F(ShutdownTest, ASignalIsForTheTimeOfAShutdown) {
  EXPECT_EQ(SignalAfter(seconds(0)), std::nullopt) << "there was none";
  IsAskedToEnd(SIGTERM);
  EXPECT_EQ(SignalAfter(seconds(0)), "SIGTERM");
  EXPECT_EQ(SignalAfter(seconds(300)), "SIGTERM");
  EXPECT_EQ(SignalAfter(seconds(301)), std::nullopt) << "the job has gone on";
  IsAskedToEnd(SIGINT + supervisor::kFromTerminal);
  EXPECT_EQ(SignalAfter(seconds(1)), "SIGINT by a key");
}

TEST_F(ShutdownTest, ACommandThatHasEndedDidSoByTheSignalIfItCameBefore) {
  IsAskedToEnd(SIGTERM);
  CommandEnds(seconds(2), 1);
  EXPECT_EQ(SignalAfter(seconds(1000)), "SIGTERM");
  CommandEnds(seconds(301), 1);
  EXPECT_EQ(SignalAfter(seconds(1000)), std::nullopt);
  CommandEnds(seconds(-1), 1);
  EXPECT_EQ(SignalAfter(seconds(1000)), std::nullopt) << "it is for the agent";
  CommandEnds(seconds(-1), 128 + SIGTERM);
  EXPECT_EQ(SignalAfter(seconds(1000)), "SIGTERM") << "the command got it first";
}

TEST_F(ShutdownTest, ItsTimeIsOfTheWallClock) {
  IsAskedToEnd(SIGINT);
  const auto before = std::chrono::system_clock::now();
  const auto interruption = ExecRecord(*record_, [this] { return asked_at_ + seconds(7); }).interruption();
  ASSERT_TRUE(interruption);
  EXPECT_GE(interruption->at, before - seconds(7));
  EXPECT_LE(interruption->at, std::chrono::system_clock::now() - seconds(7));
}

TEST_F(ExecMetricsTest, TakesTheEndsOfChildrenOnce) {
  ChildEnds(7, 99, 3 << 8);
  ExecRecord record(*record_);
  EXPECT_EQ(record.ends().ReasonOf(7, 99), std::nullopt);
  record.Read();
  EXPECT_EQ(record.ends().ReasonOf(7, 99), "exit_3");
  ChildEnds(8, 100, 9);
  record.Read();
  EXPECT_EQ(record.ends().ReasonOf(8, 100), "SIGKILL");
}

TEST_F(ExecMetricsTest, EndsThatWereOverwrittenAreLeftOut) {
  ExecRecord record(*record_);
  for (uint32_t pid = 1; pid <= supervisor::Record::kMaxChildren + 1; ++pid) ChildEnds(pid, 5, 0);
  record.Read();
  EXPECT_EQ(record.ends().ReasonOf(1, 5), std::nullopt);
  EXPECT_EQ(record.ends().ReasonOf(2, 5), std::nullopt) << "the supervisor may be overwriting it";
  EXPECT_EQ(record.ends().ReasonOf(3, 5), "exit_0");
  EXPECT_EQ(record.ends().ReasonOf(supervisor::Record::kMaxChildren + 1, 5), "exit_0");
}

}  // namespace
}  // namespace persia::agent

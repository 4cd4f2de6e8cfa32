// An agent that starts again goes on with what the former one knew.
#include "health/health_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "health/job_health_fixture.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The agent was killed while the reason of an end was not known.
TEST_F(JobHealthTest, ANewAgentTellsAnEndThatTheFormerOneHasNotTold) {
  StartJob();
  End(1, "", true);
  Look();
  const auto memory = DecodeAs<HealthMemory>(Encode(health_.memory()));
  ASSERT_TRUE(memory);
  EXPECT_EQ(*memory, health_.memory());
  health_ = JobHealth();
  health_.Restore(*memory, Wall());
  told_later_ = "SIGKILL";
  Run(seconds(20), {0, 2});
  EXPECT_THAT(Events(), ElementsAre("worker_died"));
  EXPECT_THAT(*health_.report()->deaths, SizeIs(1));
}

TEST_F(JobHealthTest, ANewAgentKnowsTheDeathsAndDoesNotTellThemAgain) {
  StartJob();
  End(1, "SIGSEGV", true);
  Look();
  const auto memory = DecodeAs<HealthMemory>(Encode(health_.memory()));
  ASSERT_TRUE(memory);
  health_ = JobHealth();
  health_.Restore(*memory, Wall());
  static_cast<void>(health_.TakeEvents());
  Run(seconds(20), {0, 2});
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_THAT(*health_.report()->deaths, SizeIs(1));
  EXPECT_EQ(health_.memory().deaths.totals[static_cast<size_t>(DeathCause::kCrash)], 1);
}

// What another agent knew, in the encoding of the state.
TEST_F(JobHealthTest, ANewAgentGoesOnWithAHangAndItsTime) {
  StartJob();
  const auto since = Wall();
  Run(seconds(60), {0, 2});
  const auto memory = DecodeAs<HealthMemory>(Encode(health_.memory()));
  ASSERT_TRUE(memory);
  EXPECT_EQ(*memory, health_.memory());
  now += seconds(300);
  health_ = JobHealth();
  health_.Restore(*memory, Wall());
  for (Process& process : processes) process.changes = 0;
  static_cast<void>(health_.TakeEvents());
  Look();
  Run(seconds(100), {0, 2});
  EXPECT_EQ(StateOf(1), "hung");
  EXPECT_EQ(State(), "degraded");
  ASSERT_THAT(health_.report()->reasons, SizeIs(1));
  EXPECT_EQ(health_.report()->reasons[0].since, since);
  EXPECT_THAT(Events(), IsEmpty());
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(State(), "running");
  EXPECT_THAT(Events(), ElementsAre("worker_recovered"));
  EXPECT_THAT(health_.memory().processes, IsEmpty());
}

TEST_F(JobHealthTest, ANewAgentGoesOnWithAHangOfTheJob) {
  StartJob();
  Run(seconds(100));
  const HealthMemory memory = health_.memory();
  ASSERT_TRUE(memory.job_hangs_since);
  now += seconds(300);
  health_ = JobHealth();
  health_.Restore(memory, Wall());
  for (Process& process : processes) process.changes = 0;
  Look();
  EXPECT_EQ(State(), "hung");
  EXPECT_EQ(health_.report()->reasons[0].since, memory.job_hangs_since);
  EXPECT_THAT(Events(), IsEmpty());
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(State(), "running");
  EXPECT_THAT(Events(), ElementsAre("job_recovered"));
}

TEST_F(JobHealthTest, MalformedMemoriesAreRefused) {
  StartJob();
  Run(seconds(100));
  const std::string bytes = Encode(health_.memory());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(DecodeAs<HealthMemory>(bytes.substr(0, size))) << size;
  EXPECT_FALSE(DecodeAs<HealthMemory>(bytes + "x"));
  HealthMemory memory = health_.memory();
  memory.longest_pause = std::chrono::milliseconds(-1);
  EXPECT_FALSE(DecodeAs<HealthMemory>(Encode(memory)));
}

// It continues the job of another agent.
TEST_F(JobHealthTest, WhatAnAgentFindsAtItsStartIsNoNews) {
  StartJob();
  End(2, "SIGKILL", true);
  Look();
  const HealthMemory memory = health_.memory();
  health_ = JobHealth();
  health_.Restore(memory, Wall());
  log_.emplace();
  Look();
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_THAT(log_->Messages(), ElementsAre("trainer rep_0 and rep_1 run already"));
  EXPECT_EQ(State(), "degraded");
  EXPECT_EQ(StateOf(2), "died");
}

}  // namespace
}  // namespace persia::agent

// What JobHealth reports of the ends of processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "health/job_health_fixture.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(JobHealthTest, ADeathIsAWarningAndDegradesTheJobUntilItsSuccessorStarts) {
  StartJob();
  End(1, "SIGKILL", true);
  ends.back().phase = "data";
  ends.back().step = 812;
  Run(seconds(10), {0, 2});
  EXPECT_EQ(State(), "degraded");
  EXPECT_EQ(StateOf(1), "died");
  EXPECT_THAT(Reasons(), ElementsAre("died: trainer rep_1 died: SIGKILL; in data, step 812"));
  const auto died_at = Wall();
  Run(seconds(1000), {0, 2});
  EXPECT_EQ(State(), "degraded");
  EXPECT_EQ(health_.report()->reasons[0].since, died_at);
  EXPECT_EQ(std::get<1>(*health_.report()->reasons[0].worker), "rep_1");
  Start(1);
  Run(seconds(10), {0, 2});
  EXPECT_EQ(State(), "running");
  EXPECT_THAT(Events(), ElementsAre("worker_died", "worker_restarted"));
  EXPECT_THAT(log_->Messages(), ElementsAre(StartsWith("trainer rep_1 died: SIGKILL; in data, step 812; pid 102. Look at: "),
                                            HasSubstr("trainer rep_1 started again, pid 104")));
}

// The supervisor tells how it ended one collection later.
TEST_F(JobHealthTest, AnEndIsReportedOnceItsReasonIsKnown) {
  StartJob();
  End(1, "", false);
  Run(seconds(10), {0, 2});
  EXPECT_THAT(Events(), IsEmpty());
  processes[1].last_exit = told_later_ = "exit_3";
  processes[1].died = true;
  Run(seconds(20), {0, 2});
  EXPECT_THAT(Events(), ElementsAre("worker_died"));
  EXPECT_THAT(log_->Messages(), ElementsAre(StartsWith("trainer rep_1 died: exit code 3; pid 102. Look at: ")));
}

TEST_F(JobHealthTest, AProcessThatEndedBeforeItWasSeenIsReportedWithItsSuccessor) {
  StartJob();
  Start(3);
  Replace(3, "SIGKILL").predecessors = 1;
  Run(seconds(10), {0, 1, 2});
  EXPECT_THAT(Events(), ElementsAre("worker_died", "worker_restarted"));
}

TEST_F(JobHealthTest, EachOfTwoEndsBetweenTwoCollectionsIsReported) {
  StartJob();
  Replace(1, "SIGSEGV");
  Replace(1, "exit_3");
  Run(seconds(10), {0, 2});
  EXPECT_THAT(Events(), ElementsAre("worker_died", "worker_died", "worker_restarted"));
  EXPECT_EQ(State(), "running");
}

TEST_F(JobHealthTest, TheStartOfAProcessThatEndedBeforeItWasSeenIsReportedBeforeItsEnd) {
  StartJob();
  Start(3);
  End(3, "exit_0", false);
  Run(seconds(10), {0, 1, 2});
  EXPECT_THAT(Events(), ElementsAre("worker_started", "worker_exited"));
  Replace(1, "SIGSEGV");
  End(1, "exit_3", true);
  Run(seconds(10), {0, 2});
  EXPECT_THAT(Events(), ElementsAre("worker_died", "worker_restarted", "worker_died"));
  EXPECT_THAT(log_->Messages(), Contains("trainer rep_1 started again, pid 105, restart 1"));
  EXPECT_EQ(StateOf(1), "died");
}

// No agent ran then.
TEST_F(JobHealthTest, AnEndBeforeTheFirstCollectionIsReported) {
  Start(0);
  End(0, "SIGSEGV", true);
  Look();
  EXPECT_THAT(Events(), ElementsAre("worker_died"));
  EXPECT_THAT(*health_.report()->deaths, SizeIs(1));
  EXPECT_THAT(Reasons(), ElementsAre("died: trainer rep_0 died: SIGSEGV"));
}

TEST_F(JobHealthTest, ARankThatHungUntilItWasKilledDiedOfTheHang) {
  StartJob();
  Run(seconds(60), {0, 2});
  ASSERT_EQ(StateOf(1), "hung");
  Run(seconds(20), {0, 2});
  End(1, "", true);
  Run(seconds(10), {0, 2});
  told_later_ = "SIGKILL";
  Run(seconds(10), {0, 2});
  ASSERT_THAT(*health_.report()->deaths, SizeIs(1));
  EXPECT_EQ(health_.report()->deaths->front().end->death->cause, DeathCause::kHang);
  EXPECT_THAT(health_.report()->deaths->front().end->death->what, StartsWith("it hung for 90 s, then SIGKILL"));
}

TEST_F(JobHealthTest, ADeathAfterAHangOfTheJobNamesTheRankThatTheOthersAwaited) {
  StartJob();
  for (Process& process : processes) process.phase = process.id.pid == 102 ? "data" : "sync";
  Run(seconds(60));
  for (const uint32_t rank : {0, 1}) End(rank, "SIGKILL", true);
  Run(seconds(10));
  const auto look_at = [&](size_t death) { return health_.report()->deaths->at(death).end->death->look_at; };
  EXPECT_EQ(look_at(0), "the phase in which it hung, and trainer rep_1, which the others waited for.");
  EXPECT_EQ(look_at(1), "the phase in which it hung, and why the others waited for it.");
}

TEST_F(JobHealthTest, ACleanExitIsNoProblem) {
  StartJob();
  End(1, "exit_0", false);
  Run(seconds(10), {0, 2});
  EXPECT_EQ(State(), "running");
  EXPECT_EQ(StateOf(1), "exited");
  EXPECT_THAT(Events(), ElementsAre("worker_exited"));
  EXPECT_THAT(log_->Messages(), ElementsAre("trainer rep_1 has ended: exit code 0"));
}

// A rank that the kernel killed before stays dead, and the others only followed the signal.
TEST_F(JobHealthTest, OfAnInterruptedJobThoseDiedThatDidSoForAnotherReason) {
  StartJob();
  End(1, "SIGKILL", true);
  ends.back().end->about.killed_for_memory = true;
  interruption_ = Interruption{.signal = "SIGINT", .at = Wall() + seconds(10)};
  End(0, "SIGINT", true);
  End(2, "exit_1", true);
  for (Process& ended : ends) ended.end->at = interruption_->at;
  Run(seconds(10));
  EXPECT_EQ(StateOf(0), "exited");
  EXPECT_EQ(StateOf(1), "died");
  EXPECT_EQ(StateOf(2), "exited");
  EXPECT_THAT(*health_.report()->deaths, SizeIs(1));
  EXPECT_THAT(Events(), ElementsAre("job_interrupted", "worker_died", "worker_exited", "worker_exited"));
  exit_code_ = 1;
  Run(seconds(10));
  EXPECT_EQ(State(), "finished");
  EXPECT_EQ(health_.report()->asked_to_end_by, "SIGINT");
  EXPECT_THAT(Reasons(), ElementsAre(StartsWith("died: trainer rep_1 died: killed by the kernel")));
}

// Its rank has no successor yet, and may never have one.
TEST_F(JobHealthTest, ARankThatDiedInAnEarlierAttemptIsNotDeadNow) {
  StartJob();
  End(1, "SIGKILL", false);
  processes[1].ended_at = Wall();
  Run(seconds(10), {0, 2});
  ASSERT_EQ(StateOf(1), "died");
  began_ = Wall();
  Run(seconds(10), {0, 2});
  EXPECT_EQ(StateOf(1), "exited");
  EXPECT_THAT(*health_.report()->deaths, SizeIs(1));
}

// A former agent saw it end.
TEST_F(JobHealthTest, ADeathHasTheTimeThatTheStateKnows) {
  for (uint32_t rank = 0; rank < 3; ++rank) Start(rank);
  End(1, "SIGKILL", true);
  processes[1].ended_at = HealthReport::TimePoint(seconds(10));
  Look();
  EXPECT_EQ(health_.report()->reasons[0].since, HealthReport::TimePoint(seconds(10)));
}

}  // namespace
}  // namespace persia::agent

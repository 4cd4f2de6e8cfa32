// The states of the job and of its ranks, and the reasons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "health/job_health_fixture.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(JobHealthTest, AJobWaitsForItsFirstWorkerAndRuns) {
  Look();
  EXPECT_EQ(State(), "waiting");
  Start(0);
  Run(seconds(10));
  EXPECT_EQ(State(), "running");
  EXPECT_EQ(StateOf(0), "starting");
  const auto since = health_.report()->since;
  Run(seconds(30), {0});
  EXPECT_EQ(StateOf(0), "running");
  EXPECT_EQ(health_.report()->since, since);
  EXPECT_THAT(Reasons(), IsEmpty());
  EXPECT_THAT(Events(), ElementsAre("worker_started"));
  EXPECT_THAT(log_->Messages(), ElementsAre("trainer rep_0 started, pid 101"));
}

TEST_F(JobHealthTest, AWorkerStartsUntilItsMetricsChangeAgainAndIsIdleAfterAMinuteWithout) {
  Look();
  Start(0);
  Start(1);
  Run(seconds(10), {0, 1});
  Run(seconds(10), {0});
  EXPECT_EQ(StateOf(0), "running") << "before it is judged";
  EXPECT_EQ(StateOf(1), "starting");
  Run(seconds(60), {0});
  EXPECT_EQ(StateOf(0), "running");
  EXPECT_EQ(StateOf(1), "idle");
  Run(seconds(10), {0, 1});
  EXPECT_EQ(StateOf(1), "running");
}

TEST_F(JobHealthTest, AHangAndItsEndAreReported) {
  StartJob();
  Run(seconds(60), {0, 2});
  EXPECT_EQ(State(), "degraded");
  EXPECT_EQ(StateOf(1), "hung");
  EXPECT_THAT(Reasons(),
              ElementsAre(StartsWith("hung: trainer rep_1 hangs. Look at: its stacks: py-spy dump --pid 102 (Python)")));
  EXPECT_EQ(health_.report()->hang_after, seconds(60));
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(State(), "running");
  EXPECT_THAT(Events(), ElementsAre("worker_hung", "worker_recovered"));
  EXPECT_THAT(log_->Messages(),
              ElementsAre(HasSubstr("trainer rep_1 hangs: none of its metrics has changed for 60 s"), "trainer rep_1 goes on"));
}

TEST_F(JobHealthTest, AJobThatStandsStillHangs) {
  StartJob();
  Run(seconds(60));
  EXPECT_EQ(State(), "hung");
  EXPECT_THAT(
      Reasons(),
      ElementsAre(StartsWith("job_hung: no metric of any process has changed for 60 s. Look at: the stacks of each rank, ")));
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(State(), "running");
  EXPECT_THAT(Events(), ElementsAre("job_hung", "job_recovered"));
}

TEST_F(JobHealthTest, AHangBeganWhenAMetricHadChangedLast) {
  StartJob();
  const auto changed = Wall();
  Run(seconds(60));
  EXPECT_EQ(health_.report()->since, changed);
  ASSERT_THAT(Reasons(), SizeIs(1));
  EXPECT_EQ(health_.report()->reasons[0].since, changed);
}

TEST_F(JobHealthTest, AHangOfAWorkerBeganWhenAMetricOfItHadChangedLast) {
  StartJob();
  const auto changed = Wall();
  Run(seconds(60), {0, 2});
  ASSERT_THAT(Reasons(), SizeIs(1));
  EXPECT_EQ(health_.report()->reasons[0].since, changed);
}

// Nobody goes on that is asked to end, nor does a launcher alone.
TEST_F(JobHealthTest, AHungJobThatEndsDoesNotGoOn) {
  StartJob();
  Start(3, "launcher");
  Run(seconds(70));
  for (const uint32_t rank : {0, 1, 2}) End(rank, "exit_0", false);
  Run(seconds(10), {3});
  EXPECT_THAT(Events(), ElementsAre("worker_started", "job_hung", "worker_exited", "worker_exited", "worker_exited"));
  for (const uint32_t rank : {0, 1, 2}) Start(rank);
  Run(seconds(100), {0, 1, 2, 3});
  Run(seconds(60));
  interruption_ = Interruption{.signal = "SIGINT", .at = Wall()};
  Run(seconds(10), {0, 1, 2});
  EXPECT_THAT(Events(), ElementsAre("worker_restarted", "worker_restarted", "worker_restarted", "job_hung", "job_interrupted"));
}

// Ranks that wait in a collective stop together with the one that they wait for.
TEST_F(JobHealthTest, OfAJobThatStandsStillThePhasesTellWhomTheOthersAwait) {
  StartJob();
  const auto be_in = [&](uint32_t rank, const std::string& phase, seconds since, std::optional<double> step) {
    processes[rank].phase = phase;
    processes[rank].in_phase = since;
    processes[rank].step = step;
  };
  be_in(0, "sync", seconds(58), 812);
  be_in(1, "data", seconds(94), 812);
  be_in(2, "sync", seconds(57), 812);
  Run(seconds(60));
  EXPECT_THAT(
      Reasons(),
      ElementsAre(StartsWith("job_hung: trainer rep_1 has been in data for 94 s, in step 812; 2 wait in sync. Look at: ")));
  EXPECT_THAT(log_->Messages(),
              ElementsAre(StartsWith("the job hangs: no metric of any process has changed for 60 s; trainer rep_1 has been in "
                                     "data for 94 s, in step 812; 2 wait in sync. Look at: ")));

  be_in(1, "other", seconds(120), {});
  be_in(2, "checkpoint", seconds(130), {});
  Look();
  EXPECT_THAT(Reasons(), ElementsAre(StartsWith(
                             "job_hung: trainer rep_2 has been in checkpoint for 130 s; trainer rep_1 has been outside of its "
                             "phases for 120 s; 1 waits in sync. Look at: ")));
  for (uint32_t rank = 0; rank < 3; ++rank) be_in(rank, "sync", seconds(140), {});
  Look();
  EXPECT_THAT(
      Reasons(),
      ElementsAre(StartsWith("job_hung: no metric of any process has changed for 60 s. Look at: the stacks of each rank, ")))
      << "each waits";
}

// A launcher takes no part in its ranks' collectives.
TEST_F(JobHealthTest, ThoseOfARoleInWhichNobodyWaitsAreNotAwaited) {
  StartJob();
  Start(3, "launcher");
  for (Process& process : processes) process.phase = "sync";
  processes[1].phase = "data";
  processes[3].phase = "rendezvous";
  Run(seconds(60));
  EXPECT_THAT(Reasons(),
              ElementsAre(StartsWith("job_hung: trainer rep_1 has been in data for 0 s; 2 wait in sync. Look at: ")));
}

TEST_F(JobHealthTest, AWorkerThatHangsIsNamedWithItsPhase) {
  StartJob();
  processes[1].phase = "checkpoint";
  processes[1].in_phase = seconds(70);
  Run(seconds(60), {0, 2});
  EXPECT_THAT(Reasons(), ElementsAre(StartsWith("hung: trainer rep_1 hangs, in checkpoint for 70 s. Look at: ")));
  EXPECT_THAT(log_->Messages(), ElementsAre(HasSubstr("others of its job go on; it has been in checkpoint for 70 s")));
}

TEST_F(JobHealthTest, TheCommandsExitCodeDecidesHowTheJobEnded) {
  const struct {
    int exit_code;
    const char* state;
  } kCases[] = {{0, "finished"}, {1, "failed"}, {137, "failed"}, {130, "finished"}, {143, "finished"}};
  for (const auto& [exit_code, state] : kCases) {
    health_ = JobHealth();
    processes.clear();
    exit_code_.reset();
    StartJob();
    for (uint32_t rank = 0; rank < 3; ++rank) End(rank, "unknown", false);
    exit_code_ = exit_code;
    Run(seconds(20));
    EXPECT_EQ(State(), state) << exit_code;
    EXPECT_EQ(health_.report()->exit_code, exit_code);
    EXPECT_THAT(Events(), ElementsAre("worker_died", "worker_died", "worker_died", "command_ended")) << exit_code;
  }
}

TEST_F(JobHealthTest, WithoutACommandTheWorkersDecide) {
  has_command_ = false;
  StartJob();
  for (uint32_t rank = 0; rank < 3; ++rank) End(rank, "exit_0", false);
  Run(seconds(10));
  EXPECT_EQ(State(), "finished");
  Start(1);
  Run(seconds(10), {1});
  End(1, "SIGKILL", true);
  Run(seconds(10));
  EXPECT_EQ(State(), "failed");
  EXPECT_THAT(Reasons(), ElementsAre("died: trainer rep_1 died: SIGKILL"));
  const auto since = health_.report()->since;
  any_has_ended_ = true;
  processes.clear();  // hidden after some time
  Run(seconds(1000));
  EXPECT_EQ(State(), "failed");
  EXPECT_EQ(health_.report()->since, since);
  EXPECT_THAT(Reasons(), ElementsAre("died: trainer rep_1 died: SIGKILL"));
  Start(0);
  Run(seconds(10));
  EXPECT_EQ(State(), "running");
}

TEST_F(JobHealthTest, AJobWhoseWorkersAreHiddenHasFinishedAndDoesNotWait) {
  has_command_ = false;
  StartJob();
  for (uint32_t rank = 0; rank < 3; ++rank) End(rank, "exit_0", false);
  Run(seconds(10));
  any_has_ended_ = true;
  processes.clear();
  Run(seconds(10));
  EXPECT_EQ(State(), "finished");
  health_ = JobHealth();  // another agent
  Run(seconds(10));
  EXPECT_EQ(State(), "finished");
}

// A launcher ends the others when one has died.
TEST_F(JobHealthTest, AFailedJobNamesTheRankThatDiedFirst) {
  StartJob();
  End(2, "SIGKILL", true);
  Run(seconds(10));
  const auto died_at = Wall();
  for (const uint32_t rank : {0, 1}) End(rank, "SIGTERM", true);
  exit_code_ = 1;
  for (Process& process : processes) process.died = false;
  Run(seconds(20));
  EXPECT_EQ(State(), "failed");
  EXPECT_THAT(Reasons(), ElementsAre("died: trainer rep_2 died: SIGKILL", "died: and 2 more ended after it"));
  EXPECT_EQ(health_.report()->reasons[0].since, died_at);
  EXPECT_EQ(std::get<1>(*health_.report()->reasons[0].worker), "rep_2");
}

TEST_F(JobHealthTest, OfRanksThatEndedInOneCollectionTheOneThatWasNotToldToIsTheFirst) {
  StartJob();
  End(0, "SIGTERM", false);
  End(1, "unknown", false);
  End(2, "exit_1", false);
  exit_code_ = 1;
  Run(seconds(10));
  EXPECT_THAT(Reasons(), ElementsAre("died: trainer rep_2 died: exit code 1",
                                     "died: and 2 more ended within the same collection or after it"));
}

TEST_F(JobHealthTest, OfRanksThatEndedInOneCollectionTheOneWithTheEarliestLastSignIsTheFirst) {
  StartJob();
  for (const uint32_t rank : {0, 1}) {
    End(rank, "exit_1", false);
    ends.back().end->last_sign = Wall() + seconds(rank == 0 ? 8 : 6);
  }
  End(2, "", true);
  ends.back().end->last_sign = Wall() + seconds(7);
  Run(seconds(10));
  told_later_ = processes[2].last_exit = "SIGSEGV";
  exit_code_ = 1;
  Run(seconds(10));
  EXPECT_THAT(Reasons(), ElementsAre("died: trainer rep_1 died: exit code 1", "died: and 2 more ended after it"));
  std::vector<std::string> instances;
  for (const Process& dead : *health_.report()->deaths) instances.push_back(LabelValueOf(dead.identity, "instance"));
  EXPECT_THAT(instances, ElementsAre("rep_1", "rep_2", "rep_0"));
  EXPECT_EQ(health_.report()->workers.at({"trainer", "rep_2", "0"}).since, Wall() - seconds(13));
}

// Those of a former attempt did not end the job, nor did data loaders.
TEST_F(JobHealthTest, OnlyTheRanksThatWereStartedLastEndTheJob) {
  has_command_ = false;
  StartJob();
  Start(3);
  processes[3].ordinal = 1;
  for (const uint32_t rank : {0, 2}) processes[rank].restart_count = 1;
  End(1, "SIGKILL", false);
  End(3, "SIGKILL", false);
  for (const uint32_t rank : {0, 2}) End(rank, "exit_0", false);
  Run(seconds(10));
  EXPECT_EQ(State(), "finished");
  EXPECT_THAT(Reasons(), IsEmpty());
}

TEST_F(JobHealthTest, ARankThatRestartsAgainAndAgainDegradesTheJob) {
  StartJob();
  for (int i = 0; i < 3; ++i) {
    Replace(1, "exit_1");
    Run(seconds(60), {0, 1, 2});
  }
  EXPECT_EQ(State(), "degraded");
  EXPECT_THAT(Reasons(), ElementsAre("restarting: trainer rep_1 restarts again and again"));
  Run(seconds(900), {0, 1, 2});
  EXPECT_EQ(State(), "running");
}

// Such as those that PyTorch starts in each epoch.
TEST_F(JobHealthTest, DataLoadersThatComeAnewAreNoTrouble) {
  StartJob();
  Start(3);
  processes[3].ordinal = 1;
  for (int i = 0; i < 5; ++i) {
    Replace(3, "exit_0");
    Run(seconds(10), {0, 1, 2, 3});
  }
  EXPECT_EQ(State(), "running");
  for (int i = 0; i < 3; ++i) {
    Replace(3, "SIGKILL");
    Run(seconds(10), {0, 1, 2, 3});
  }
  EXPECT_EQ(State(), "degraded");
}

TEST_F(JobHealthTest, OnlyTheFirstReasonsAreKept) {
  Look();
  for (uint32_t rank = 0; rank < 100; ++rank) Start(rank);
  Run(seconds(30), {0});
  for (uint32_t rank = 1; rank < 100; ++rank) End(rank, "SIGKILL", true);
  Run(seconds(10), {0});
  EXPECT_THAT(Reasons(), SizeIs(HealthReport::kMaxReasons));
}

}  // namespace
}  // namespace persia::agent

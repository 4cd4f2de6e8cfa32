#include "health/job_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "captured_log.h"
#include "health/job_world.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class JobHealthTest : public ::testing::Test, protected JobWorld {
 protected:
  void Look() {
    health_.Look(processes, {.steady = now,
                             .wall = Wall(),
                             .has_command = has_command_,
                             .exit_code = exit_code_,
                             .any_has_ended = any_has_ended_,
                             .ends = ends,
                             .exit_of = [this](const ProcessEnd&) { return told_later_; }});
    ends.clear();
  }
  void Run(seconds time, const std::vector<uint32_t>& changing = {}) {
    for (seconds left = time; left.count() > 0; left -= seconds(10)) {
      now += seconds(10);
      Change(changing);
      Look();
    }
  }
  [[nodiscard]] HealthReport::TimePoint Wall() const {
    return HealthReport::TimePoint(std::chrono::duration_cast<HealthReport::TimePoint::duration>(now.time_since_epoch()));
  }
  // A job of three ranks that has been running for 100 seconds.
  void StartJob() {
    Look();
    for (uint32_t rank = 0; rank < 3; ++rank) Start(rank);
    Run(seconds(100), {0, 1, 2});
    static_cast<void>(health_.TakeEvents());
    log_.emplace();
  }
  std::string State() { return std::string(Name(health_.report()->state)); }
  std::string StateOf(uint32_t rank) {
    return std::string(Name(health_.report()->workers.at({"trainer", "rep_" + std::to_string(rank), "0"}).state));
  }
  std::vector<std::string> Reasons() {
    std::vector<std::string> texts;
    for (const auto& reason : health_.report()->reasons) texts.push_back(reason.kind + ": " + reason.text);
    return texts;
  }
  std::vector<std::string> Events() {
    std::vector<std::string> names;
    for (const JobEvent& event : health_.TakeEvents()) {
      EXPECT_EQ(event.type, "persia.agent");
      EXPECT_GT(event.unix_ms, 0U);
      names.push_back(event.name);
    }
    return names;
  }

  std::optional<CapturedLog> log_{std::in_place};
  JobHealth health_;
  bool has_command_ = true;
  std::optional<int> exit_code_;
  bool any_has_ended_ = false;
  std::string told_later_;
};

TEST_F(JobHealthTest, AJobWaitsForItsFirstWorkerAndRuns) {
  Look();
  EXPECT_EQ(State(), "waiting");
  Start(0);
  Run(seconds(10));
  EXPECT_EQ(State(), "running");
  EXPECT_EQ(StateOf(0), "idle");
  const auto since = health_.report()->since;
  Run(seconds(30), {0});
  EXPECT_EQ(StateOf(0), "running");
  EXPECT_EQ(health_.report()->since, since);
  EXPECT_THAT(Reasons(), IsEmpty());
  EXPECT_THAT(Events(), ElementsAre("worker_started"));
  EXPECT_THAT(log_->Messages(), ElementsAre("trainer rep_0 started, pid 101"));
}

TEST_F(JobHealthTest, ADeathIsAWarningAndDegradesTheJobUntilItsSuccessorStarts) {
  StartJob();
  End(1, "SIGKILL", true);
  Run(seconds(10), {0, 2});
  EXPECT_EQ(State(), "degraded");
  EXPECT_EQ(StateOf(1), "died");
  EXPECT_THAT(Reasons(), ElementsAre("died: trainer rep_1 died: SIGKILL"));
  const auto died_at = Wall();
  Run(seconds(1000), {0, 2});
  EXPECT_EQ(State(), "degraded");
  EXPECT_EQ(health_.report()->reasons[0].since, died_at);
  EXPECT_EQ(std::get<1>(*health_.report()->reasons[0].worker), "rep_1");
  Start(1);
  Run(seconds(10), {0, 2});
  EXPECT_EQ(State(), "running");
  EXPECT_THAT(Events(), ElementsAre("worker_died", "worker_restarted"));
  EXPECT_THAT(log_->Messages(), ElementsAre(StartsWith("trainer rep_1 died: SIGKILL. Look at: "),
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
  EXPECT_THAT(log_->Messages(), ElementsAre(StartsWith("trainer rep_1 died: exit code 3. Look at: ")));
}

TEST_F(JobHealthTest, AProcessThatWasReplacedBetweenTwoCollectionsIsReported) {
  StartJob();
  Replace(1, "SIGSEGV");
  Run(seconds(10), {0, 2});
  EXPECT_THAT(Events(), ElementsAre("worker_died", "worker_restarted"));
  EXPECT_EQ(State(), "running");
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

TEST_F(JobHealthTest, ADeathIsToldWithItsPlaceWhereverItIsShown) {
  StartJob();
  End(1, "SIGSEGV", true);
  ends.back().phase = "data";
  ends.back().step = 812;
  Run(seconds(10), {0, 2});
  EXPECT_THAT(Reasons(), ElementsAre("died: trainer rep_1 died: SIGSEGV; in data, step 812"));
  EXPECT_THAT(log_->Messages(), ElementsAre(StartsWith("trainer rep_1 died: SIGSEGV; in data, step 812. Look at: ")));
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
  EXPECT_EQ(health_.report()->deaths->front().cause, DeathCause::kHang);
  EXPECT_THAT(health_.report()->deaths->front().what, StartsWith("it hung for 90 s, then SIGKILL"));
}

// The agent was killed while the reason of an end was not known.
TEST_F(JobHealthTest, ANewAgentTellsAnEndThatTheFormerOneHasNotTold) {
  StartJob();
  End(1, "", true);
  Look();
  const auto memory = DecodeHealth(EncodeHealth(health_.memory()));
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
  const auto memory = DecodeHealth(EncodeHealth(health_.memory()));
  ASSERT_TRUE(memory);
  health_ = JobHealth();
  health_.Restore(*memory, Wall());
  static_cast<void>(health_.TakeEvents());
  Run(seconds(20), {0, 2});
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_THAT(*health_.report()->deaths, SizeIs(1));
  EXPECT_EQ(health_.memory().deaths.totals[static_cast<size_t>(DeathCause::kCrash)], 1);
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

TEST_F(JobHealthTest, AHangAndItsEndAreReported) {
  StartJob();
  Run(seconds(60), {0, 2});
  EXPECT_EQ(State(), "degraded");
  EXPECT_EQ(StateOf(1), "hung");
  EXPECT_THAT(Reasons(), ElementsAre("hung: trainer rep_1 hangs"));
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
  EXPECT_THAT(Reasons(), ElementsAre("job_hung: no metric of any process has changed for 60 s"));
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(State(), "running");
  EXPECT_THAT(Events(), ElementsAre("job_hung", "job_recovered"));
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
  EXPECT_THAT(Reasons(), ElementsAre("job_hung: trainer rep_1 has been in data for 94 s, in step 812; 2 wait in sync"));
  EXPECT_THAT(log_->Messages(),
              ElementsAre("the job hangs: no metric of any process has changed for 60 s; trainer rep_1 has been in "
                          "data for 94 s, in step 812; 2 wait in sync"));
  EXPECT_EQ(health_.report()->workers.at({"trainer", "rep_1", "0"}).phase, "data");
  EXPECT_EQ(health_.report()->workers.at({"trainer", "rep_1", "0"}).phase_since, Wall() - seconds(94));

  be_in(1, "other", seconds(120), {});
  be_in(2, "checkpoint", seconds(130), {});
  Look();
  EXPECT_THAT(
      Reasons(),
      ElementsAre("job_hung: trainer rep_2 has been in checkpoint for 130 s; trainer rep_1 has been in none of its phases "
                  "for 120 s; 1 waits in sync"));
  for (uint32_t rank = 0; rank < 3; ++rank) be_in(rank, "sync", seconds(140), {});
  Look();
  EXPECT_THAT(Reasons(), ElementsAre("job_hung: no metric of any process has changed for 60 s")) << "each waits";
}

// A launcher takes no part in its ranks' collectives.
TEST_F(JobHealthTest, ThoseOfARoleInWhichNobodyWaitsAreNotAwaited) {
  StartJob();
  Start(3, "launcher");
  for (WorkerProcess& process : processes) process.phase = "sync";
  processes[1].phase = "data";
  processes[3].phase = "rendezvous";
  Run(seconds(60));
  EXPECT_THAT(Reasons(), ElementsAre("job_hung: trainer rep_1 has been in data for 0 s; 2 wait in sync"));
}

TEST_F(JobHealthTest, AWorkerThatHangsIsNamedWithItsPhase) {
  StartJob();
  processes[1].phase = "checkpoint";
  processes[1].in_phase = seconds(70);
  Run(seconds(60), {0, 2});
  EXPECT_THAT(Reasons(), ElementsAre("hung: trainer rep_1 hangs, in checkpoint for 70 s"));
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
  processes[1].last_exit = "SIGKILL";
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
  for (WorkerProcess& process : processes) process.died = false;
  Run(seconds(20));
  EXPECT_EQ(State(), "failed");
  EXPECT_THAT(Reasons(), ElementsAre("failed: the command ended with exit code 1", "died: trainer rep_2 died: SIGKILL",
                                     "died: and 2 more ended after it"));
  EXPECT_EQ(health_.report()->reasons[1].since, died_at);
  EXPECT_EQ(std::get<1>(*health_.report()->reasons[1].worker), "rep_2");
}

TEST_F(JobHealthTest, OfRanksThatEndedInOneCollectionTheOneThatWasNotToldToIsTheFirst) {
  StartJob();
  End(0, "SIGTERM", false);
  End(1, "unknown", false);
  End(2, "exit_1", false);
  exit_code_ = 1;
  Run(seconds(10));
  EXPECT_THAT(Reasons(), ElementsAre("failed: the command ended with exit code 1", "died: trainer rep_2 died: exit code 1",
                                     "died: and 2 more ended within the same collection or after it"));
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

// What another agent knew, in the encoding of the state.
TEST_F(JobHealthTest, ANewAgentGoesOnWithAHangAndItsTime) {
  StartJob();
  Run(seconds(60), {0, 2});
  const auto since = Wall();
  const auto memory = DecodeHealth(EncodeHealth(health_.memory()));
  ASSERT_TRUE(memory);
  EXPECT_EQ(*memory, health_.memory());
  now += seconds(300);
  health_ = JobHealth();
  health_.Restore(*memory, Wall());
  for (WorkerProcess& process : processes) process.changes = 0;
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
  for (WorkerProcess& process : processes) process.changes = 0;
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
  const std::string bytes = EncodeHealth(health_.memory());
  // A former state ends before the deaths.
  const size_t former_size = bytes.size() - EncodeDeaths({}).size() - sizeof(uint32_t);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeHealth(bytes.substr(0, size)).has_value(), size == former_size) << size;
  }
  EXPECT_FALSE(DecodeHealth(bytes + "x"));
}

// A former agent saw it end.
TEST_F(JobHealthTest, ADeathHasTheTimeThatTheStateKnows) {
  for (uint32_t rank = 0; rank < 3; ++rank) Start(rank);
  End(1, "SIGKILL", true);
  processes[1].ended_at = HealthReport::TimePoint(seconds(10));
  Look();
  EXPECT_EQ(health_.report()->reasons[0].since, HealthReport::TimePoint(seconds(10)));
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

// It continues the job of another agent.
TEST_F(JobHealthTest, WhatAnAgentFindsAtItsStartIsNoNews) {
  for (uint32_t rank = 0; rank < 3; ++rank) Start(rank).predecessors = 2;
  End(2, "SIGKILL", true);
  ends.clear();  // told by that agent
  Look();
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_THAT(log_->Messages(), IsEmpty());
  EXPECT_EQ(State(), "degraded");
  EXPECT_EQ(StateOf(2), "died");
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

#include "health/rank_verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "captured_log.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class RankVerdictsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      Process& process = processes_.emplace_back();
      process.identity = {"dlrm", {{"instance", "rep_" + std::to_string(rank)}, {"role", "trainer"}}};
      process.alive = true;
      process.id.pid = 100 + rank;
      process.phase = "data";
      process.step = 0;
      process.phase_seconds = {{"data", 0}, {"sync", 0}};
    }
  }
  // An interval of ten steps, of which this rank spends `late` seconds more in data.
  void Train(uint32_t slow, double late) {
    for (uint32_t rank = 0; rank < processes_.size(); ++rank) {
      Process& process = processes_[rank];
      process.step = *process.step + 10;
      process.phase_seconds["data"] += rank == slow ? 5 + late : 5;
      process.phase_seconds["sync"] += rank == slow ? 5 - late : 5;
      process.phase = "data";
      process.in_phase = seconds(0);
    }
    Pass(seconds(10));
  }
  // Others wait for the rank.
  void Hang(uint32_t awaited, seconds time) {
    for (uint32_t rank = 0; rank < processes_.size(); ++rank) {
      processes_[rank].phase = rank == awaited ? "data" : "sync";
      processes_[rank].in_phase += time;
      processes_[rank].phase_seconds[processes_[rank].phase] += static_cast<double>(time.count());
    }
    Pass(time);
  }
  void Pass(seconds time) {
    now_ += time;
    verdicts_.Look(processes_, {.steady = now_,
                                .wall = RankVerdicts::TimePoint(
                                    std::chrono::duration_cast<RankVerdicts::TimePoint::duration>(now_.time_since_epoch())),
                                .hang_after = seconds(60)});
  }
  std::vector<std::string> Events() {
    std::vector<std::string> names;
    for (const JobEvent& event : verdicts_.TakeEvents()) {
      EXPECT_EQ(event.type, "persia.agent");
      EXPECT_FALSE(event.identity.labels.empty());
      names.push_back(event.name);
    }
    return names;
  }

  std::optional<CapturedLog> log_{std::in_place};
  std::vector<Process> processes_;
  std::chrono::steady_clock::time_point now_{seconds(1000)};
  RankVerdicts verdicts_;
};

TEST_F(RankVerdictsTest, AStragglerIsReportedOnceAndTakenBackOnce) {
  for (int i = 0; i < 20; ++i) Train(1, 4);
  EXPECT_THAT(Events(), ElementsAre("straggler_found"));
  EXPECT_THAT(
      log_->Messages(),
      ElementsAre("trainer rep_1: 400 ms longer in data than the others in each step of 1 s; 2 others wait for it in sync"));
  ASSERT_THAT(verdicts_.report()->stragglers, SizeIs(1));
  const auto since = verdicts_.report()->stragglers[0].since;
  Train(1, 4);
  EXPECT_EQ(verdicts_.report()->stragglers[0].since, since);
  log_.emplace();
  for (int i = 0; i < 20; ++i) Train(1, 0);
  EXPECT_THAT(Events(), ElementsAre("straggler_gone"));
  EXPECT_THAT(log_->Messages(), ElementsAre("trainer rep_1: the others do not wait for it any more"));
  EXPECT_THAT(verdicts_.report()->stragglers, IsEmpty());
}

TEST_F(RankVerdictsTest, AHangIsReportedOnceAndTakenBackOnce) {
  Train(0, 0);
  for (int i = 0; i < 9; ++i) Hang(2, seconds(10));
  EXPECT_THAT(Events(), ElementsAre("rank_awaited"));
  EXPECT_THAT(log_->Messages(),
              ElementsAre(StartsWith("trainer rep_2 hangs in data since step 10, 60 s; 2 others wait in sync. Look at: ")));
  ASSERT_THAT(verdicts_.report()->awaited, SizeIs(1));
  EXPECT_EQ(verdicts_.report()->awaited[0].verdict.waited, seconds(90));
  log_.emplace();
  Train(0, 0);
  Train(0, 0);
  EXPECT_THAT(Events(), ElementsAre("rank_caught_up"));
  EXPECT_THAT(log_->Messages(), ElementsAre("trainer rep_2: the others do not wait for it any more, after 100 s"));
}

// Their ends are reported, and no more.
TEST_F(RankVerdictsTest, OfRanksThatHaveEndedNothingIsTakenBack) {
  for (int i = 0; i < 20; ++i) Train(1, 4);
  for (int i = 0; i < 20; ++i) Hang(1, seconds(10));
  EXPECT_THAT(Events(), ElementsAre("straggler_found", "rank_awaited"));
  processes_[1].alive = false;
  Pass(seconds(10));
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_THAT(verdicts_.report()->awaited, IsEmpty());
}

TEST_F(RankVerdictsTest, IfEachRankThatWaitedHasEndedNothingIsTakenBack) {
  Train(0, 0);
  for (int i = 0; i < 9; ++i) Hang(2, seconds(10));
  EXPECT_THAT(Events(), ElementsAre("rank_awaited"));
  for (const size_t rank : {0, 1}) processes_[rank].alive = false;
  Pass(seconds(10));
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(RankVerdictsTest, ARoleThatStandsStillBecauseARankDiedIsToldSo) {
  for (int i = 0; i < 20; ++i) Train(0, 0);
  processes_[1].alive = false;
  processes_[1].died = true;
  for (int i = 0; i < 3; ++i) Hang(1, seconds(10));
  ASSERT_THAT(verdicts_.report()->standstills, SizeIs(1));
  EXPECT_EQ(verdicts_.report()->standstills[0].where, "trainer rep_1 died; 2 others wait in sync for it");
}

TEST_F(RankVerdictsTest, AStragglerThatHangsStaysOne) {
  for (int i = 0; i < 20; ++i) Train(1, 4);
  Events();
  for (int i = 0; i < 20; ++i) Hang(1, seconds(10));
  EXPECT_THAT(Events(), ElementsAre("rank_awaited"));
  EXPECT_THAT(verdicts_.report()->stragglers, SizeIs(1));
}

TEST_F(RankVerdictsTest, ARoleThatStandsStillIsToldWithItsPhases) {
  for (int i = 0; i < 20; ++i) Train(0, 0);
  EXPECT_FALSE(verdicts_.report()->StandsStill("trainer"));
  for (int i = 0; i < 3; ++i) Hang(2, seconds(10));
  ASSERT_THAT(verdicts_.report()->standstills, SizeIs(1));
  EXPECT_EQ(verdicts_.report()->standstills[0].unmoved, seconds(30));
  EXPECT_EQ(verdicts_.report()->standstills[0].where, "trainer rep_2 has been in data for 30 s, in step 200; 2 wait in sync");
  EXPECT_TRUE(verdicts_.report()->job_stands && verdicts_.report()->numbers_steps);
  EXPECT_TRUE(verdicts_.report()->StandsStill("trainer"));
  EXPECT_FALSE(verdicts_.report()->StandsStill("server"));
  for (Process& process : processes_) process.phase = "eval";
  Pass(seconds(10));
  EXPECT_EQ(verdicts_.report()->standstills[0].where, "each rank is in eval");
  processes_[0].phase = "data";
  Pass(seconds(10));
  EXPECT_EQ(verdicts_.report()->standstills[0].where, "");
}

TEST_F(RankVerdictsTest, ARankThatStandsStillAlone) {
  for (int i = 0; i < 20; ++i) Train(0, 0);
  for (int i = 0; i < 3; ++i) {
    for (const size_t rank : {0, 1}) *processes_[rank].step += 10;
    Pass(seconds(10));
  }
  EXPECT_THAT(verdicts_.report()->standstills, IsEmpty());
  ASSERT_THAT(verdicts_.report()->standing, SizeIs(1));
  EXPECT_EQ(verdicts_.report()->standing[0].identity, processes_[2].identity);
  EXPECT_TRUE(verdicts_.report()->StandsStill("trainer"));
}

TEST_F(RankVerdictsTest, TheSlowestRankIsKnownAfterItsVerdictHasEnded) {
  for (int i = 0; i < 20; ++i) Train(0, 0);
  EXPECT_FALSE(verdicts_.report()->slowest);
  for (int i = 0; i < 40; ++i) Train(1, 4);
  for (int i = 0; i < 10; ++i) Hang(1, seconds(10));
  ASSERT_TRUE(verdicts_.report()->slowest);
  const auto time = verdicts_.report()->slowest->time;
  EXPECT_GT(time, seconds(100));
  EXPECT_LT(time, seconds(400)) << "without the time in which nothing moved";
  for (int i = 0; i < 20; ++i) Train(1, 0);
  for (Process& process : processes_) process.alive = false;
  Pass(seconds(10));
  EXPECT_THAT(verdicts_.report()->stragglers, IsEmpty());
  EXPECT_EQ(verdicts_.report()->slowest->verdict.identity, processes_[1].identity);
  EXPECT_EQ(verdicts_.report()->slowest->verdict.phase, "data");
}

TEST_F(RankVerdictsTest, TheReportHasWhatEachRankDoes) {
  for (int i = 0; i < 3; ++i) Train(0, 0);
  EXPECT_THAT(verdicts_.report()->present, SizeIs(3));
  ASSERT_THAT(verdicts_.report()->ranks, SizeIs(3));
  EXPECT_DOUBLE_EQ(verdicts_.report()->ranks[0].seconds_per_step.at("data"), 0.5);
  for (Process& process : processes_) process.alive = false;
  Pass(seconds(10));
  EXPECT_THAT(verdicts_.report()->present, IsEmpty());
  EXPECT_THAT(verdicts_.report()->ranks, IsEmpty());
}

TEST_F(RankVerdictsTest, NumbersAreShort) {
  StragglerJudge::Verdict verdict{.identity = processes_[0].identity, .phase = "other", .seconds_per_step = 0.01234};
  verdict.step_seconds = 123.4;
  verdict.waiting = 1;
  EXPECT_EQ(SentenceOf(verdict),
            "trainer rep_0: 12 ms longer outside of its phases than the others in each step of 123 s; 1 other waits for it "
            "in sync");
}

}  // namespace
}  // namespace persia::agent

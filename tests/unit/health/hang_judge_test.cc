#include "health/hang_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "health/job_world.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using Ranks = std::vector<uint32_t>;

class HangJudgeTest : public ::testing::Test, protected JobWorld {
 protected:
  HangJudgeTest() {
    for (uint32_t rank = 0; rank < 3; ++rank) Start(rank);
    Look();
  }
  void Look() { judge_.Look(processes, now, settings_); }
  // Collections over this time, in each of which these ranks have changed.
  void Run(seconds time, const Ranks& changing) {
    for (seconds left = time; left.count() > 0; left -= seconds(10)) {
      now += seconds(10);
      Change(changing);
      Look();
    }
  }
  Ranks Hung() {
    Ranks hung;
    for (uint32_t rank = 0; rank < processes.size(); ++rank) {
      if (processes[rank].verdict == HangVerdict::kHung) hung.push_back(rank);
    }
    return hung;
  }

  HangJudge judge_;
  HangJudge::Settings settings_;
};

TEST_F(HangJudgeTest, ARankThatStandsStillWhileOthersGoOnHangs) {
  Run(seconds(100), {0, 1, 2});
  Run(seconds(50), {0, 2});
  EXPECT_THAT(Hung(), IsEmpty());
  Run(seconds(10), {0, 2});
  EXPECT_THAT(Hung(), ElementsAre(1));
  EXPECT_FALSE(judge_.job_hangs());
  EXPECT_EQ(processes[1].unchanged, seconds(60));
  Run(seconds(10), {0, 1, 2});
  EXPECT_THAT(Hung(), IsEmpty());
}

// The pauses of the others are shorter than the threshold, and longer than half of it.
TEST_F(HangJudgeTest, OnlyItsOwnChangeEndsTheHangOfAProcess) {
  Run(seconds(100), {0, 1, 2});
  Run(seconds(60), {0, 2});
  for (int i = 0; i < 5; ++i) {
    Run(seconds(10), {0});
    EXPECT_THAT(Hung(), ElementsAre(1));
    Run(seconds(40), {});
    EXPECT_THAT(Hung(), ElementsAre(1)) << "and rank 2 is not singled out while no other goes on";
    Run(seconds(10), {2});
    EXPECT_THAT(Hung(), ElementsAre(1));
  }
  Run(seconds(300), {});
  EXPECT_TRUE(judge_.job_hangs());
  EXPECT_THAT(Hung(), ElementsAre(1)) << "also while the job hangs";
  Run(seconds(10), {0});
  Run(seconds(10), {1});
  EXPECT_FALSE(judge_.job_hangs());
  EXPECT_THAT(Hung(), Not(Contains(1U)));
}

// The usual pattern.
TEST_F(HangJudgeTest, IfOnlyRank0RecordsValuesTheOthersAreNotJudged) {
  Run(seconds(20), {0, 1, 2});  // at the start
  Run(seconds(100'000), {0});
  EXPECT_THAT(Hung(), IsEmpty());
  EXPECT_EQ(processes[0].verdict, HangVerdict::kRuns);
  EXPECT_EQ(processes[1].verdict, HangVerdict::kNotJudged);
}

TEST_F(HangJudgeTest, RanksThatStopTogetherHangAsAJob) {
  Run(seconds(100), {0, 1, 2});
  Run(seconds(10), {0, 1});  // rank 2 waits first
  for (int i = 0; i < 5; ++i) {
    Run(seconds(10), {});
    EXPECT_THAT(Hung(), IsEmpty()) << i;
    EXPECT_FALSE(judge_.job_hangs()) << i;
  }
  Run(seconds(10), {});
  EXPECT_TRUE(judge_.job_hangs());
  EXPECT_THAT(Hung(), IsEmpty());
  Run(seconds(10), {0, 1, 2});
  EXPECT_FALSE(judge_.job_hangs());
}

// It keeps its rendezvous alive.
TEST_F(HangJudgeTest, ALauncherThatGoesOnDoesNotSpeakForItsRanks) {
  Start(3);
  processes[3].rank.role = "launcher";
  Run(seconds(100), {0, 1, 2, 3});
  Run(seconds(60), {3});
  EXPECT_TRUE(judge_.job_hangs());
  EXPECT_THAT(Hung(), IsEmpty());
  Run(seconds(10), {0, 3});
  EXPECT_FALSE(judge_.job_hangs());
}

TEST_F(HangJudgeTest, TheThresholdFollowsTheLongestPauseOfTheJob) {
  EXPECT_EQ(judge_.hang_after(), seconds(60));
  Run(seconds(100), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(60));
  Run(seconds(290), {});  // an evaluation
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(900));
  Run(seconds(60), {0, 2});
  EXPECT_THAT(Hung(), IsEmpty());
  // Of the last one to two days.
  Run(seconds(24 * 3600), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(900));
  Run(seconds(24 * 3600), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(60));
}

TEST_F(HangJudgeTest, OnlyTheFirstOfTheEvaluationsOfADayCountsAsAHang) {
  Run(seconds(100), {0, 1, 2});
  for (int evaluation = 0; evaluation < 8; ++evaluation) {
    seconds hung{0};
    for (int i = 0; i < 60; ++i) {
      Run(seconds(10), {});
      hung += judge_.job_hangs() ? seconds(10) : seconds(0);
    }
    EXPECT_EQ(hung, evaluation == 0 ? seconds(550) : seconds(0)) << evaluation;
    Run(seconds(3 * 3600), {0, 1, 2});
  }
}

TEST_F(HangJudgeTest, TheThresholdHasAnUpperBoundAboveTheLongestPause) {
  Run(seconds(100), {0, 1, 2});
  Run(seconds(1000), {});
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(1800));
  Run(seconds(2990), {});
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(4500));
  Run(seconds(30'000), {});  // a hang, of which nothing is to be learnt
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(7200));
}

// A job that stops in its first step. Whether it hangs depends on its other agents, too: the alerts compare them.
TEST_F(HangJudgeTest, TheTimeWithoutAChangeCountsFromTheFirstChangeOn) {
  EXPECT_EQ(judge_.job_unchanged(), std::nullopt);
  Run(seconds(20), {});
  EXPECT_EQ(judge_.job_unchanged(), std::nullopt);
  Run(seconds(10), {0, 1});
  Run(seconds(10), {1});
  EXPECT_EQ(judge_.job_unchanged(), seconds(0));
  Run(seconds(200), {});
  EXPECT_EQ(judge_.job_unchanged(), seconds(200));
  EXPECT_FALSE(judge_.job_hangs());
  for (const uint32_t rank : {0, 1, 2}) End(rank, "exit_0", false);
  Run(seconds(10), {});
  EXPECT_EQ(judge_.job_unchanged(), std::nullopt) << "nothing runs";
}

// For example one whose data is loaded first, or that records once an epoch.
TEST_F(HangJudgeTest, AJobThatBeginsSlowlyHasThreeTimesAsLongForItsNextChanges) {
  Run(seconds(290), {});
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(900));
  settings_.hang_after = seconds(100);
  Look();
  EXPECT_EQ(judge_.hang_after(), seconds(100));
  settings_.hang_after.reset();
  Run(seconds(20), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(60)) << "its rhythm is known";
}

TEST_F(HangJudgeTest, TheSettingDecides) {
  settings_.hang_after = seconds(200);
  Run(seconds(100), {0, 1, 2});
  Run(seconds(190), {0});
  EXPECT_THAT(Hung(), IsEmpty());
  Run(seconds(10), {0});
  EXPECT_THAT(Hung(), ElementsAre(1, 2));
  settings_.hang_after = seconds(300);
  Run(seconds(10), {0});
  EXPECT_THAT(Hung(), IsEmpty()) << "a longer one is for those that hang, too";
  Run(seconds(90), {0});
  EXPECT_THAT(Hung(), ElementsAre(1, 2));
  settings_.hang_after = seconds(0);
  Run(seconds(1000), {});
  EXPECT_THAT(Hung(), IsEmpty());
  EXPECT_FALSE(judge_.job_hangs());
  EXPECT_EQ(judge_.hang_after(), seconds(0));
  settings_.hang_after = seconds(1);
  Look();
  EXPECT_EQ(judge_.hang_after(), seconds(30)) << "three collections";
}

// Pushes may be rare.
TEST_F(HangJudgeTest, HowOftenIsCollectedDecidesAndNotHowOftenIsPushed) {
  settings_ = {.interval = seconds(120), .hang_after = seconds(5)};
  const auto run = [&](int time, const Ranks& changing) {
    for (int second = 0; second < time; ++second) {
      now += seconds(1);
      Change(changing);
      Look();
    }
  };
  run(30, {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(5));
  run(4, {0, 2});
  EXPECT_THAT(Hung(), IsEmpty());
  run(1, {0, 2});
  EXPECT_THAT(Hung(), ElementsAre(1));
}

// The agent was stopped, or the machine was suspended: its workers may have changed in that time.
TEST_F(HangJudgeTest, TimeWithoutCollectionsDoesNotCount) {
  Run(seconds(100), {0, 1, 2});
  now += seconds(100'000);
  Look();
  EXPECT_FALSE(judge_.job_hangs());
  Run(seconds(10), {0, 1, 2});
  EXPECT_EQ(judge_.hang_after(), seconds(90)) << "three times the pause of 30 s that was seen";
}

TEST_F(HangJudgeTest, ASuccessorIsJudgedByItself) {
  Run(seconds(100), {0, 1, 2});
  End(1, "SIGKILL", true);
  Run(seconds(100), {0, 2});
  EXPECT_EQ(processes[1].verdict, HangVerdict::kEnded);
  Start(1);
  Run(seconds(10), {0, 2});
  EXPECT_EQ(processes[1].verdict, HangVerdict::kNotJudged);
  Run(seconds(100), {0, 2});
  EXPECT_THAT(Hung(), IsEmpty());
  EXPECT_EQ(judge_.hang_after(), seconds(60)) << "the time without a process is no pause";
}

// In many jobs only rank 0 records values after the start.
TEST_F(HangJudgeTest, WhatARankRecordsWhileItStartsIsOneChange) {
  for (int second = 0; second < 9; ++second) {
    now += seconds(1);
    Change({0, 1});
    Look();
  }
  Run(seconds(200), {0});
  EXPECT_THAT(Hung(), IsEmpty());
  EXPECT_EQ(processes[1].judged_changes, 1U);
}

// A restarted agent finds processes that do nothing at first.
TEST_F(HangJudgeTest, ANewAgentJudgesOnlyWhatItHasSeen) {
  HangJudge fresh;
  for (Process& process : processes) process.changes = 0;
  for (int i = 0; i < 100; ++i, now += seconds(10)) fresh.Look(processes, now, settings_);
  EXPECT_FALSE(fresh.job_hangs());
  EXPECT_EQ(processes[0].verdict, HangVerdict::kNotJudged);
}

TEST_F(HangJudgeTest, ANewAgentGoesOnWithTheRhythmOfTheFormerOne) {
  HangJudge fresh;
  fresh.Restore({.longest_pause = seconds(200)}, HealthMemory::TimePoint(seconds(5000)));
  for (Process& process : processes) process.changes = 0;
  fresh.Look(processes, now, settings_);
  EXPECT_EQ(fresh.hang_after(), seconds(600));
}

TEST_F(HangJudgeTest, ANewAgentGoesOnWithTheHangOfAProcess) {
  HangJudge fresh;
  HealthMemory memory;
  for (Process& process : processes) {
    memory.processes.push_back({.id = process.id, .ordinal = process.ordinal, .changes = 9});
    process.changes = 0;
  }
  memory.processes[1].unchanged_since = memory.processes[1].hung_since = HealthMemory::TimePoint(seconds(4900));
  fresh.Restore(memory, HealthMemory::TimePoint(seconds(5000)));
  for (int i = 0; i < 4; ++i, now += seconds(10)) fresh.Look(processes, now, settings_);
  EXPECT_EQ(processes[1].verdict, HangVerdict::kHung) << "before another one has changed";
  EXPECT_EQ(processes[0].verdict, HangVerdict::kRuns);
  ++processes[1].changes;
  fresh.Look(processes, now, settings_);
  EXPECT_EQ(processes[1].verdict, HangVerdict::kRuns);
}

}  // namespace
}  // namespace persia::agent

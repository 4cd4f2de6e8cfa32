// Processes that replace their program, become another rank, are left out by their launcher, or are followed by another
// program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "health/goodput_fixture.h"

namespace persia::agent {
namespace {

class GoodputLivesTest : public GoodputTest {
 protected:
  // At 0 s the machine boots: processes start later.
  void StartReplaced() {
    KnownProcess& old = Start("old", seconds(10));
    old.stretches = {{"init", seconds(11)}, {"forward", seconds(12)}};
    old.steps = {{seconds(12), 0}};
    old.ended = seconds(20);
    old.replaced = seconds(22);
    KnownProcess& next = Start("new", seconds(10));
    next.pid = old.pid;
    next.recorded = old.replaced;
    next.stretches = {{"forward", seconds(25)}};
    next.steps = {{seconds(25), 1}};
  }
  KnownProcess& StartRank(int32_t replica, const std::string& id, seconds at, uint32_t restart_count = 0) {
    KnownProcess& process = Start(id, at);
    process.rank.replica = replica;
    process.stretches = {{"forward", at}};
    restart_counts_[id] = restart_count;
    change_ = [this](Process& read) { read.restart_count = restart_counts_[read.segment_id]; };
    return process;
  }

  std::map<std::string, uint32_t> restart_counts_;
};

TEST_F(GoodputLivesTest, AProcessThatReplacesItsProgramGoesOn) {
  StartReplaced();
  for (const int now : {15, 19, 21, 30, 40}) Look(seconds(now));
  // From 19 on, when its former program was last seen.
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 2 + 6}, {"compute", 7 + 5}}));
  EXPECT_EQ(Rank().restarts, 0U);
  EXPECT_EQ(Rank().redone_steps, 0U);
}

TEST_F(GoodputLivesTest, AProcessMayReplaceItsProgramBeforeTheFirstLook) {
  StartReplaced();
  Look(seconds(30));
  Look(seconds(40));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 2 + 13}, {"compute", 5}}));
  EXPECT_EQ(Rank().restarts, 0U);
}

TEST_F(GoodputLivesTest, AnAgentThatStartsAgainKnowsTheProcessOfANewProgram) {
  StartReplaced();
  Look(seconds(15));
  Look(seconds(19));
  auto accounts = DecodeGoodput(EncodeGoodput(goodput_.accounts(), kClocks), kClocks);
  ASSERT_TRUE(accounts);
  goodput_ = Goodput();
  goodput_.Restore(*accounts);
  Look(seconds(30));
  Look(seconds(40));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 2 + 6}, {"compute", 7 + 5}}));
}

TEST_F(GoodputLivesTest, ANewProgramThatRecordsNothingIsStarting) {
  StartReplaced();
  processes_.pop_back();
  processes_.back().replaced = seconds(35);
  for (const int now : {15, 19, 30}) Look(seconds(now));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 2 + 11}, {"compute", 7}}));
  KnownProcess& child = Start("child", seconds(32));
  child.stretches = {{"forward", seconds(33)}};
  child.steps = {{seconds(33), 1}};
  for (const int now : {34, 40, 50}) Look(seconds(now));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 2 + 15}, {"compute", 7 + 6}})) << "a process that it starts is the rank";
}

TEST_F(GoodputLivesTest, ARankThatIsRenamedGivesItsPlaceToTheTrueOne) {
  for (const auto& [id, at] : {std::pair("one", 1), std::pair("zero", 2), std::pair("two", 3)}) {
    Start(id, seconds(at)).stretches = {{"rendezvous", seconds(at)}, {"forward", seconds(20)}};
  }
  change_ = [this](Process& read) {
    if (seen_ < seconds(10)) return;
    read.rank.replica = read.segment_id == "one" ? 1 : read.segment_id == "two" ? 2 : 0;
  };
  for (const int now : {5, 10, 15, 30, 40}) Look(seconds(now));
  EXPECT_EQ(Sum(goodput_.accounts().at({"trainer", 0}).time), seconds(30 - 1)) << "since its first process";
  EXPECT_EQ(Buckets(1), (Seconds{{"rendezvous", 19}, {"compute", 10}}));
  EXPECT_EQ(Buckets(2), (Seconds{{"rendezvous", 17}, {"compute", 10}}));
  EXPECT_EQ(Rank().restarts, 0U);
}

TEST_F(GoodputLivesTest, ARankWithoutAProcessSinceAllAreRenamedStandsStill) {
  Start("a", seconds(1)).stretches = {{"rendezvous", seconds(1)}};
  Look(seconds(5));
  Look(seconds(10));
  change_ = [](Process& read) { read.rank.replica = 4; };
  for (const int now : {20, 30}) Look(seconds(now));
  EXPECT_EQ(Buckets(), (Seconds{{"rendezvous", 4}}));
  EXPECT_EQ(Buckets(4), (Seconds{{"rendezvous", 19}}));
  change_ = {};
  for (const int now : {40, 50}) Look(seconds(now));
  EXPECT_EQ(Sum(Rank().time), seconds(39)) << "its process came back: the rank goes on from its last time";
}

TEST_F(GoodputLivesTest, AProcessThatTakesThePlaceOfADeadRankRedoesOnlyWhatFollows) {
  KnownProcess& a = StartRank(0, "a", seconds(1));
  a.steps = {{seconds(2), 0}, {seconds(9), 7}};
  a.ended = seconds(15);
  KnownProcess& spare = StartRank(5, "spare", seconds(1));
  spare.steps = {{seconds(2), 0}, {seconds(8), 4}, {seconds(35), 5}, {seconds(45), 6}, {seconds(55), 9}};
  for (const int now : {10, 20}) Look(seconds(now));
  spare.rank.replica = 0;
  for (const int now : {30, 40, 50, 60, 70}) Look(seconds(now));
  EXPECT_EQ(Rank().restarts, 1U);
  EXPECT_EQ(Rank().redone_steps, 3U);
  EXPECT_EQ(Sum(Rank().time), seconds(60 - 1));
}

TEST_F(GoodputLivesTest, ARankThatWasLeftOutGoesOnFromItsReturn) {
  StartRank(0, "a", seconds(1)).ended = seconds(5);
  KnownProcess& other = StartRank(1, "other", seconds(1));
  other.ended = seconds(12);
  Look(seconds(10));
  EXPECT_EQ(Buckets(), (Seconds{{"down", 9}}));
  StartRank(1, "other2", seconds(14), 1).ended = seconds(25);
  Look(seconds(20));
  Look(seconds(30));  // the others die again
  auto accounts = DecodeGoodput(EncodeGoodput(goodput_.accounts(), kClocks), kClocks);
  ASSERT_TRUE(accounts);
  goodput_.Restore(*accounts);
  Look(seconds(40));
  EXPECT_EQ(Buckets(), (Seconds{{"down", 13}}));
  StartRank(0, "a2", seconds(45), 2).stretches = {{"forward", seconds(47)}};
  Look(seconds(50));
  Look(seconds(60));
  EXPECT_EQ(Buckets(), (Seconds{{"down", 13}, {"starting", 2}, {"compute", 3}}));
  EXPECT_EQ(Rank().restarts, 1U);
  EXPECT_EQ(Rank().repair, seconds(13 + 2));
}

TEST_F(GoodputLivesTest, TheStartOfAProcessThatHasExitedUnseenCounts) {
  KnownProcess& a = Start("a", seconds(1));
  a.stretches = {{"forward", seconds(5)}, {"other", seconds(6)}};
  a.ended = seconds(6) + milliseconds(30);
  a.exit = "exit_0";
  Look(seconds(10));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 4}, {"compute", 1}, {"other", 0.03}}));
}

TEST_F(GoodputLivesTest, AProgramAfterOneThatFinishedRedoesNothing) {
  for (const auto& [id, at] : {std::pair("train", 1), std::pair("again", 20)}) {
    KnownProcess& process = Start(id, seconds(at));
    process.stretches = {{"forward", seconds(at + 1)}};
    process.steps = {{seconds(at + 1), 0}, {seconds(at + 3), 5}};
    process.ended = seconds(at + 5);
    process.exit = "exit_0";
  }
  KnownProcess& eval = Start("eval", seconds(30));
  eval.stretches = {{"eval", seconds(31)}};
  eval.ended = seconds(35);
  for (int now = 1; now <= 36; ++now) Look(seconds(now));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 3}, {"compute", 4 + 4 + 3}, {"down", 2}}));
  EXPECT_EQ(Rank().redone_steps, 0U);
  EXPECT_EQ(Rank().restarts, 0U);
  EXPECT_EQ(goodput_.report()->ranks[0].step, 5) << "the highest step of all programs";
  KnownProcess& restarted = Start("eval2", seconds(37));
  restarted.stretches = {{"eval", seconds(37)}};
  restarted.steps = {{seconds(37), 3}};
  Look(seconds(38));
  EXPECT_EQ(Rank().redone_steps, 0U) << "of the program that failed, which had no steps";
  EXPECT_EQ(Rank().restarts, 1U);
}

TEST_F(GoodputLivesTest, ARebootWithAWrongWallClockRefusesNoProcess) {
  Start("a", seconds(1000)).stretches = {{"forward", seconds(1000)}};
  Look(seconds(1010));
  Look(seconds(1020));
  const std::string saved = EncodeGoodput(goodput_.accounts(), kClocks);
  const auto accounts = DecodeGoodput(saved, {.boot_id = "next", .zero = kClocks.zero - seconds(100'000)});
  ASSERT_TRUE(accounts);
  goodput_.Restore(*accounts);
  processes_.clear();
  Start("b", seconds(30)).stretches = {{"forward", seconds(30)}};
  seen_ = seconds(0);
  Look(seconds(40));
  Look(seconds(50));
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 20}, {"down", 30}}));
}

TEST_F(GoodputLivesTest, NoMomentOfTheStateIsLaterThanNow) {
  Start("a", seconds(1)).stretches = {{"forward", seconds(1)}};
  Look(seconds(1000));
  const std::string saved = EncodeGoodput(goodput_.accounts(), kClocks);
  const auto accounts = DecodeGoodput(saved, {.boot_id = kClocks.boot_id, .zero = kClocks.zero, .now = seconds(500)});
  ASSERT_TRUE(accounts);
  EXPECT_LE(accounts->begin()->second.until, seconds(500));
}

TEST_F(GoodputLivesTest, ClocksThatAreOverwrittenCountNoTimeThatDidNotPass) {
  Start("a", seconds(10)).stretches = {{"forward", seconds(12)}};
  Look(seconds(20));
  change_ = [](Process& read) {
    read.clocks_until = Nanoseconds(int64_t{1} << 61);
    read.phases = {{"forward", Nanoseconds(int64_t{1} << 61)}};
  };
  Look(seconds(30));
  Look(seconds(40));
  EXPECT_EQ(Sum(Rank().time), seconds(30));
}

}  // namespace
}  // namespace persia::agent

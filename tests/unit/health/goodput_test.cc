#include "health/goodput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "health/goodput_fixture.h"

namespace persia::agent {
namespace {

TEST_F(GoodputTest, EachPhaseHasItsBucketUntilTheLookBefore) {
  Start("a", seconds(10)).stretches = {{"init", seconds(12)},    {"rendezvous", seconds(13)}, {"data", seconds(15)},
                                       {"forward", seconds(18)}, {"sync", seconds(22)},       {"checkpoint", seconds(27)},
                                       {"other", seconds(33)}};
  Look(seconds(11));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 1}}));
  Look(seconds(40));
  Look(seconds(50));
  EXPECT_EQ(
      Buckets(),
      (Seconds{{"starting", 3}, {"rendezvous", 2}, {"data", 3}, {"compute", 4}, {"sync", 5}, {"checkpoint", 6}, {"other", 7}}));
  EXPECT_DOUBLE_EQ(*goodput_.report()->Ratio(), 4.0 / 30) << "the time outside of all phases may be anything";
}

TEST_F(GoodputTest, AProcessThatMarksNothingIsUnmarkedOnceItChanges) {
  Start("a", seconds(0));
  Look(seconds(10));
  change_ = [](Process& process) { process.has_changed = true; };
  Look(seconds(20));
  Look(seconds(30));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 10}, {"unmarked", 20}})) << "it has changed since the first look";
  EXPECT_EQ(goodput_.report()->Ratio(), std::nullopt);
}

TEST_F(GoodputTest, AShortProcessThatHasCountedAtTheFirstLookIsNotStarting) {
  step_ = seconds(60);
  Start("a", seconds(0)).ended = seconds(3);
  change_ = [](Process& process) {
    process.has_changed = true;
    process.recorded = seconds(1);
  };
  Look(seconds(2));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 1}, {"unmarked", 1}}));
}

TEST_F(GoodputTest, TheTimeOfAProcessThatMarksNothingGoesOnInSteps) {
  step_ = seconds(60);
  Start("a", seconds(0)).ended = seconds(99);
  for (int i = 1; i <= 5; ++i) Look(seconds(10 * i));
  EXPECT_EQ(Buckets(), Seconds());
  Look(seconds(60));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 60}}));
  Look(seconds(70));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 60}}));
  change_ = [](Process& process) { process.has_changed = true; };
  Look(seconds(80));
  Look(seconds(90));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 70}, {"unmarked", 10}})) << "it had not changed at 70";
  Look(seconds(100));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 70}, {"unmarked", 20}, {"down", 10}})) << "it was alive at 90";
}

TEST_F(GoodputTest, AKilledRankIsDownUntilItsSuccessorStarts) {
  KnownProcess& a = Start("a", seconds(0));
  a.stretches = {{"forward", seconds(0)}};
  a.ended = seconds(25);
  Look(seconds(10));
  Look(seconds(20));
  Look(seconds(30));  // dead; it was last known to live at 20
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 20}, {"down", 10}}));
  EXPECT_EQ(goodput_.report()->MeanRepair(), std::nullopt);
  Start("b", seconds(35)).stretches = {{"forward", seconds(38)}};
  Look(seconds(40));
  Look(seconds(50));
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 22}, {"down", 15}, {"starting", 3}}));
  EXPECT_EQ(Rank().restarts, 1U);
  EXPECT_EQ(goodput_.report()->MeanRepair()->count(), 18);
}

TEST_F(GoodputTest, ARankThatFinishedIsNotCountedUntilTheNextProcess) {
  KnownProcess& a = Start("a", seconds(0));
  a.stretches = {{"forward", seconds(0)}};
  a.ended = seconds(15);
  a.exit = "exit_0";
  Look(seconds(10));
  Look(seconds(20));
  Look(seconds(30));
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 15}}));
  Start("b", seconds(50)).stretches = {{"forward", seconds(50)}};
  Look(seconds(60));
  Look(seconds(70));
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 25}}));
  EXPECT_EQ(Rank().restarts, 0U);
}

TEST_F(GoodputTest, AnEndThatIsToldLaterIsCountedThen) {
  KnownProcess& a = Start("a", seconds(0));
  a.ended = seconds(15);
  change_ = [](Process& process) { process.last_exit.clear(); };
  Look(seconds(10));
  Look(seconds(20));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 10}}));
  const RankAccount untold = Rank();
  Look(seconds(30), {}, {{"a", "exit_1"}});
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 10}, {"down", 20}}));
  goodput_.Restore({{RankId{"trainer", 0}, untold}});
  Look(seconds(40), {}, {{"a", "exit_0"}});  // by an agent that follows: too late
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 10}, {"down", 30}}));
}

TEST_F(GoodputTest, ARankThatTheLauncherLeavesOutIsNotDown) {
  KnownProcess& a = Start("a", seconds(0));
  a.ended = seconds(5);
  KnownProcess& other = Start("b", seconds(0));
  other.rank.replica = 1;
  Look(seconds(10));
  EXPECT_EQ(Buckets(), (Seconds{{"down", 10}}));
  change_ = [](Process& process) { process.restart_count = 1; };
  Look(seconds(20));
  EXPECT_EQ(Buckets(), (Seconds{{"down", 10}}));
}

TEST_F(GoodputTest, TheEndOfTheCommandEndsTheTimeOfDeadRanks) {
  Start("a", seconds(0)).ended = seconds(5);
  Look(seconds(10), seconds(8));
  Look(seconds(20), seconds(8));
  EXPECT_EQ(Buckets(), (Seconds{{"down", 8}}));
}

TEST_F(GoodputTest, BetweenTwoCommandsOfARunNoRankIsDown) {
  FailAfterStep14();
  Look(seconds(20), seconds(12));
  goodput_.Restore(goodput_.accounts());  // the agent of the next command
  KnownProcess& b = Start("b", seconds(100));
  b.stretches = {{"other", seconds(102)}, {"forward", seconds(103)}};
  b.steps = {{seconds(103), 10}};
  Look(seconds(100));
  Look(seconds(110));
  EXPECT_EQ(Buckets().at("down"), 3) << "from 9 to 12";
  EXPECT_EQ(Rank().restarts, 1U);
  EXPECT_EQ(Rank().redone_steps, 1U);
}

TEST_F(GoodputTest, ARankWhoseExitIsNotKnownWhenTheCommandHasEndedIsNotDownAfterIt) {
  change_ = [](Process& process) { process.last_exit.clear(); };
  Start("a", seconds(0)).ended = seconds(5);
  Look(seconds(10), seconds(8));
  goodput_.Restore(goodput_.accounts());
  Look(seconds(20));
  Start("b", seconds(100));
  Look(seconds(100));
  EXPECT_EQ(Buckets(), (Seconds{{"down", 8}}));
}

TEST_F(GoodputTest, AHangHasItsOwnBucket) {
  Start("a", seconds(0)).stretches = {{"sync", seconds(0)}};
  Look(seconds(10));
  Look(seconds(20));
  change_ = [](Process& process) { process.hangs = true; };
  Look(seconds(30));
  EXPECT_EQ(Buckets(), (Seconds{{"sync", 10}, {"hung", 10}}));
}

TEST_F(GoodputTest, StepsUpToTheHighestOneBeforeAreRedone) {
  FailAfterStep14();
  KnownProcess& b = Start("b", seconds(10));
  b.stretches = {{"other", seconds(12)}, {"forward", seconds(20)}};
  b.steps = {{seconds(20), 10}, {seconds(25), 11}, {seconds(40), 14}, {seconds(45), 15}, {seconds(55), 16}};
  Look(seconds(20));
  EXPECT_EQ(Rank().redone_steps, 1U);
  Look(seconds(30));
  EXPECT_EQ(Rank().redone_steps, 2U);
  Look(seconds(40));
  EXPECT_EQ(Rank().redone_steps, 5U);
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 9}, {"down", 1}, {"starting", 2}, {"redone", 18}}));
  Look(seconds(50));  // from step 14 to step 15: half of the time was redone
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 14}, {"down", 1}, {"starting", 2}, {"redone", 23}}));
  Look(seconds(60));
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 24}, {"down", 1}, {"starting", 2}, {"redone", 23}}));
  EXPECT_EQ(Rank().redone_steps, 5U);
  EXPECT_EQ(goodput_.report()->MeanRepair()->count(), 26);
}

TEST_F(GoodputTest, CountsAreNumbersOnceASuccessorGivesOne) {
  KnownProcess& a = Start("a", seconds(0));
  a.stretches = {{"forward", seconds(0)}};
  a.steps = {{seconds(1), 5}, {seconds(8), 15}};  // from 0 to 14
  a.numbers = false;
  a.ended = seconds(10);
  Look(seconds(9));
  Look(seconds(10));
  EXPECT_EQ(Rank().RedoneSteps(), 0U);
  KnownProcess& b = Start("b", seconds(10));
  b.stretches = {{"other", seconds(12)}, {"forward", seconds(20)}};
  b.steps = {{seconds(20), 10}, {seconds(25), 11}, {seconds(40), 14}, {seconds(45), 15}, {seconds(55), 16}};
  Look(seconds(15));
  EXPECT_EQ(Rank().RedoneSteps(), 0U) << "it prepares";
  KillAgent();
  for (int i = 2; i <= 6; ++i) Look(seconds(10 * i));
  EXPECT_EQ(Rank().RedoneSteps(), 5U);
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 24}, {"down", 1}, {"starting", 2}, {"redone", 23}})) << "as if it had numbers";
}

TEST_F(GoodputTest, WithoutANumberTheRedoneStepsAreUnknownUntilAProcessGivesOne) {
  const auto start = [&](const std::string& id, int at, double counted) -> KnownProcess& {
    KnownProcess& process = Start(id, seconds(at));
    process.stretches = {{"forward", seconds(at)}};
    process.steps = {{seconds(at + 4), 1}, {seconds(at + 5), counted}};
    process.numbers = false;
    process.ended = seconds(at + 10);
    return process;
  };
  start("a", 0, 40);
  start("b", 10, 30);
  for (int at : {1, 6, 10}) Look(seconds(at));
  EXPECT_EQ(Rank().RedoneSteps(), 0U);
  Look(seconds(11));
  EXPECT_EQ(Rank().RedoneSteps(), 0U) << "it prepares";
  Look(seconds(16));
  EXPECT_EQ(Rank().RedoneSteps(), std::nullopt);
  EXPECT_EQ(goodput_.report()->Total().redone_steps, std::nullopt);
  Look(seconds(20));
  KillAgent();
  KnownProcess& c = start("c", 20, 25);
  c.numbers = true;
  c.steps = {{seconds(21), 20}, {seconds(29), 25}};
  Look(seconds(20));
  EXPECT_EQ(Rank().RedoneSteps(), std::nullopt);
  Look(seconds(29));
  EXPECT_EQ(Rank().RedoneSteps(), 30U + 6) << "b began at 0";
}

TEST_F(GoodputTest, TheRedoneStepsOfAProgramThatFinishedWithoutANumberStayUnknown) {
  for (const int at : {0, 10, 20}) {
    KnownProcess& process = Start("p" + std::to_string(at), seconds(at));
    process.stretches = {{"forward", seconds(at)}};
    process.steps = {{seconds(at + 5), 7}};
    process.numbers = at == 20;
    process.ended = seconds(at + 9);
    if (at == 10) process.exit = "exit_0";
  }
  for (int at = 4; at <= 32; at += 4) Look(seconds(at));
  EXPECT_EQ(Rank().RedoneSteps(), std::nullopt);
  EXPECT_EQ(Rank().redone_steps, 0U);
}

TEST_F(GoodputTest, ProgramsThatCountAndFinishRedoNothing) {
  for (const int at : {0, 10}) {
    KnownProcess& process = Start("p" + std::to_string(at), seconds(at));
    process.stretches = {{"forward", seconds(at)}};
    process.steps = {{seconds(at + 5), 7}};
    process.numbers = false;
    process.ended = seconds(at + 9);
    process.exit = "exit_0";
  }
  for (int at = 4; at <= 24; at += 4) Look(seconds(at));
  EXPECT_EQ(Rank().RedoneSteps(), 0U);
}

TEST_F(GoodputTest, ARestartOfARankWithoutStepsMayRedoSome) {
  const auto start = [&](int at) {
    KnownProcess& process = Start("p" + std::to_string(at), seconds(at));
    process.stretches = {{"init", seconds(at)}, {"other", seconds(at + 1)}, {"forward", seconds(at + 3)}};
    process.ended = seconds(at + 9);
    return &process;
  };
  start(0);
  Look(seconds(8));
  EXPECT_EQ(Rank().RedoneSteps(), 0U);
  start(10);
  Look(seconds(12));
  EXPECT_EQ(Rank().RedoneSteps(), 0U);
  Look(seconds(16));
  Look(seconds(18));
  EXPECT_EQ(Rank().RedoneSteps(), std::nullopt);
  KillAgent();
  KnownProcess* counts = start(20);
  counts->steps = {{seconds(25), 1}};
  counts->numbers = false;
  Look(seconds(26));
  EXPECT_EQ(Rank().RedoneSteps(), 0U) << "the program counts: those before had done none";
}

TEST_F(GoodputTest, AProcessThatGoesOnFromAStepMayRedoThoseThatAnotherDidNotCount) {
  KnownProcess& a = Start("a", seconds(0));
  a.stretches = {{"forward", seconds(0)}};
  a.ended = seconds(9);
  KnownProcess& b = Start("b", seconds(10));
  b.stretches = {{"forward", seconds(10)}};
  b.steps = {{seconds(11), 20}};
  for (const int at : {4, 8, 12, 16}) Look(seconds(at));
  EXPECT_EQ(Rank().RedoneSteps(), std::nullopt);
}

TEST_F(GoodputTest, UntilTheFirstStepASuccessorIsStarting) {
  KnownProcess& a = Start("a", seconds(0));
  a.stretches = {{"forward", seconds(0)}};
  a.steps = {{seconds(1), 5}};
  a.ended = seconds(10);
  Look(seconds(10));
  Start("b", seconds(10)).stretches = {
      {"other", seconds(11)}, {"rendezvous", seconds(12)}, {"data", seconds(14)}, {"checkpoint", seconds(17)}};
  Look(seconds(20));
  Look(seconds(30));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 5}, {"rendezvous", 2}, {"checkpoint", 3}, {"down", 10}}));
}

TEST_F(GoodputTest, AnEndedProcessThatIsListedAgainCountsOnce) {
  KnownProcess& a = Start("a", seconds(0));
  a.stretches = {{"forward", seconds(0)}};
  a.steps = {{seconds(1), 5}};
  a.ended = seconds(5);
  for (int i = 1; i <= 3; ++i) {
    Look(seconds(10 * i));
    folded_.clear();
  }
  KnownProcess& b = Start("b", seconds(30));
  b.stretches = {{"forward", seconds(30)}};
  b.steps = {{seconds(30), 6}};
  Look(seconds(40));
  Look(seconds(50));
  EXPECT_EQ(Rank().redone_steps, 0U);
  EXPECT_EQ(Rank().restarts, 1U);
  EXPECT_EQ(Buckets(), (Seconds{{"down", 30}, {"compute", 10}}));
}

TEST_F(GoodputTest, ProcessesBesideTheRankDoNotCount) {
  KnownProcess& a = Start("a", seconds(0));
  a.stretches = {{"forward", seconds(0)}};
  a.ended = seconds(15);
  a.exit = "exit_0";
  Start("spawned", seconds(5)).stretches = {{"data", seconds(5)}};
  KnownProcess& forked = Start("forked", seconds(12));
  forked.ended = seconds(35);
  forked.exit = "unknown";
  change_ = [](Process& process) { process.forked = process.segment_id == "forked"; };
  for (int i = 1; i <= 5; ++i) Look(seconds(10 * i));
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 15}}));
}

TEST_F(GoodputTest, ALauncherIsNoRank) {
  Start("launcher", seconds(0)).rank = {std::string(kLauncherRole), 0};
  Start("a", seconds(2)).stretches = {{"forward", seconds(4)}};
  change_ = [](Process& process) { process.has_changed = true; };
  for (int i = 1; i <= 4; ++i) Look(seconds(10 * i));
  ASSERT_EQ(goodput_.report()->ranks.size(), 1U);
  EXPECT_EQ(goodput_.report()->ranks[0].rank, (RankId{"trainer", 0}));
}

TEST_F(GoodputTest, AProcessThatMarksPhasesTakesThePlaceOfALauncher) {
  Start("launcher", seconds(0));
  KnownProcess& a = Start("a", seconds(2));
  a.stretches = {{"forward", seconds(4)}};
  a.ended = seconds(25);
  for (int i = 1; i <= 4; ++i) Look(seconds(10 * i));
  // Until it was found, the launcher was the rank.
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 10}, {"starting", 10}, {"down", 20}}));
  EXPECT_EQ(Rank().restarts, 0U);
  Start("b", seconds(40)).stretches = {{"forward", seconds(45)}};
  Look(seconds(50));
  Look(seconds(60));
  EXPECT_EQ(Rank().restarts, 1U);
  EXPECT_EQ(Sum(Rank().time), seconds(50));
}

TEST_F(GoodputTest, SuccessorsThatLivedBetweenTwoLooksAreAllCounted) {
  Look(seconds(1));
  for (int i = 0; i < 4; ++i) {
    KnownProcess& process = Start("p" + std::to_string(i), seconds(10 * i));
    process.stretches = {{"forward", seconds(10 * i)}};
    process.steps = {{seconds(10 * i), 3}, {seconds(10 * i + 2), 4}};
    if (i < 3) process.ended = seconds(10 * i + 5);
  }
  processes_.reverse();  // they are listed in any order
  Look(seconds(40));
  EXPECT_EQ(Rank().redone_steps, 6U);
  EXPECT_EQ(Rank().restarts, 3U);
  Look(seconds(50));
  EXPECT_EQ(Sum(Rank().time), seconds(40));
}

TEST_F(GoodputTest, AHelperDoesNotFollowARankThatTookThePlaceOfALauncherAndDied) {
  Start("launcher", seconds(0));
  KnownProcess& a = Start("a", seconds(5));
  a.steps = {{seconds(51), 0}};  // but no phases
  a.ended = seconds(54);
  Start("helper", seconds(10));
  for (int i = 1; i <= 11; ++i) Look(seconds(5 * i));
  EXPECT_EQ(Rank().restarts, 0U);
  Start("b", seconds(57));
  Look(seconds(60));
  EXPECT_EQ(Rank().restarts, 1U);
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 55 + 3}, {"down", 2}}));
}

TEST_F(GoodputTest, ASlowExitAfterThePlaceOfALauncherCountsPhasesOnce) {
  step_ = seconds(60);
  Start("launcher", seconds(0));
  Look(seconds(5));
  KnownProcess& a = Start("a", seconds(12));
  a.ended = seconds(18);
  a.exit = "exit_0";
  change_ = [](Process& read) {  // its exit has stopped the clocks at 15 s
    if (read.segment_id == "a") read.phases = {{"forward", seconds(3)}};
    if (read.segment_id == "a") read.last_mark = seconds(15);
  };
  Look(seconds(16));
  Look(seconds(19));
  EXPECT_EQ(Buckets(), (Seconds{{"starting", 12}, {"compute", 3}}));
}

TEST_F(GoodputTest, AHelperDoesNotFollowASuccessorThatWasReadLate) {
  step_ = seconds(60);
  KnownProcess& a = Start("a", seconds(0));
  a.stretches = {{"forward", seconds(0)}};
  a.ended = seconds(10);
  Look(seconds(10));
  goodput_.Look({}, {}, {}, {.now = seconds(20)});
  KnownProcess& b = Start("b", seconds(14));
  b.ended = seconds(22);
  Start("helper", seconds(15));
  Look(seconds(21));
  auto accounts = DecodeGoodput(EncodeGoodput(goodput_.accounts(), kClocks), {.boot_id = kClocks.boot_id, .now = seconds(21)});
  ASSERT_TRUE(accounts);
  goodput_ = Goodput();  // another agent, which has not seen b alive
  goodput_.Restore(*std::move(accounts));
  Look(seconds(25));
  EXPECT_EQ(Rank().restarts, 1U);
  EXPECT_EQ(Rank().life.segment_id, "b");
}

// Their segments were refused, for want of descriptors for example, while the agent counted the rank as down.
TEST_F(GoodputTest, SuccessorsThatCouldNotBeReadForAWhileAreAllCounted) {
  FailAfterStep14();
  goodput_.Look({}, {}, {}, {.now = seconds(20)});
  KnownProcess& b = Start("b", seconds(11));
  b.stretches = {{"forward", seconds(11)}};
  b.steps = {{seconds(11), 10}, {seconds(12), 12}};
  b.ended = seconds(13);
  KnownProcess& c = Start("c", seconds(14));
  c.stretches = {{"forward", seconds(14)}};
  c.steps = {{seconds(14), 10}, {seconds(18), 15}};
  Look(seconds(21));
  EXPECT_EQ(Rank().redone_steps, 3U + 5U);
  EXPECT_EQ(Rank().restarts, 2U);
  Look(seconds(30));
  EXPECT_EQ(Sum(Rank().time), seconds(21));
}

TEST_F(GoodputTest, AfterARebootTheTimeInBetweenIsDown) {
  Start("a", seconds(1000)).stretches = {{"forward", seconds(1000)}};
  Look(seconds(1010));
  Look(seconds(1020));
  const std::string saved = EncodeGoodput(goodput_.accounts(), kClocks);
  // The machine booted 2000 s later, by the wall clock.
  const auto accounts = DecodeGoodput(saved, {.boot_id = "next", .zero = kClocks.zero + seconds(2000)});
  ASSERT_TRUE(accounts);
  goodput_.Restore(*accounts);
  processes_.clear();
  Start("b", seconds(30)).stretches = {{"forward", seconds(30)}};
  seen_ = seconds(0);
  Look(seconds(40));
  Look(seconds(50));
  EXPECT_EQ(Buckets(), (Seconds{{"compute", 20}, {"down", 1020}}));
  EXPECT_EQ(Rank().restarts, 1U);
}

TEST_F(GoodputTest, TheStateKeepsAllOfIt) {
  KnownProcess& a = Start("a", seconds(0));
  a.stretches = {{"forward", seconds(1)}, {"data", seconds(3)}};
  a.steps = {{seconds(1), 5}};
  a.ended = seconds(5);
  Start("b", seconds(6)).stretches = {{"sync", seconds(7)}};
  Look(seconds(10));
  const std::string saved = EncodeGoodput(goodput_.accounts(), kClocks);
  const auto read = DecodeGoodput(saved, kClocks);
  ASSERT_TRUE(read);
  EXPECT_EQ(EncodeGoodput(*read, kClocks), saved);
  for (size_t size = 0; size < saved.size(); ++size) {
    EXPECT_FALSE(DecodeGoodput(std::string_view(saved).substr(0, size), kClocks)) << size;
  }
  EXPECT_EQ(DecodeGoodput(saved + "x", kClocks), std::nullopt);
}

TEST_F(GoodputTest, AStateThatCannotBeIsRefused) {
  Start("a", seconds(0));
  Look(seconds(5));
  const auto is_read = [&](auto change) {
    RankAccounts accounts = goodput_.accounts();
    change(accounts.begin()->second);
    return DecodeGoodput(EncodeGoodput(accounts, kClocks), kClocks).has_value();
  };
  EXPECT_TRUE(is_read([](RankAccount&) {}));
  EXPECT_FALSE(is_read([](RankAccount& account) { account.life.ending = static_cast<RankAccount::Ending>(5); }));
  EXPECT_FALSE(is_read([](RankAccount& account) { account.reached = -1; }));
  EXPECT_FALSE(is_read([](RankAccount& account) { account.life.counted = -1; }));
}

}  // namespace
}  // namespace persia::agent

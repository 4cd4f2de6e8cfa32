#include "health/straggler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "health/phrases.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::DoubleNear;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Ranks whose steps are as long as that of the slowest; a Look after each interval of ten steps.
class StragglerTest : public ::testing::Test {
 protected:
  static constexpr milliseconds kInterval{1000};
  static constexpr double kStepsOfInterval = 10;

  void Add(uint32_t rank, const std::string& role = "trainer") {
    Process process;
    process.identity = {"dlrm", {{"instance", "rep_" + std::to_string(rank)}, {"role", role}}};
    process.alive = true;
    process.id.pid = 100 + rank;
    process.phase = "forward";
    process.step = 0;
    process.phase_seconds = {{"data", 0}, {"forward", 0}, {"backward", 0}, {"sync", 0}};
    processes_.push_back(std::move(process));
  }
  void AddRanks(uint32_t count) {
    for (uint32_t rank = 0; rank < count; ++rank) Add(rank);
  }
  // A delay, in seconds of each step.
  void Slow(uint32_t rank, const std::string& phase, double seconds) { delays_[rank][phase] = seconds; }
  void Train(int intervals) {
    for (int i = 0; i < intervals; ++i) {
      for (int step = 0; step < static_cast<int>(kStepsOfInterval); ++step) Step();
      Look();
    }
  }
  void Step() {
    std::map<std::string, double> longest;  // by role
    std::vector<double> busy;
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      double sum = 0;
      for (const auto& [phase, usual] : usual_) {
        std::normal_distribution<double> noise;
        const double spent = std::max(0.0, usual * (1 + noise_ * noise(random_))) + delays_[static_cast<uint32_t>(rank)][phase];
        processes_[rank].phase_seconds[phase] += spent;
        sum += spent;
      }
      busy.push_back(sum);
      double& of_role = longest[LabelValueOf(processes_[rank].identity, "role")];
      of_role = std::max(of_role, sum);
    }
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      const double step = longest[LabelValueOf(processes_[rank].identity, "role")] + 0.002;
      processes_[rank].phase_seconds["sync"] += step - busy[rank];
      processes_[rank].step = *processes_[rank].step + 1;
    }
    now_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(kInterval / kStepsOfInterval);
  }
  void Look() { judge_.Look(processes_, now_, kInterval); }
  [[nodiscard]] std::string Verdict() const {
    std::string text;
    for (const StragglerJudge::Verdict& verdict : judge_.verdicts()) {
      text += (text.empty() ? "" : ", ") + RankName(verdict.identity) + " " + verdict.phase;
    }
    return text;
  }

  std::mt19937_64 random_{7};
  double noise_ = 0.02;
  std::map<std::string, double> usual_ = {{"data", 0.02}, {"forward", 0.03}, {"backward", 0.048}};
  std::map<uint32_t, std::map<std::string, double>> delays_;
  std::vector<Process> processes_;
  std::chrono::steady_clock::time_point now_{std::chrono::seconds(1000)};
  StragglerJudge judge_;
};

TEST_F(StragglerTest, TheRankThatTheOthersWaitForIsNamedWithItsPhaseAndTheLoss) {
  AddRanks(4);
  Slow(2, "data", 0.05);
  Train(18);
  ASSERT_THAT(judge_.verdicts(), SizeIs(1));
  EXPECT_EQ(Verdict(), "trainer rep_2 data");
  const StragglerJudge::Verdict& verdict = judge_.verdicts()[0];
  EXPECT_THAT(verdict.seconds_per_step, DoubleNear(0.1 * 0.05 / 0.15, 0.005));  // the clock of the test passes 0.1 s a step
  EXPECT_THAT(verdict.step_seconds, DoubleNear(0.1, 1e-6));
  EXPECT_EQ(verdict.waiting, 3U);
}

TEST_F(StragglerTest, WhetherRanksAreEquallyFastIsKnownAfterAsManyStepsAsAVerdictNeeds) {
  AddRanks(4);
  Look();
  EXPECT_EQ(judge_.judged()[0].measured, 0U);
  EXPECT_EQ(judge_.judged()[0].needed, 48U) << "at least";
  Train(4);
  ASSERT_THAT(judge_.judged(), SizeIs(1));
  EXPECT_EQ(judge_.judged()[0].role, "trainer");
  EXPECT_EQ(judge_.judged()[0].ranks, 4U);
  EXPECT_EQ(judge_.judged()[0].measured, 40U);
  EXPECT_EQ(judge_.judged()[0].needed, 120U) << "of chunks of ten steps";
  Train(20);
  EXPECT_EQ(judge_.judged()[0].measured, 120U);
  EXPECT_FALSE(judge_.judged()[0].is_undecided);
}

TEST_F(StragglerTest, AStragglerFromTheFirstStepOnHasAVerdictOnceAllIsMeasured) {
  AddRanks(4);
  Slow(2, "data", 0.05);
  Look();
  Train(static_cast<int>(StragglerJudge::kNeeded) - 1);
  EXPECT_THAT(judge_.verdicts(), IsEmpty());
  EXPECT_TRUE(judge_.judged()[0].is_undecided);
  Train(1);
  EXPECT_THAT(judge_.verdicts(), SizeIs(1));
  EXPECT_FALSE(judge_.judged()[0].is_undecided) << "decided";
}

TEST_F(StragglerTest, EachPhaseIsFoundAtATenthOfAStep) {
  for (const char* phase : {"data", "forward", "backward"}) {
    SCOPED_TRACE(phase);
    judge_ = {};
    processes_.clear();
    delays_.clear();
    AddRanks(4);
    Slow(1, phase, 0.01);
    Train(18);
    EXPECT_EQ(Verdict(), std::string("trainer rep_1 ") + phase);
  }
}

TEST_F(StragglerTest, APhaseThatOnlyTheStragglerHasIsItsPhase) {
  AddRanks(3);
  Slow(0, "data", 0);
  processes_[0].phase_seconds["checkpoint"] = 0;
  for (int i = 0; i < 18; ++i) {
    for (int step = 0; step < 10; ++step) {
      processes_[0].phase_seconds["checkpoint"] += 0.04;
      for (size_t rank = 1; rank < 3; ++rank) processes_[rank].phase_seconds["sync"] += 0.04;
      Step();
    }
    Look();
  }
  EXPECT_EQ(Verdict(), "trainer rep_0 checkpoint");
}

TEST_F(StragglerTest, OfEqualRanksNoneIsNamedWhateverTheNoise) {
  for (const double noise : {0.0, 0.05, 0.3, 1.0}) {
    SCOPED_TRACE(noise);
    judge_ = {};
    processes_.clear();
    noise_ = noise;
    AddRanks(4);
    for (int i = 0; i < 300; ++i) {
      Train(1);
      ASSERT_EQ(Verdict(), "");
    }
  }
}

TEST_F(StragglerTest, ALongStepIsNoEvidence) {
  AddRanks(4);
  Train(10);
  for (int i = 0; i < 10; ++i) {
    Slow(0, "data", 30);
    Step();
    Slow(0, "data", 0);
    Train(9);
    ASSERT_EQ(Verdict(), "");
  }
}

TEST_F(StragglerTest, AVerdictEndsWithItsReasonAndNotBefore) {
  AddRanks(4);
  Slow(3, "backward", 0.03);
  Train(18);
  for (int i = 0; i < 30; ++i) {
    Train(1);
    ASSERT_EQ(Verdict(), "trainer rep_3 backward");
  }
  Slow(3, "backward", 0);
  Train(1);
  EXPECT_EQ(Verdict(), "trainer rep_3 backward");
  Train(4);
  EXPECT_EQ(Verdict(), "");
  Train(20);
  EXPECT_EQ(Verdict(), "");
}

TEST_F(StragglerTest, OfTwoThatAreEquallySlowOneIsNamedAndStays) {
  AddRanks(5);
  Slow(1, "data", 0.05);
  Slow(4, "data", 0.05);
  Train(20);
  const std::string named = Verdict();
  EXPECT_TRUE(named == "trainer rep_1 data" || named == "trainer rep_4 data") << named;
  Train(20);
  EXPECT_EQ(Verdict(), named);
}

// Once in 16 steps: most chunks of ten steps have one, some have none.
TEST_F(StragglerTest, ARankThatIsSlowInSomeOfItsStepsIsNamedByLongChunks) {
  AddRanks(4);
  const auto train = [&](int intervals) {
    for (int i = 0; i < intervals; ++i) {
      for (int step = 0; step < 10; ++step) {
        Slow(1, "data", static_cast<int>(*processes_[1].step) % 16 == 0 ? 0.4 : 0);
        Step();
      }
      Look();
    }
  };
  train(30);
  EXPECT_EQ(Verdict(), "");
  EXPECT_TRUE(judge_.judged()[0].is_undecided) << "they are not equally fast";
  train(100);
  EXPECT_EQ(Verdict(), "trainer rep_1 data");
  EXPECT_FALSE(judge_.judged()[0].is_undecided);
}

TEST_F(StragglerTest, RanksThatMeetInSomeOfTheirStepsAreComparedOverThese) {
  AddRanks(3);
  for (int i = 0; i < 40; ++i) {
    for (int step = 0; step < 10; ++step) {
      for (Process& process : processes_) {
        process.phase_seconds["forward"] += 0.05;
        process.step = *process.step + 1;
      }
      processes_[1].phase_seconds["data"] += 0.05;
      if (static_cast<int>(*processes_[0].step) % 16 == 0) {
        for (const size_t rank : {0, 2}) processes_[rank].phase_seconds["sync"] += 16 * 0.05;
      }
      now_ += kInterval / 10;
    }
    Look();
  }
  EXPECT_EQ(Verdict(), "trainer rep_1 data");
}

TEST_F(StragglerTest, RolesAreJudgedApart) {
  AddRanks(3);
  for (uint32_t rank = 0; rank < 3; ++rank) Add(rank, "server");
  Slow(4, "forward", 0.2);
  Train(18);
  EXPECT_EQ(Verdict(), "server rep_1 forward");
}

TEST_F(StragglerTest, ARankThatStartsAgainIsJudgedAnew) {
  AddRanks(3);
  Slow(1, "data", 0.05);
  Train(18);
  ASSERT_EQ(Verdict(), "trainer rep_1 data");
  processes_[1].id.pid = 555;
  for (auto& [phase, spent] : processes_[1].phase_seconds) spent = 0;
  processes_[1].step = 0;
  Train(1);
  EXPECT_EQ(Verdict(), "");
  Train(static_cast<int>(StragglerJudge::kLeastChunks) + StragglerJudge::kLooksToBegin);
  EXPECT_EQ(Verdict(), "trainer rep_1 data");
}

TEST_F(StragglerTest, StepsThatGoBackOrApartAreNoEvidence) {
  AddRanks(3);
  Slow(1, "data", 0.05);
  Train(18);
  ASSERT_EQ(Verdict(), "trainer rep_1 data");
  for (Process& process : processes_) process.step = 3;  // a checkpoint was loaded
  Train(1);
  EXPECT_EQ(Verdict(), "");
  for (int i = 0; i < 18; ++i) {
    Train(1);
    processes_[2].step = *processes_[2].step + 100;  // it does not meet the others
  }
  EXPECT_EQ(Verdict(), "");
}

TEST_F(StragglerTest, FurtherProcessesAndThoseWithoutStepsOrSyncAreLeftOut) {
  AddRanks(5);
  processes_[2].ordinal = 1;  // a data loader of another rank
  processes_[3].phase_seconds = {{"data", 0}};
  Slow(1, "data", 0.05);
  for (int i = 0; i < 18; ++i) {
    for (int step = 0; step < 10; ++step) {
      Step();
      processes_[3].phase_seconds.erase("sync");
    }
    processes_[4].step.reset();
    Look();
    processes_[4].step = 0;
  }
  ASSERT_EQ(Verdict(), "trainer rep_1 data");
  EXPECT_EQ(judge_.verdicts()[0].waiting, 1U);
}

TEST_F(StragglerTest, ASingleRankIsMeasuredAndNotJudged) {
  AddRanks(1);
  Train(18);
  EXPECT_EQ(Verdict(), "");
  ASSERT_THAT(judge_.ranks(), SizeIs(1));
  EXPECT_THAT(judge_.ranks()[0].seconds_per_step.at("backward"), DoubleNear(0.048, 0.003));
  EXPECT_THAT(judge_.ranks()[0].Sync(), DoubleNear(0.002, 0.001));
}

TEST_F(StragglerTest, ScrapesBetweenLooksDoNotShortenTheWindow) {
  AddRanks(3);
  Train(1);
  Slow(1, "data", 0.05);
  for (int i = 0; i < 40; ++i) {
    Step();
    Look();
  }
  EXPECT_EQ(Verdict(), "");  // four intervals
  EXPECT_FALSE(judge_.EvidenceOf("trainer"));
  Train(12);
  EXPECT_EQ(Verdict(), "trainer rep_1 data");
  EXPECT_GT(judge_.EvidenceOf("trainer")->lead, judge_.EvidenceOf("trainer")->needed);
}

TEST_F(StragglerTest, StepsThatAreLongerThanTheIntervalAreCollectedUntilTheyAreEnough) {
  AddRanks(3);
  Slow(1, "forward", 0.05);
  Look();
  const auto needed = static_cast<int>(StragglerJudge::kStepsOfChunk) * static_cast<int>(StragglerJudge::kLeastChunks);
  for (int i = 0; i < needed; ++i) {
    for (int look = 0; look < 3; ++look) Look();
    Step();
    now_ += 5 * kInterval;
    Look();
    ASSERT_EQ(Verdict(), "");
  }
  for (int i = 0; i < static_cast<int>(StragglerJudge::kStepsOfChunk) * StragglerJudge::kLooksToBegin; ++i) {
    Step();
    now_ += 5 * kInterval;
    Look();
  }
  EXPECT_EQ(Verdict(), "trainer rep_1 forward");
}

TEST_F(StragglerTest, NothingIsLeftOfAJobThatIsGone) {
  AddRanks(3);
  Slow(1, "data", 0.05);
  Train(18);
  for (Process& process : processes_) process.alive = false;
  Look();
  EXPECT_THAT(judge_.verdicts(), IsEmpty());
  EXPECT_THAT(judge_.ranks(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent

#include "health/standstill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

class StandstillTest : public ::testing::Test {
 protected:
  Process& Add(uint32_t rank, const std::string& role = "trainer") {
    Process& process = processes_.emplace_back();
    process.identity = {"dlrm", {{"instance", "rep_" + std::to_string(rank)}, {"role", role}}};
    process.alive = true;
    process.id.pid = 100 + static_cast<uint32_t>(processes_.size());
    process.step = 0;
    return process;
  }
  // A look each second, in each of which these processes make `steps` steps.
  void Run(seconds time, const std::vector<size_t>& moving, double steps = 20) {
    for (seconds left = time; left.count() > 0; --left) {
      now_ += seconds(1);
      for (const size_t at : moving) {
        if (processes_[at].step) *processes_[at].step += steps;
        ++processes_[at].changes;
      }
      judge_.Look(processes_, now_, hang_after_);
    }
  }
  // Of this length each, and the last one is done.
  void Steps(int count, seconds length, const std::vector<size_t>& moving) {
    for (int step = 0; step < count; ++step) {
      Run(length - seconds(1), {});
      Run(seconds(1), moving, 1);
    }
  }
  Texts Said() {
    Texts texts;
    for (const auto& role : judge_.roles()) texts.push_back(role.role + " " + std::to_string(role.unmoved.count()));
    for (const auto& rank : judge_.ranks()) {
      texts.push_back(LabelValueOf(rank.identity, "instance") + " " + std::to_string(rank.unmoved.count()));
    }
    return texts;
  }

  std::vector<Process> processes_;
  StandstillJudge judge_;
  milliseconds hang_after_ = seconds(60);
  StandstillJudge::TimePoint now_{seconds(1000)};
};

TEST_F(StandstillTest, AJobOfShortStepsStandsStillAfterAQuarterOfAMinute) {
  Add(0);
  Add(1);
  Run(seconds(20), {0, 1});
  Run(seconds(14), {});
  EXPECT_THAT(Said(), IsEmpty());
  Run(seconds(1), {});
  EXPECT_THAT(Said(), ElementsAre("trainer 15000"));
  EXPECT_TRUE(judge_.job_stands());
  EXPECT_TRUE(judge_.by_steps());
  Run(seconds(1), {0});
  EXPECT_THAT(Said(), ElementsAre("rep_1 16000")) << "one goes on";
  EXPECT_FALSE(judge_.job_stands());
  Run(seconds(1), {0, 1});
  EXPECT_THAT(Said(), IsEmpty());
}

TEST_F(StandstillTest, LongStepsAreNoStandstill) {
  hang_after_ = seconds(1800);
  Add(0);
  Steps(2, seconds(100), {0});
  Run(seconds(39), {});
  EXPECT_THAT(Said(), IsEmpty()) << "the first steps are not judged";
  Run(seconds(1), {0}, 1);
  Steps(2, seconds(40), {0});
  Run(seconds(79), {});
  EXPECT_THAT(Said(), IsEmpty());
  Run(seconds(1), {});
  EXPECT_THAT(Said(), ElementsAre("trainer 80000"));
}

TEST_F(StandstillTest, APauseIsKnownForAQuarterToHalfAnHour) {
  hang_after_ = milliseconds(0);
  Add(0);
  Run(seconds(20), {0});
  Steps(1, seconds(100), {0});
  Run(seconds(860), {0});
  Run(seconds(30), {});
  EXPECT_THAT(Said(), IsEmpty()) << "in an evaluation as long as the last one";
  Run(seconds(1800), {0});
  Run(seconds(30), {});
  EXPECT_THAT(Said(), ElementsAre("trainer 30000"));
}

TEST_F(StandstillTest, AHangThatIsJudgedEarlierIsAStandstillEarlier) {
  hang_after_ = seconds(2);
  Add(0);
  Run(seconds(20), {0});
  Run(seconds(2), {});
  EXPECT_THAT(Said(), ElementsAre("trainer 2000"));
}

TEST_F(StandstillTest, ARankThatStartsIsNotStandingAndDoesNotHideOneThatIs) {
  Add(0);
  Run(seconds(20), {0});
  Run(seconds(20), {});
  EXPECT_THAT(Said(), ElementsAre("trainer 20000"));
  Add(1);
  Run(seconds(10), {});
  EXPECT_THAT(Said(), ElementsAre("rep_0 30000"));
  Run(seconds(10), {});
  EXPECT_THAT(Said(), ElementsAre("trainer 19000"));
}

TEST_F(StandstillTest, EachRoleByItself) {
  Add(0);
  Add(0, "server");
  Add(0, "launcher");
  Add(0).ordinal = 1;
  Add(9).alive = false;
  Run(seconds(20), {0, 1, 2, 3});
  Run(seconds(20), {1, 2, 3});
  EXPECT_THAT(Said(), ElementsAre("trainer 20000"));
  EXPECT_FALSE(judge_.job_stands());
  Run(seconds(20), {2, 3});
  EXPECT_THAT(Said(), ElementsAre("server 20000", "trainer 40000"));
  EXPECT_TRUE(judge_.job_stands());
}

TEST_F(StandstillTest, WithoutNumbersOfStepsTheChangesOfMetricsCount) {
  Add(0).step.reset();
  Add(1).step.reset();
  Run(seconds(20), {0, 1});
  Run(seconds(20), {0});
  EXPECT_THAT(Said(), IsEmpty()) << "maybe it records nothing any more";
  Run(seconds(15), {});
  EXPECT_THAT(Said(), ElementsAre("trainer 15000"));
  EXPECT_FALSE(judge_.by_steps());
  processes_[0].step = 1;
  Run(seconds(1), {0});
  EXPECT_THAT(Said(), IsEmpty());
  Run(seconds(20), {0});
  Run(seconds(15), {1});
  EXPECT_THAT(Said(), ElementsAre("trainer 15000")) << "steps count more";
}

}  // namespace
}  // namespace persia::agent

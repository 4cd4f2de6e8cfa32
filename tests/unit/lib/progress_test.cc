#include "persia/metrics/progress.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "persia/metrics/phase.h"
#include "persia/metrics/read.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

std::optional<double> Progress(std::string_view name) { return ReadValue("persia_progress", name); }
std::optional<double> Step() { return ReadValue("persia_phase", "step"); }

// Each in a process of its own, since a process has one number of its step.
class ProgressTest : public WorkerTest {
 protected:
  void Check(const std::function<void()>& body) {
    const Outcome outcome = RunBareWorker(body);
    EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  }
};

TEST_F(ProgressTest, CountsWhatTheProgramCounts) {
  Check([] {
    EXPECT_EQ(Progress("steps_total"), std::nullopt) << "a program has what it counts";
    CountSamples(64);
    CountSamples(3);
    CountTokens(1ULL << 40);
    SetTotalSteps(1000);
    SetTotalSteps(500);
    EXPECT_EQ(Progress("samples_total"), 67);
    EXPECT_EQ(Progress("tokens_total"), 0x1p40);
    EXPECT_EQ(Progress("planned_steps"), 500);
    EXPECT_EQ(Progress("steps_total"), std::nullopt);
    EXPECT_EQ(Step(), std::nullopt);
  });
}

TEST_F(ProgressTest, StepsThatAreNotNumberedAreNumberedByTheirCount) {
  Check([] {
    CountSteps();
    CountSteps(4);
    EXPECT_EQ(Progress("steps_total"), 5);
    EXPECT_EQ(Step(), 5);
  });
}

TEST_F(ProgressTest, CountsGoOnFromTheNumberThatTheProgramSets) {
  Check([] {
    SetStep(900);
    EXPECT_EQ(Step(), 900);
    CountSteps();
    EXPECT_EQ(Step(), 901);
    CountSteps(4);
    EXPECT_EQ(Step(), 905);
    SetStep(60);
    SetStep(60);
    for (uint64_t step = 61; step < 70; ++step) {
      CountSteps();
      EXPECT_EQ(Step(), step);
    }
    EXPECT_EQ(Progress("steps_total"), 14);
  });
}

TEST_F(ProgressTest, AProgramThatNumbersEachStepHasItsNumbers) {
  Check([] {
    CountSteps();
    for (uint64_t step = 900; step < 910; ++step) {
      SetStep(step);
      CountSteps();
      EXPECT_EQ(Step(), step);
    }
    CountSteps();
    EXPECT_EQ(Step(), 911) << "two steps were done since 909 was set";
    EXPECT_EQ(Progress("steps_total"), 12);
  });
}

// Only once: the next count tells it from a program that continues from a checkpoint.
TEST_F(ProgressTest, TheFirstOfTheProgramsNumbersIsAheadOnceCounted) {
  Check([] {
    SetStep(7);
    CountSteps();
    EXPECT_EQ(Step(), 8);
    SetStep(8);
    CountSteps();
    EXPECT_EQ(Step(), 8);
  });
}

TEST_F(ProgressTest, AForkedChildCountsItsOwnSteps) {
  Check([] {
    SetStep(100);
    CountSteps(7);
    const pid_t child = fork();
    if (child == 0) {
      CountSteps();
      _exit(Progress("steps_total") == 1 && Step() == 1 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(Step(), 107);
  });
}

}  // namespace
}  // namespace persia::metrics::tests

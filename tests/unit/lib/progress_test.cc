#include "persia/metrics/progress.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Each in a process of its own, since a process numbers its steps or does not.
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

TEST_F(ProgressTest, TheProgramsNumberWins) {
  Check([] {
    CountSteps();
    SetStep(900);
    CountSteps();
    EXPECT_EQ(Progress("steps_total"), 2);
    EXPECT_EQ(Step(), 900);
  });
}

TEST_F(ProgressTest, AForkedChildCountsItsOwnSteps) {
  Check([] {
    CountSteps(7);
    const pid_t child = fork();
    if (child == 0) {
      CountSteps();
      _exit(Progress("steps_total") == 1 && Step() == 1 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(Step(), 7);
  });
}

}  // namespace
}  // namespace persia::metrics::tests

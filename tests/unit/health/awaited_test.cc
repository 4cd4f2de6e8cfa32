#include "health/awaited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "health/phrases.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Without where to look: job_sentences_test.cc has that.
std::string HeadlineOf(const std::string& text) { return text.substr(0, text.find(kLookAt)); }

class AwaitedTest : public ::testing::Test {
 protected:
  void Set(uint32_t rank, const std::string& phase, seconds in_phase, std::optional<double> step = 812,
           const std::string& role = "trainer") {
    Process process;
    process.identity = {"dlrm", {{"instance", "rep_" + std::to_string(rank)}, {"role", role}}};
    process.alive = true;
    process.id.pid = 100 + rank;
    process.phase = phase;
    process.in_phase = in_phase;
    process.step = step;
    process.phase_seconds = {{"data", 1}, {"sync", 1}};
    std::erase_if(processes_, [&](const Process& known) { return known.identity == process.identity; });
    processes_.push_back(std::move(process));
  }
  // 10 s after the last one.
  std::vector<std::string> Look(milliseconds hang_after = seconds(60)) {
    now_ += seconds(10);
    judge_.Look(processes_, now_, {.hang_after = hang_after, .is_stopped = [&](const Process& process) {
                                     return stopped_.contains(process.id.pid);
                                   }});
    std::vector<std::string> texts;
    for (const AwaitedJudge::Verdict& verdict : judge_.verdicts()) texts.push_back(HeadlineOf(SentenceOf(verdict)));
    return texts;
  }

  std::vector<Process> processes_;
  std::set<uint32_t> stopped_;
  AwaitedJudge judge_;
  AwaitedJudge::TimePoint now_{};
};

TEST_F(AwaitedTest, TheRankThatIsNotInSyncIsNamed) {
  for (const uint32_t rank : {0, 1, 2}) Set(rank, "sync", seconds(93));
  Set(3, "data", seconds(94));
  EXPECT_THAT(Look(), ElementsAre("trainer rep_3 hangs in data since step 812, 94 s; 3 others wait in sync"));
  EXPECT_EQ(judge_.verdicts()[0].waited, seconds(93));
  Set(3, "sync", seconds(0));
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(AwaitedTest, NobodyIsNamedBeforeTheTimeOrIfNothingIsJudged) {
  Set(0, "sync", seconds(59));
  Set(1, "data", seconds(1000));
  EXPECT_THAT(Look(), IsEmpty());
  Set(0, "sync", seconds(60));
  EXPECT_THAT(Look(), ElementsAre("trainer rep_1 hangs in data since step 812, 1000 s; 1 other waits in sync"));
  EXPECT_THAT(Look(milliseconds(0)), IsEmpty());
}

TEST_F(AwaitedTest, RanksThatTrainOnAreNotNamedAndDoNotHideTheOneThatStandsStill) {
  for (int at = 60; at < 100; at += 10) {
    for (const uint32_t rank : {0, 1}) Set(rank, "sync", seconds(at), 13);
    Set(2, at % 20 == 0 ? "sync" : "forward", seconds(0), at);
    Set(3, "data", seconds(29), at);
    EXPECT_THAT(Look(), IsEmpty()) << at;
  }
  for (int at = 100; at < 140; at += 10) {
    for (const uint32_t rank : {0, 1}) Set(rank, "sync", seconds(at), 13);
    Set(2, at % 20 == 0 ? "sync" : "forward", seconds(0), at);
    Set(3, "data", seconds(9), at);
    Set(4, "data", seconds(at), 13);
    EXPECT_THAT(Look(),
                ElementsAre("trainer rep_4 hangs in data since step 13, " + std::to_string(at) + " s; 2 others wait in sync"));
  }
}

TEST_F(AwaitedTest, ANewStepInTheSamePhaseIsProgress) {
  for (int at = 30; at < 150; at += 10) {
    Set(0, "sync", seconds(at + 60));
    Set(1, "other", seconds(at), at < 100 ? at : 100);
    // A judge that starts takes the step for as old as the phase.
    EXPECT_THAT(Look(), SizeIs(at == 30 || at >= 130 ? 1 : 0)) << at;
  }
  EXPECT_EQ(judge_.verdicts()[0].in_phase, seconds(40));
  Set(1, "other", seconds(5), 100);
  EXPECT_THAT(Look(), IsEmpty());
  Set(1, "other", seconds(30), 100);
  EXPECT_THAT(Look(), SizeIs(1)) << "the phase was entered again";
}

TEST_F(AwaitedTest, ARankThatIsReplacedWhileItWaitsEndsNoHang) {
  for (const uint32_t rank : {0, 1}) Set(rank, "sync", seconds(93));
  Set(2, "data", seconds(94));
  EXPECT_THAT(Look(), SizeIs(1));
  for (const std::string phase : {"init", "sync"}) {
    Set(1, phase, seconds(3), std::nullopt);
    EXPECT_THAT(Look(), ElementsAre("trainer rep_2 hangs in data since step 812, 94 s; 1 other waits in sync")) << phase;
  }
}

TEST_F(AwaitedTest, ARankOutsideOfItsPhasesAndOneThatDoesNotNumberItsSteps) {
  Set(0, "sync", seconds(100), std::nullopt);
  Set(1, "other", seconds(101), std::nullopt);
  EXPECT_THAT(Look(), ElementsAre("trainer rep_1 hangs outside of its phases, 101 s; 1 other waits in sync"));
}

TEST_F(AwaitedTest, OfRanksThatAllWaitTheStoppedOneIsNamed) {
  for (const uint32_t rank : {0, 1, 2}) Set(rank, "sync", seconds(70));
  EXPECT_THAT(Look(), IsEmpty());
  stopped_ = {101};
  EXPECT_THAT(Look(),
              ElementsAre("trainer rep_1 hangs: stopped by a signal in sync since step 812, 70 s; 2 others wait in sync"));
  EXPECT_EQ(judge_.verdicts()[0].phase, "stopped");
  stopped_ = {100, 101, 102};
  EXPECT_THAT(Look(), IsEmpty());
  stopped_ = {101};
  Set(3, "forward", seconds(0));
  EXPECT_THAT(Look(), SizeIs(1)) << "another one trains on";
}

TEST_F(AwaitedTest, ASignalMayHaveStoppedARankInAnyPhase) {
  Set(0, "sync", seconds(70));
  Set(1, "optimizer", seconds(70));
  stopped_ = {101};
  EXPECT_THAT(Look(),
              ElementsAre("trainer rep_1 hangs: stopped by a signal in optimizer since step 812, 70 s; 1 other waits in sync"));
  EXPECT_EQ(judge_.verdicts()[0].phase, "optimizer");
}

TEST_F(AwaitedTest, OfRanksThatAllWaitTheOneInAnotherStepIsNamed) {
  for (const uint32_t rank : {0, 1, 2}) Set(rank, "sync", seconds(70));
  Set(3, "sync", seconds(70), 813);
  EXPECT_THAT(Look(), ElementsAre("trainer rep_3 hangs in sync since step 813, 70 s; 3 others wait in sync of step 812"));
  processes_.clear();
  Set(4, "sync", seconds(70), 813);
  Set(5, "sync", seconds(70));
  EXPECT_THAT(Look(), ElementsAre("trainer rep_4 hangs in sync since step 813, 70 s; 1 other waits in sync of step 812"));
}

TEST_F(AwaitedTest, OtherRolesFurtherProcessesAndEndedOnesAreNotAwaited) {
  Set(0, "sync", seconds(70));
  Set(1, "sync", seconds(70));
  Set(2, "data", seconds(70), 812, "launcher");
  Set(3, "data", seconds(70));
  processes_.back().ordinal = 1;
  Set(4, "data", seconds(70));
  processes_.back().alive = false;
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(AwaitedTest, OfManyTheLongestAreNamed) {
  Set(0, "sync", seconds(100));
  for (uint32_t rank = 1; rank < 20; ++rank) Set(rank, "data", seconds(100 + rank));
  EXPECT_EQ(Look().size(), AwaitedJudge::kMostNamed);
  EXPECT_THAT(judge_.verdicts()[0].identity.labels[0].second, "rep_19");
}

}  // namespace
}  // namespace persia::agent

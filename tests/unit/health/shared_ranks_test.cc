#include "health/rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/process.h"

namespace persia::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class SharedRanksTest : public ::testing::Test {
 protected:
  Process& Start(uint32_t pid, int32_t replica = 0) {
    return processes_.emplace_back(Process{
        .id = {.pid = pid, .start_ticks = pid}, .rank = {"worker", replica}, .segment_id = std::to_string(pid), .alive = true});
  }
  // It counts one.
  static void Step(Process& process) { process.step = process.step.value_or(0) + 1; }
  std::vector<SharedRanks::Pair> Look() { return shared_.Look(processes_); }
  // Each trains one step, with a look after each.
  std::vector<SharedRanks::Pair> Train(std::vector<size_t> order) {
    std::vector<SharedRanks::Pair> all;
    for (const size_t i : order) {
      Step(processes_[i]);
      for (const auto& pair : Look()) all.push_back(pair);
    }
    return all;
  }

  std::vector<Process> processes_;
  SharedRanks shared_;
};

TEST_F(SharedRanksTest, TwoThatTrainInTurnsAreFoundOnce) {
  Start(7);
  Start(5);
  EXPECT_THAT(Look(), IsEmpty());
  const auto found = Train({0, 1, 0, 1, 0, 1});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(SentenceOf(found[0]),
            "worker rep_0: the processes 5 and 7 train at once under this name; their gauges replace each other, and goodput "
            "follows one of them. Give each rank its own REPLICA_INDEX or RANK (docs/ranks.md)");
}

TEST_F(SharedRanksTest, TwoThatTrainBetweenTwoLooksAreFound) {
  Start(1);
  Start(2);
  EXPECT_THAT(Look(), IsEmpty());
  for (const size_t found : {0, 1, 0}) {
    for (Process& process : processes_) Step(process);
    EXPECT_THAT(Look(), SizeIs(found));
  }
}

TEST_F(SharedRanksTest, ThatOfTheirOwnNumbersCountsToo) {
  Start(1).step = 100;
  Start(2).step = 200;
  EXPECT_THAT(Look(), IsEmpty());
  for (const size_t i : {0, 1, 0}) {
    EXPECT_THAT(shared_.Look(processes_), IsEmpty());
    *processes_[i].step += 1;
  }
  EXPECT_THAT(Look(), SizeIs(1));
}

TEST_F(SharedRanksTest, OthersAreNotFound) {
  Start(1, 0);
  Start(2, 1);  // another rank
  Look();
  EXPECT_THAT(Train({0, 1, 0, 1}), IsEmpty());

  processes_.clear();
  Start(3);
  Start(4);
  Look();
  EXPECT_THAT(Train({0, 0, 0, 1, 1, 1}), IsEmpty()) << "one follows the other";

  processes_.clear();
  Start(5);
  Start(6);
  Look();
  EXPECT_THAT(Train({0, 0}), IsEmpty());
  processes_[0].alive = false;
  EXPECT_THAT(Train({1, 1}), IsEmpty()) << "a successor";

  processes_.clear();
  Start(8);
  Start(9).id.start_ticks = 8;
  processes_[1].id.pid = 8;
  Look();
  EXPECT_THAT(Train({0, 1, 0, 1}), IsEmpty()) << "two segments of one process";
}

}  // namespace
}  // namespace persia::agent

// Histories in which counts were once lost or counted twice, as tests/model printed them.
#include <gtest/gtest.h>

#include <cstdint>

#include "history.h"

namespace persia::agent::model {
namespace {

TEST(HistoriesTest, AStateThatIsReadLateIsNotAddedToWhatItHas) {
  for (const bool elsewhere : {false, true}) {
    EXPECT_EQ(Check({{Do::kAgent, 0, 0},
                     {Do::kStart, 0, 0},
                     {Do::kCount, 0, 5},
                     {Do::kCollect, 0, 0},
                     {Do::kDie, 0, 0},
                     {Do::kCollect, 3, 1},
                     {Do::kState, 0, 0},
                     {Do::kAgent, 0, 0},
                     {Do::kCollect, 0, 0},
                     {Do::kState, 0, 0},
                     {Do::kCollect, 0, 0}},
                    {.state_elsewhere = elsewhere}),
              "");
  }
}

TEST(HistoriesTest, AFoldedFileThatIsLostAndReturnsIsNotReadAgain) {
  EXPECT_EQ(Check({{Do::kAgent, 0, 0},
                   {Do::kStart, 0, 0},
                   {Do::kDisk, 0, 0},
                   {Do::kCollect, 0, 2},
                   {Do::kDisk, 0, 0},
                   {Do::kLose, 0, 0},
                   {Do::kList, 0, 0},
                   {Do::kCollect, 0, 0},
                   {Do::kReturn, 0, 0},
                   {Do::kCollect, 0, 0}},
                  {.state_elsewhere = true}),
            "");
}

TEST(HistoriesTest, WhileAProcessCountsFromTheStateTheEndedOnesOfItsInstanceStay) {
  EXPECT_EQ(Check({{Do::kAgent, 0, 0},
                   {Do::kStart, 0, 0},
                   {Do::kStart, 0, 0},
                   {Do::kCount, 0, 4},
                   {Do::kCount, 1, 4},
                   {Do::kCollect, 0, 0},
                   {Do::kDie, 0, 0},
                   {Do::kCollect, 0, 0},
                   {Do::kBreak, 1, 0},
                   {Do::kKill, 0, 0},
                   {Do::kAgent, 0, 0},
                   {Do::kCollect, 0, 0},
                   {Do::kWait, 3, 0},
                   {Do::kCollect, 0, 0}},
                  {.state_elsewhere = true, .hides_ended = true}),
            "");
}

// Its agent is killed after it has saved the end, so that the next one may hide the instance.
TEST(HistoriesTest, AnAgentIsKilledInTheCollectionThatSavesAnEnd) {
  EXPECT_EQ(Check({{Do::kAgent, 0, 0},
                   {Do::kStart, 1, 0},
                   {Do::kSet, 0, 0},
                   {Do::kCollect, 0, 9},
                   {Do::kDie, 0, 1},
                   {Do::kCollect, 3, 1},
                   {Do::kAgent, 1, 0},
                   {Do::kWait, 3, 0},
                   {Do::kCollect, 0, 0}},
                  {.state_elsewhere = true, .small_checkpoints = true, .hides_ended = true}),
            "");
}

// The next agent shows no fewer ends, although the disk was full when this one counted them.
TEST(HistoriesTest, EndsAreShownWhenTheyAreOnDisk) {
  EXPECT_EQ(Check({{Do::kStart, 0, 0},
                   {Do::kAgent, 0, 0},
                   {Do::kCollect, 0, 2},
                   {Do::kStart, 0, 0},
                   {Do::kCollect, 0, 0},
                   {Do::kDisk, 0, 0},
                   {Do::kLose, 0, 0},
                   {Do::kCollect, 0, 0},
                   {Do::kCollect, 0, 0}},
                  {.state_elsewhere = true, .hides_ended = true, .supervised = true}),
            "");
}

// A clock stops while its segment is read: its time is shown, and must be in the state, too.
TEST(HistoriesTest, AClockStopsInARead) {
  EXPECT_EQ(Check({{Do::kStart, 0, 0}, {Do::kAgent, 0, 0}, {Do::kCollect, 0, 9}, {Do::kCollect, 6, 9}, {Do::kLose, 0, 0}},
                  {.state_elsewhere = true, .hides_ended = true}),
            "");
}

TEST(HistoriesTest, RandomOnesCountEachCountOnce) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    EXPECT_EQ(Check(RandomHistory(seed), ConfigOf(seed)), "") << seed;
  }
}

}  // namespace
}  // namespace persia::agent::model

// What the end of a process that has removed a series leaves of it.
#include <cstdint>
#include <memory>

#include "ledger/retired_test.h"

namespace persia::agent::testing {
namespace {

class RetiredRemovalTest : public RetiredTest {
 protected:
  // One that counts, and then removes the series.
  std::unique_ptr<Worker> CountAndRemove(uint64_t count) {
    auto process = Start();
    const uint32_t slot = process->segment.Counter("my_app", "batches", {}, count);
    process->Put();
    Collect();
    process->segment.SetRemoved(slot);
    process->Put();
    return process;
  }
  std::unique_ptr<Worker> StartCounting(uint64_t count) {
    auto process = Start();
    process->segment.Counter("my_app", "batches", {}, count);
    process->Put();
    return process;
  }
};

TEST_F(RetiredRemovalTest, TheEndOfAProcessBringsNoRemovedSeriesBack) {
  auto process = CountAndRemove(7);
  EXPECT_EQ(Batches(), "");
  process->End();
  EXPECT_EQ(Batches(), "");
  StartAgent();
  EXPECT_EQ(Batches(), "") << "read from the records of the fold";
  CheckpointBytes();
  StartAgent();
  EXPECT_EQ(Batches(), "") << "read from a checkpoint";
}

TEST_F(RetiredRemovalTest, NorDoTheCountsOfProcessesThatEndedBefore) {
  CountAndEnd(10);
  EXPECT_EQ(Batches(), "10");
  auto process = CountAndRemove(7);
  EXPECT_EQ(Batches(), "");
  process->End();
  EXPECT_EQ(Batches(), "");
}

TEST_F(RetiredRemovalTest, TheNextProcessGoesOnFromWhereTheCountWas) {
  CountAndEnd(10);
  CountAndRemove(7)->End();
  EXPECT_EQ(Batches(), "");
  auto next = StartCounting(0);
  EXPECT_EQ(Batches(), "17");
  next->End();
  EXPECT_EQ(Batches(), "17");
  CheckpointBytes();
  StartAgent();
  EXPECT_EQ(Batches(), "17");
}

TEST_F(RetiredRemovalTest, NoCountFallsWhenAProcessEndsThatHasRemovedTheSeries) {
  auto other = StartCounting(3);
  auto process = CountAndRemove(7);
  EXPECT_EQ(Batches(), "10");
  process->End();
  EXPECT_EQ(Batches(), "10");
  other->End();
  EXPECT_EQ(Batches(), "10");
}

TEST_F(RetiredRemovalTest, NorWhenAllEndAtOnce) {
  auto before = StartCounting(3);
  auto process = CountAndRemove(7);
  auto after = StartCounting(5);
  EXPECT_EQ(Batches(), "15");
  before->End();
  process->End();
  after->End();
  EXPECT_EQ(Batches(), "15");
}

TEST_F(RetiredRemovalTest, TheSavedValuesOfALostSegmentKeepTheRemoval) {
  saves_living_ = true;
  StartAgent();
  auto process = CountAndRemove(7);
  EXPECT_EQ(Batches(), "");
  Remove(process->name);
  for (const bool checkpoint : {false, true}) {
    if (checkpoint) CheckpointBytes();
    StartAgent();
    EXPECT_EQ(Batches(), "");
  }
}

TEST_F(RetiredRemovalTest, AGaugeOfAnEndedProcessDoesNotTakeThePlaceOfARemovedOne) {
  StartWithGauge(5)->End();
  EXPECT_EQ(Size(), "5");
  auto process = Start();
  const uint32_t slot = process->segment.Gauge("my_app", "size", {}, 6);
  process->segment.SetRemoved(slot);
  process->Put();
  EXPECT_EQ(Size(), "");
  process->End();
  EXPECT_EQ(Size(), "");
}

}  // namespace
}  // namespace persia::agent::testing

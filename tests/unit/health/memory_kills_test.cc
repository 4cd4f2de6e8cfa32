// To which death a kill that the kernel has counted belongs.
#include "health/memory_kills.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace persia::agent {
namespace {

using std::chrono::seconds;

class MemoryKillsTest : public ::testing::Test {
 protected:
  MemoryKills kills_;
  MemoryKills::TimePoint now_{seconds(1000)};
};

TEST_F(MemoryKillsTest, TheFirstCountIsWhereCountingBegins) {
  kills_.Note("/job", 7, now_);
  EXPECT_FALSE(kills_.Take("/job", now_));
  kills_.Note("/job", 8, now_);
  EXPECT_TRUE(kills_.Take("/job", now_));
  EXPECT_FALSE(kills_.Take("/job", now_)) << "one kill, one death";
}

TEST_F(MemoryKillsTest, KillsBelongToTheirCgroup) {
  for (const uint64_t count : {0, 1}) kills_.Note("/job", count, now_);
  kills_.Note("/other", 0, now_);
  EXPECT_FALSE(kills_.Take("/other", now_));
  EXPECT_FALSE(kills_.Take("/nowhere", now_));
  EXPECT_TRUE(kills_.Take("/job", now_));
}

// A process that gives back much memory ends some collections after the count has risen.
TEST_F(MemoryKillsTest, AKillWaitsForItsProcessForAMinute) {
  for (const uint64_t count : {0, 2}) kills_.Note("/job", count, now_);
  EXPECT_TRUE(kills_.Take("/job", now_ + seconds(60)));
  EXPECT_FALSE(kills_.Take("/job", now_ + seconds(61)));
}

TEST_F(MemoryKillsTest, ANewAgentFindsTheKillsSinceTheFormerOne) {
  kills_.Note("/job", 5, now_);  // at its start
  kills_.Restore({{"/job", 4}});
  kills_.Note("/job", 5, now_);
  EXPECT_TRUE(kills_.Take("/job", now_));
}

TEST_F(MemoryKillsTest, ALowerCountIsOfAnotherBoot) {
  for (const uint64_t count : {5, 0}) kills_.Note("/job", count, now_);
  EXPECT_FALSE(kills_.Take("/job", now_));
  kills_.Note("/job", 1, now_);
  EXPECT_TRUE(kills_.Take("/job", now_));
}

TEST_F(MemoryKillsTest, RemovedCgroupsAreForgotten) {
  kills_.Note("/gone", 1, now_);
  kills_.Note("/job", 1, now_ + seconds(100));
  kills_.DropBefore(now_ + seconds(50));
  EXPECT_FALSE(kills_.IsKnown("/gone"));
  EXPECT_TRUE(kills_.IsKnown("/job"));
}

}  // namespace
}  // namespace persia::agent

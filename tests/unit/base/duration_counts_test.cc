#include "base/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>

namespace persia::agent {
namespace {

TEST(DurationCounts, BoundsDoubleEveryFourFromAMillisecondToHalfAMinute) {
  constexpr auto& kBounds = DurationCounts::kBounds;
  EXPECT_EQ(kBounds.front(), 1.0 / 1024);
  EXPECT_EQ(kBounds.back(), 32);
  for (size_t i = 0; i + 4 < kBounds.size(); ++i) {
    EXPECT_LT(kBounds[i], kBounds[i + 1]);
    EXPECT_EQ(kBounds[i + 4], 2 * kBounds[i]);
  }
}

TEST(DurationCounts, ADurationCountsAtItsInclusiveUpperBound) {
  constexpr size_t kLast = DurationCounts::kBounds.size() - 1;
  DurationCounts counts;
  for (const double seconds : {0.0, 1.0 / 1024, 1.0 / 1000, 32.0, 33.0}) counts.Add(std::chrono::duration<double>(seconds));
  EXPECT_EQ(counts.counts[0], 2U);
  EXPECT_EQ(counts.counts[1], 1U);
  EXPECT_EQ(counts.counts[kLast], 1U);
  EXPECT_EQ(counts.counts[kLast + 1], 1U);
  EXPECT_DOUBLE_EQ(counts.sum, 65 + 1.0 / 1024 + 1.0 / 1000);

  DurationCounts both = counts;
  both.Add(counts);
  EXPECT_EQ(both.counts[0], 4U);
  EXPECT_EQ(both.counts[kLast + 1], 2U);
  EXPECT_DOUBLE_EQ(both.sum, 2 * counts.sum);
}

}  // namespace
}  // namespace persia::agent

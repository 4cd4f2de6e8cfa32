#include "hyperloglog.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace embedding_job {
namespace {

constexpr double kStandardError = 1.04 / 128;  // 2^14 registers

TEST(HyperLogLog, TellsSmallNumbersNearlyExactlyAndCountsNoIdTwice) {
  HyperLogLog seen;
  EXPECT_EQ(seen.Estimate(), 0);
  for (uint64_t id = 1; id <= 100; ++id) {
    for (int round = 0; round < 10; ++round) {
      seen.Add(id);
    }
    EXPECT_NEAR(seen.Estimate(), static_cast<double>(id), 2);
  }
}

// Four standard errors at each of many sizes; consecutive ids are the worst case for a bad mixer.
TEST(HyperLogLog, StaysWithinItsErrorBounds) {
  HyperLogLog seen;
  uint64_t added = 0;
  for (double size = 1000; size < 3e6; size *= 1.3) {
    for (; added < static_cast<uint64_t>(size); ++added) {
      seen.Add(added);
    }
    EXPECT_NEAR(seen.Estimate() / static_cast<double>(added), 1, 4 * kStandardError) << added;
  }
}

// The bias that the original estimator has between 2.5 and 5 times the number of registers is gone: over many runs the mean is
// right.
TEST(HyperLogLog, IsUnbiasedWhereTheClassicEstimatorIsNot) {
  constexpr int kRuns = 100;
  constexpr uint64_t kIds = 50'000;
  double sum = 0;
  for (uint64_t run = 0; run < kRuns; ++run) {
    HyperLogLog seen;
    for (uint64_t id = 0; id < kIds; ++id) {
      seen.Add((run << 32) + id);
    }
    sum += seen.Estimate() / kIds;
  }
  EXPECT_NEAR(sum / kRuns, 1, 4 * kStandardError / std::sqrt(kRuns));
}

}  // namespace
}  // namespace embedding_job

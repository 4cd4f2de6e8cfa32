#include "own/health_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace persia::agent {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

// Zeros of an agent that does not know the counts of the former one yet would fall below them.
TEST(DeathMetricsTest, NothingIsShownBeforeTheFormerCountsAreKnown) {
  DeathMetrics metrics({"dlrm", {{"role", "agent"}}});
  EXPECT_FALSE(metrics.shows());
  metrics.Show({});
  ASSERT_TRUE(metrics.shows());
  EXPECT_THAT(metrics.Collect()->values, Each(0)) << "rate() sees the first death of each cause";
}

TEST(DeathMetricsTest, EachCauseHasItsCount) {
  DeathMetrics metrics({"dlrm", {{"role", "agent"}}});
  DeathMetrics::Totals totals{};
  totals[static_cast<size_t>(DeathCause::kCrash)] = 3;
  metrics.Show(totals);
  const auto snapshot = metrics.Collect();
  const FamilyLayout& family = snapshot->layout->families.at(0);
  ASSERT_THAT(family.series, SizeIs(kDeathCauses));
  for (size_t i = 0; i < kDeathCauses; ++i) {
    EXPECT_EQ(family.series[i].labels, (Labels{{"cause", std::string(Name(static_cast<DeathCause>(i)))}}));
    EXPECT_EQ(snapshot->values[family.series[i].first_value], totals[i]);
  }
}

}  // namespace
}  // namespace persia::agent

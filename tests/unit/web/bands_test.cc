#include "web/bands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const double kGap = std::nan("");

// A label set of each rank and phase; its values are made by `at`.
class BandsTest : public ::testing::Test {
 protected:
  void Add(int rank, std::vector<double> values, const std::string& phase = "", std::optional<double> quantile = {}) {
    RangeSeries series{.labels = {{"instance", "rep_" + std::to_string(rank)}}, .quantile = quantile, .values = values};
    if (!phase.empty()) series.labels.emplace_back("phase", phase);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isinf(values[i])) series.not_finite.emplace_back(i, values[i]);
    }
    result_.points = values.size();
    result_.series.push_back(series);
  }

  RangeResult result_;
};

TEST_F(BandsTest, AreTheLowestTheMiddleAndTheHighestValueOfEachPoint) {
  Add(0, {1, 10, kGap});
  Add(1, {2, kGap, kGap});
  Add(2, {9, 20, kGap});
  const Bands bands = BandsOf(result_);
  ASSERT_THAT(bands.bands, SizeIs(1));
  const Band& band = bands.bands[0];
  EXPECT_EQ(band.sets, 3U);
  EXPECT_THAT(band.labels, IsEmpty()) << "ranks differ in the labels of ranks alone";
  EXPECT_THAT(band.min, ElementsAre(1, 10, ::testing::IsNan()));
  EXPECT_THAT(band.median, ElementsAre(2, 15, ::testing::IsNan()));
  EXPECT_THAT(band.max, ElementsAre(9, 20, ::testing::IsNan()));
  EXPECT_THAT(band.high, IsEmpty());
  EXPECT_THAT(bands.shown, ElementsAre(0, 1, 2));
}

TEST_F(BandsTest, EachPhaseOfAllRanksHasOne) {
  for (int rank = 0; rank < 1000; ++rank) {
    Add(rank, {rank == 700 ? 5.0 : 1.0}, "data");
    Add(rank, {100.0 + rank % 3}, "forward");
  }
  const Bands bands = BandsOf(result_);
  ASSERT_THAT(bands.bands, SizeIs(2));
  EXPECT_THAT(bands.bands[0].labels, ElementsAre(Pair("phase", "data")));
  EXPECT_EQ(bands.bands[0].sets, 1000U);
  EXPECT_THAT(bands.bands[0].median, ElementsAre(1));
  EXPECT_THAT(bands.bands[0].max, ElementsAre(5));
  EXPECT_EQ(bands.bands[0].usual, 0);
  EXPECT_THAT(bands.bands[1].median, ElementsAre(101));
  EXPECT_EQ(bands.bands[1].usual, 1);
  EXPECT_THAT(bands.shown, SizeIs(kShownSeries));
  EXPECT_THAT(bands.shown, ::testing::Contains(1400U)) << "the rank that differs";
  EXPECT_EQ(std::ranges::count_if(bands.shown, [](size_t at) { return at % 2 == 0; }), 60) << "each phase has its part";
}

TEST_F(BandsTest, ManyGroupsAreOne) {
  for (int i = 0; i < 13; ++i) Add(0, {1.0 * i}, "part_" + std::to_string(i));
  const Bands bands = BandsOf(result_);
  ASSERT_THAT(bands.bands, SizeIs(1));
  EXPECT_EQ(bands.bands[0].sets, 13U);
}

TEST_F(BandsTest, OfQuantilesAreThoseOfTheMedianAndTheMiddleOfTheHighest) {
  for (int rank = 0; rank < 3; ++rank) {
    Add(rank, {1.0 + rank}, "", 0.5);
    Add(rank, {10.0 + rank}, "", 0.99);
  }
  const Bands bands = BandsOf(result_);
  ASSERT_THAT(bands.bands, SizeIs(1));
  EXPECT_EQ(bands.bands[0].sets, 3U);
  EXPECT_THAT(bands.bands[0].max, ElementsAre(3));
  EXPECT_THAT(bands.bands[0].high, ElementsAre(11));
  EXPECT_THAT(bands.shown, ElementsAre(0, 2, 4));
}

TEST_F(BandsTest, CountTheLabelSetsWithAValueThatIsNoNumber) {
  for (int rank = 0; rank < 5; ++rank) Add(rank, {rank < 2 ? HUGE_VAL : 1.0});
  EXPECT_EQ(BandsOf(result_).not_finite, 2U);
}

TEST_F(BandsTest, OfNothingAreNone) {
  EXPECT_THAT(BandsOf(result_).shown, IsEmpty());
  EXPECT_THAT(FindApart(result_), IsEmpty());
}

TEST_F(BandsTest, ApartAreThoseFarFromTheMiddleInTheNewestPoints) {
  for (int rank = 0; rank < 9; ++rank) Add(rank, {1, 1, 1, 1.0 + rank / 100.0});
  EXPECT_THAT(FindApart(result_), IsEmpty()) << "ranks are never equal";
  Add(9, {1, 1, 1, 3});
  Add(10, {1, 1, 1, HUGE_VAL});
  Add(11, {9, 9, 9, 1});
  EXPECT_THAT(FindApart(result_), ElementsAre(10, 9)) << "the farthest first; what is over does not count";
}

TEST_F(BandsTest, ApartIsNotWhatMostAre) {
  for (int rank = 0; rank < 9; ++rank) Add(rank, {rank < 7 ? HUGE_VAL : 1.0});
  EXPECT_THAT(FindApart(result_), IsEmpty());
}

TEST_F(BandsTest, AtMostFourAreApart) {
  for (int rank = 0; rank < 20; ++rank) Add(rank, {rank < 12 ? 1.0 : 10.0 + rank});
  EXPECT_THAT(FindApart(result_), ElementsAre(19, 18, 17, 16));
}

}  // namespace
}  // namespace persia::agent

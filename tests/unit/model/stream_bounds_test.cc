#include "model/bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;

TEST(StreamBounds, AreTheQuarterPowersOfTwo) {
  EXPECT_EQ(StreamBound(0), 1);
  EXPECT_EQ(StreamBound(4), 2);
  EXPECT_EQ(StreamBound(kFirstStreamBound), 0x1p-20);
  EXPECT_EQ(StreamBound(kLastStreamBound), 0x1p20);
  for (int k = kFirstStreamBound; k <= kLastStreamBound; ++k) {
    EXPECT_NEAR(StreamBound(k), std::exp2(k / 4.0), StreamBound(k) * 1e-15) << k;
    EXPECT_TRUE(k == kFirstStreamBound || StreamBound(k) > StreamBound(k - 1)) << k;
  }
}

TEST(StreamBounds, SnapToTheNearestByRatioWithoutDuplicates) {
  const double wanted[] = {0.1, 0.25, 1, 1.01, 10};
  EXPECT_THAT(SnapToStreamBounds(wanted), ElementsAre(StreamBound(-13), 0.25, 1, StreamBound(13)));
  for (int k = kFirstStreamBound; k <= kLastStreamBound; ++k) {
    const double bound[] = {StreamBound(k)};
    EXPECT_THAT(SnapToStreamBounds(bound), ElementsAre(StreamBound(k))) << k;
    const double near[] = {std::nextafter(StreamBound(k), 1e9)};
    EXPECT_THAT(SnapToStreamBounds(near), ElementsAre(StreamBound(k))) << k;
  }
}

TEST(StreamBounds, BoundsBeyondThemSnapToTheEnds) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double wanted[] = {-infinity, -1, 0, 1e-300, 1e300, infinity};
  EXPECT_THAT(SnapToStreamBounds(wanted), ElementsAre(0x1p-20, 0x1p20));
  EXPECT_TRUE(SnapToStreamBounds({}).empty());
}

TEST(StreamBounds, InTheExposedUnitAreScaledBoundaries) {
  const double seconds[] = {0.001, 0.016, 0.256, 65.536, 1048.576};
  EXPECT_THAT(SnapToStreamBounds(seconds, Scale(0.001)), ElementsAre(0.001, 0.016, 0.256, 65.536, 1048.576));
  const double rough[] = {0.1};
  EXPECT_THAT(SnapToStreamBounds(rough, Scale(0.001)), ElementsAre(StreamBound(27) / 1000));
}

TEST(StreamBounds, DefaultsAscendAndAreBoundaries) {
  const std::vector<double> usual = DefaultStreamBounds();
  EXPECT_EQ(SnapToStreamBounds(usual), usual);
  EXPECT_EQ(usual.front(), 0x1p-10);
  EXPECT_EQ(usual.back(), 0x1p16);
}

TEST(Scale, OfAFractionGivesTheNearestDecimal) {
  const Scale milli(0.001);
  EXPECT_EQ(milli.Apply(9), 0.009);
  EXPECT_NE(9 * 0.001, 0.009);
  EXPECT_EQ(Scale(0.01).Apply(7), 0.07);
  EXPECT_EQ(Scale(1e-6).Apply(3), 3e-6);
  EXPECT_EQ(Scale(1024).Apply(3), 3072);
  EXPECT_EQ(Scale(0.3).Apply(2), 0.6);
}

TEST(Scale, UndoReversesApply) {
  for (const double factor : {1.0, 0.001, 1e-9, 1000.0, 0.3, 7.0}) {
    const Scale scale(factor);
    EXPECT_EQ(scale.is_one(), factor == 1);
    for (const double value : {0.0, 1.0, 256.0, -3.0}) {
      EXPECT_DOUBLE_EQ(scale.Undo(scale.Apply(value)), value) << factor;
    }
  }
  EXPECT_TRUE(Scale().is_one());
}

TEST(Scale, KeepsTheOrderOfACounter) {
  const Scale milli(0.001);
  double before = milli.Apply(0);
  for (int i = 1; i < 10000; ++i) {
    const double now = milli.Apply(i);
    EXPECT_GT(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace persia::agent

// The bucket of a value, for bounds of each kind.
#include "bucket_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "native_grid.h"
#include "persia/metrics/instruments.h"
#include "segment_format.h"

namespace persia::metrics::tests {
namespace {

using internal::kInfinity;

// Against counting one by one, at each bound, next to it, and in between. Returns whether cells fit.
bool FindsBuckets(std::vector<double> bounds) {
  const size_t count = bounds.size();
  bounds.push_back(kInfinity);
  const internal::BucketIndex index = MakeBucketIndex({bounds.data(), count});
  std::vector<double> values = {0.0, -0.0, 5e-324, -5e-324, 1e-310, 1e308, -1e308, kInfinity, -kInfinity};
  for (size_t i = 0; i < count; ++i) {
    values.insert(values.end(), {bounds[i], std::nextafter(bounds[i], kInfinity), std::nextafter(bounds[i], -kInfinity)});
    values.push_back(i == 0 ? bounds[0] / 2 : (bounds[i] + bounds[i - 1]) / 2);
    values.push_back(-bounds[i]);
  }
  for (const double value : values) {
    const auto below = std::count_if(bounds.begin(), bounds.end() - 1, [&](double bound) { return bound < value; });
    EXPECT_EQ(internal::BucketOf(index, value), below) << count << " bounds from " << bounds[0] << ", " << value;
    if (count > 0) {
      EXPECT_EQ(internal::BucketBySearch(index, value), below) << count << " bounds from " << bounds[0] << ", " << value;
    }
  }
  return index.last >= 0;
}

TEST(BucketIndex, CellsFitTheBoundsThatPeopleUse) {
  EXPECT_TRUE(FindsBuckets({}));
  EXPECT_TRUE(FindsBuckets({1}));
  EXPECT_TRUE(FindsBuckets({DefaultSecondsBounds().begin(), DefaultSecondsBounds().end()}));
  EXPECT_TRUE(FindsBuckets(ExponentialBounds(1e-9, 2, 60)));
  EXPECT_TRUE(FindsBuckets(ExponentialBounds(1, 1.1, 100)));
  EXPECT_TRUE(FindsBuckets(ExponentialBounds(1e-60, 1e6, 20)));
  EXPECT_TRUE(FindsBuckets({0, 1, 2, 3, 5, 8, 13, 21})) << "one that is not positive lies in the first cell";
  EXPECT_TRUE(FindsBuckets({-1, 1}));
  EXPECT_FALSE(FindsBuckets({0, 1e-310})) << "0 would be in the same cell";
  for (int count = 1; count <= 50; ++count) {
    EXPECT_TRUE(FindsBuckets(LinearBounds(0.1, 0.1, count))) << count;
    EXPECT_TRUE(FindsBuckets(LinearBounds(0, 5, count + 1))) << count;
  }
}

TEST(BucketIndex, OthersAreSearched) {
  EXPECT_FALSE(FindsBuckets(LinearBounds(-10, 1, 21)));
  EXPECT_FALSE(FindsBuckets(LinearBounds(-10, 1, 11))) << "none is positive";
  EXPECT_FALSE(FindsBuckets({1, std::nextafter(1.0, kInfinity), 1e300}));
  EXPECT_FALSE(FindsBuckets({1, std::nextafter(1.0, kInfinity)}));
  EXPECT_TRUE(FindsBuckets({1, std::nextafter(std::nextafter(1.0, kInfinity), kInfinity)}))
      << "however close, if there are few";
  for (int count = 256; count <= static_cast<int>(segment::kMaxBounds); ++count) {
    EXPECT_FALSE(FindsBuckets(ExponentialBounds(1, 1.01, count))) << count;
  }
}

TEST(BucketIndex, NativeBoundsAreFoundWithinTheirOctave) {
  for (int schema = segment::kNativeLeastSchema; schema <= segment::kNativeMostSchema; ++schema) {
    for (const int first : {-300, -7, 0, 5, 64}) {
      for (const int count : {2, 3, 17, 500}) {
        if (schema < 0 && count > 17) continue;  // beyond the doubles
        std::vector<double> bounds;
        for (int i = 0; i < count; ++i) bounds.push_back(segment::NativeBound(schema, (schema < 0 ? first / 64 : first) + i));
        bounds.push_back(kInfinity);
        const internal::BucketIndex index = MakeNativeBucketIndex({bounds.data(), bounds.size() - 1});
        std::vector<double> values = {-kInfinity, -1, 0, std::numeric_limits<double>::denorm_min(), kInfinity};
        for (int i = 0; i < count; ++i) {
          values.insert(values.end(), {std::nextafter(bounds[i], 0), bounds[i], std::nextafter(bounds[i], kInfinity)});
        }
        for (const double value : values) {
          const auto below = static_cast<uint32_t>(std::ranges::lower_bound(bounds, value) - bounds.begin());
          ASSERT_EQ(internal::BucketOf(index, value), below) << "schema " << schema << " from " << first << ", " << value;
        }
      }
    }
  }
}

}  // namespace
}  // namespace persia::metrics::tests

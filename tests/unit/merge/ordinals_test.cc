#include "merge/ordinals.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

#include "test_seed.h"

namespace persia::agent {
namespace {

const RankId kRank{"worker", 0};

ProcessPlace Place(uint32_t ordinal) { return {kRank, ordinal}; }

TEST(OrdinalsTest, TheLowestFreeNumberComesFirst) {
  Ordinals ordinals;
  EXPECT_EQ(ordinals.ReserveLowest(kRank), Place(0U));
  EXPECT_EQ(ordinals.ReserveLowest(kRank), Place(1U));
  EXPECT_EQ(ordinals.ReserveLowest({"worker", 1}), (ProcessPlace{{"worker", 1}, 0}));
  ordinals.Release(Place(0));
  EXPECT_TRUE(ordinals.TryReserve(Place(UINT32_MAX)));
  EXPECT_FALSE(ordinals.TryReserve(Place(1)));
  EXPECT_EQ(ordinals.ReserveLowest(kRank), Place(0U));
  EXPECT_EQ(ordinals.ReserveLowest(kRank), Place(2U));
}

TEST(OrdinalsTest, AgreesWithASetOfNumbers) {
  std::mt19937_64 random(TestSeed());
  Ordinals ordinals;
  std::set<uint32_t> reserved;
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<uint32_t>(random() % 40);
    switch (random() % 3) {
      case 0: {
        uint32_t lowest = 0;
        while (reserved.contains(lowest)) ++lowest;
        ASSERT_EQ(ordinals.ReserveLowest(kRank), Place(lowest));
        reserved.insert(lowest);
        break;
      }
      case 1:
        ASSERT_EQ(ordinals.TryReserve(Place(number)), reserved.insert(number).second);
        break;
      default:
        ordinals.Release(Place(number));
        reserved.erase(number);
    }
  }
}

}  // namespace
}  // namespace persia::agent

#include "push/size_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SizeLimitTest : public ::testing::Test {
 protected:
  // The families that are left out of those of these sizes.
  FamilyNames Choose(const std::vector<std::pair<std::string, size_t>>& sizes) {
    std::vector<FamilySize> families;
    for (const auto& [name, bytes] : sizes) {
      FamilyLayout& layout = layouts_.emplace_back();
      layout.name = name;
      families.push_back({&layout, bytes, 1});
    }
    return limit_.Choose("/group", families, added_);
  }
  std::vector<std::string> Added() const {
    std::vector<std::string> names;
    for (const FamilySize& family : added_) names.push_back(family.family->name);
    return names;
  }

  SizeLimit limit_{800};
  std::deque<FamilyLayout> layouts_;
  std::vector<FamilySize> added_;
};

TEST_F(SizeLimitTest, TheLargestFamiliesGoFirst) {
  EXPECT_THAT(Choose({{"a", 300}, {"b", 900}, {"c", 500}, {"d", 400}}), ElementsAre("b", "c"));
  EXPECT_THAT(Added(), ElementsAre("b", "c"));
}

TEST_F(SizeLimitTest, OfEqualOnesTheLastGoes) {
  EXPECT_THAT(Choose({{"a", 300}, {"b", 300}, {"c", 300}}), ElementsAre("c"));
  EXPECT_THAT(Added(), ElementsAre("c"));
}

TEST_F(SizeLimitTest, WhatFitsStays) {
  EXPECT_FALSE(limit_.Applies("/group", 800));
  EXPECT_TRUE(limit_.Applies("/group", 801));
  EXPECT_THAT(Choose({{"a", 400}, {"b", 400}}), IsEmpty());
}

TEST_F(SizeLimitTest, WhatIsLeftOutStaysSoThoughAnotherHasGrownLarger) {
  Choose({{"a", 450}, {"b", 500}});
  EXPECT_TRUE(limit_.Applies("/group", 450));
  EXPECT_THAT(Choose({{"a", 550}, {"b", 500}}), ElementsAre("b"));
  EXPECT_THAT(Added(), IsEmpty());
}

TEST_F(SizeLimitTest, WhatIsLeftOutComesBackWhenThereIsRoomToSpare) {
  Choose({{"a", 450}, {"b", 500}});
  EXPECT_THAT(Choose({{"a", 300}, {"b", 450}}), ElementsAre("b"));  // fits, but leaves less than an eighth
  EXPECT_THAT(Choose({{"a", 300}, {"b", 400}}), IsEmpty());
  EXPECT_FALSE(limit_.Applies("/group", 700));
}

TEST_F(SizeLimitTest, AGroupIsForgottenWithItsIdentity) {
  Choose({{"a", 900}});
  limit_.KeepOnly(FamilyNames{"/other"});
  EXPECT_THAT(limit_.LeftOut("/group"), IsEmpty());
}

}  // namespace
}  // namespace persia::agent

#include "base/foreign_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kMiB = 1 << 20;

class ForeignShareTest : public ::testing::Test {
 protected:
  ForeignShareTest() { ForeignShare::SetLimit(8 * kMiB); }
  ~ForeignShareTest() override { ForeignShare::SetLimit(ForeignShare::kDefaultLimit); }

  // Whether so many bytes, which the share has then, fit.
  static bool Takes(ForeignShare& share, size_t bytes, std::vector<std::string>& kept) {
    const auto read = [&]() -> Status {
      kept.emplace_back(bytes, 'x');
      return Done{};
    };
    return share.Charge("file", read).ok();
  }

  std::vector<std::string> kept_;
};

TEST_F(ForeignShareTest, WhatIsReadIsReturned) {
  ForeignShare share;
  const auto text = share.Charge("file", []() -> Result<std::string> { return std::string(100, 'x'); });
  EXPECT_EQ(text.value().size(), 100U);
  const auto refused = share.Charge("file", []() -> Result<std::string> { return Error{"it is malformed"}; });
  EXPECT_EQ(refused.error(), "it is malformed");
}

TEST_F(ForeignShareTest, AnAllocationBeyondTheLimitIsAnErrorThatSaysWhatToDo) {
  ForeignShare share;
  const auto text = share.Charge("/job/agent.state", []() -> Result<std::string> { return std::string(9 * kMiB, 'x'); });
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error(),
              AllOf(StartsWith("/job/agent.state "), HasSubstr(" 8388608 bytes"), HasSubstr("raise max_foreign_bytes")));
}

TEST_F(ForeignShareTest, WhatIsSetLeavesLessForOthers) {
  ForeignShare estimated;
  ForeignShare read;
  estimated.Set(5 * kMiB);
  EXPECT_FALSE(Takes(read, 4 * kMiB, kept_));
  estimated.Set(3 * kMiB);
  EXPECT_TRUE(Takes(read, 4 * kMiB, kept_));
}

TEST_F(ForeignShareTest, AllSharesTogetherStayBelowTheLimit) {
  std::optional<ForeignShare> one(std::in_place);
  ForeignShare other;
  EXPECT_TRUE(Takes(*one, 5 * kMiB, kept_));
  EXPECT_FALSE(Takes(other, 5 * kMiB, kept_));
  EXPECT_TRUE(Takes(other, 2 * kMiB, kept_));
  one.reset();
  EXPECT_TRUE(Takes(other, 5 * kMiB, kept_));
}

TEST_F(ForeignShareTest, MemoryThatIsFreedMeanwhileDoesNotCount) {
  ForeignShare share;
  const auto read = []() -> Status {
    for (int i = 0; i < 10; ++i) static_cast<void>(std::string(5 * kMiB, 'x'));
    return Done{};
  };
  EXPECT_TRUE(share.Charge("file", read).ok());
  EXPECT_TRUE(Takes(share, 7 * kMiB, kept_));
}

TEST_F(ForeignShareTest, ARefusalLeavesNothingInTheShare) {
  ForeignShare share;
  EXPECT_TRUE(Takes(share, kMiB, kept_));
  std::vector<std::string> parts;
  for (int i = 0; i < 10; ++i) {
    const auto read = [&]() -> Status {
      for (;;) parts.emplace_back(kMiB, 'x');
    };
    EXPECT_FALSE(share.Charge("file", read).ok());
    EXPECT_GE(parts.size(), 5U);
    parts.clear();
  }
  EXPECT_TRUE(Takes(share, 6 * kMiB, kept_));
  EXPECT_FALSE(Takes(share, kMiB, kept_)) << "the first part is still in it";
}

TEST_F(ForeignShareTest, CopiesCount) {
  ForeignShare share(4);
  EXPECT_FALSE(Takes(share, 3 * kMiB, kept_));
  EXPECT_TRUE(Takes(share, kMiB, kept_));
  ForeignShare other;
  EXPECT_FALSE(Takes(other, 5 * kMiB, kept_));
}

TEST_F(ForeignShareTest, OnlyTheCallCounts) {
  ForeignShare share;
  kept_.emplace_back(9 * kMiB, 'x');
  const auto read = []() -> Status {
    std::thread([] { static_cast<void>(std::string(9 * kMiB, 'x')); }).join();
    return Done{};
  };
  EXPECT_TRUE(share.Charge("file", read).ok());
  kept_.emplace_back(9 * kMiB, 'x');
}

}  // namespace
}  // namespace persia::agent

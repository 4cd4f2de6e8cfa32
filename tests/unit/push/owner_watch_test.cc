#include "push/owner_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "push/ledger_directory.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;

// A watch over a gateway whose page takes a given time and shows a given number of agents, with a manual clock.
class OwnerWatchTest : public ::testing::Test {
 protected:
  static std::set<Identity> Group(int replica) { return {{"job", {{"instance", "rep_" + std::to_string(replica)}}}}; }
  // Whether it looks before a push that comes so much later.
  bool LooksAfter(std::chrono::milliseconds time, int replica = 0) {
    now_ += time;
    if (!watch_.IsDue(Group(replica), now_)) return false;
    Owners owners;
    for (int i = 0; i < agents_; ++i) {
      const std::string n = std::to_string(1000 + i);
      owners["other group " + n] = {"00000000000" + n + "0", ""};
    }
    const auto began = now_;
    now_ += cost_;
    watch_.Update(Group(replica), answers_ ? std::optional(owners) : std::nullopt, began, now_);
    return true;
  }

  LedgerDirectory directory_;
  GroupLedger ledger_{directory_.Options()};
  std::chrono::steady_clock::time_point now_{1h};
  int agents_ = 0;
  bool answers_ = true;
  std::chrono::milliseconds cost_ = 1ms;
  OwnerWatch watch_{ledger_, "http://gateway:9091"};
};

TEST_F(OwnerWatchTest, ASmallPageIsReadBeforeTheNextTwoPushesAndThenNowAndThen) {
  agents_ = 10;
  EXPECT_TRUE(LooksAfter(0s));
  EXPECT_TRUE(LooksAfter(0s));
  EXPECT_FALSE(LooksAfter(0s));
  EXPECT_TRUE(LooksAfter(20s));
  EXPECT_FALSE(LooksAfter(39s));
  EXPECT_TRUE(LooksAfter(1s));
}

TEST_F(OwnerWatchTest, AllAgentsTakeATwentiethOfTheGatewaysTime) {
  agents_ = 99;  // and this one
  cost_ = 250ms;
  EXPECT_TRUE(LooksAfter(0s));
  EXPECT_FALSE(LooksAfter(20 * 100 * 250ms - 251ms));
  EXPECT_TRUE(LooksAfter(1ms));
}

TEST_F(OwnerWatchTest, AGatewayThatDoesNotAnswerIsAskedLessAndLess) {
  answers_ = false;
  cost_ = 2500ms;
  EXPECT_TRUE(LooksAfter(0s));
  EXPECT_FALSE(LooksAfter(390s));
  EXPECT_TRUE(LooksAfter(10s));
  EXPECT_FALSE(LooksAfter(3190s));
  EXPECT_TRUE(LooksAfter(10s));
  EXPECT_FALSE(LooksAfter(7h - 10s));
  EXPECT_TRUE(LooksAfter(7h));
  EXPECT_FALSE(LooksAfter(24h - 10s));
  EXPECT_TRUE(LooksAfter(10s)) << "at most a day apart";
}

TEST_F(OwnerWatchTest, AHighReplicaLooksLater) {
  EXPECT_FALSE(LooksAfter(0s, 30'000)) << "but for an id that begins with 0000";
  EXPECT_TRUE(LooksAfter(24h, 30'000));
}

TEST_F(OwnerWatchTest, TheReplicaThatIsLowestCounts) {
  std::set<Identity> groups = Group(30'000);
  groups.merge(Group(0));
  EXPECT_TRUE(watch_.IsDue(groups, now_));
}

}  // namespace
}  // namespace persia::agent

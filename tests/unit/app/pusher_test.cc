#include "app/pusher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <thread>
#include <vector>

#include "numbered_snapshot.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;

// A sink that can be held up until it is interrupted, and that notes what it was given.
class PusherTest : public ::testing::Test {
 protected:
  Pusher::Options Options(std::chrono::milliseconds grace) {
    return {.push = [this](const Snapshot& snapshot) { return Push(snapshot); },
            .interrupt =
                [this] {
                  interrupted_ = true;
                  go_on_.release();
                },
            .rearm = [this] { interrupted_ = false; },
            .grace = grace,
            .limit = limit_,
            .limit_if_away = limit_if_away_};
  }
  Status Push(const Snapshot& snapshot) {
    if (held_) {
      began_.release();
      go_on_.acquire();
    }
    if (interrupted_) {
      return Error{"interrupted"};
    }
    pushed_.push_back(snapshot.values[0]);
    done_.release();
    if (fails_) {
      return Error{"refused"};
    }
    return Done{};
  }

  std::chrono::milliseconds limit_ = 1h;
  std::chrono::milliseconds limit_if_away_ = 1h;
  std::atomic<bool> held_ = false;
  std::atomic<bool> interrupted_ = false;
  std::atomic<bool> fails_ = false;
  std::counting_semaphore<> began_{0};
  std::counting_semaphore<> go_on_{0};
  std::counting_semaphore<> done_{0};
  std::vector<double> pushed_;  // the push thread's until it has ended
};

TEST_F(PusherTest, WhatIsInsistedOnIsPushedAfterWhatIsUnderWay) {
  held_ = true;
  Pusher pusher(Options(1h));
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  began_.acquire();
  EXPECT_FALSE(pusher.Offer(Numbered(2)));
  pusher.Insist(Numbered(3));
  pusher.Insist(Numbered(4));  // newer
  held_ = false;
  go_on_.release();
  done_.acquire();
  done_.acquire();
  EXPECT_TRUE(pusher.Finish(Numbered(5)).ok());
  pusher.Insist(Numbered(6));  // too late
  EXPECT_EQ(pushed_, (std::vector<double>{1, 4, 5}));
}

TEST_F(PusherTest, PushesWhatIsOffered) {
  Pusher pusher(Options(1h));
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  done_.acquire();
  EXPECT_TRUE(pusher.Finish(Numbered(2)).ok());
  EXPECT_EQ(pushed_, (std::vector<double>{1, 2}));
  EXPECT_EQ(pusher.state().pushes, 2u);
  EXPECT_EQ(pusher.state().failed, 0u);
  EXPECT_TRUE(pusher.state().last_success);
}

TEST_F(PusherTest, SnapshotDuringAPushIsLeftOut) {
  Pusher pusher(Options(1h));
  held_ = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  began_.acquire();
  EXPECT_FALSE(pusher.Offer(Numbered(2)));
  held_ = false;
  go_on_.release();
  EXPECT_TRUE(pusher.Finish(Numbered(3)).ok());
  EXPECT_EQ(pushed_, (std::vector<double>{1, 3}));
}

TEST_F(PusherTest, LastPushDoesNotWaitLongForTheOneBefore) {
  Pusher pusher(Options(0ms));
  held_ = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  began_.acquire();
  held_ = false;
  EXPECT_TRUE(pusher.Finish(Numbered(2)).ok());  // interrupts the first, which nobody lets go on
  EXPECT_EQ(pushed_, (std::vector<double>{2}));
}

TEST_F(PusherTest, InterruptGivesTheLastPushUpToo) {
  Pusher pusher(Options(1h));
  held_ = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  began_.acquire();
  held_ = false;
  pusher.Interrupt();
  EXPECT_FALSE(pusher.Finish(Numbered(2)).ok());
  EXPECT_TRUE(pushed_.empty());
  EXPECT_EQ(pusher.state().last_error, "interrupted");
}

TEST_F(PusherTest, FailureIsKeptUntilAPushGoesWell) {
  Pusher pusher(Options(1h));
  fails_ = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  done_.acquire();
  EXPECT_FALSE(pusher.Finish(Numbered(2)).ok());
  EXPECT_EQ(pusher.state().last_error, "refused");
  EXPECT_EQ(pusher.state().failed, 2u);
  EXPECT_FALSE(pusher.state().last_success);
}

TEST_F(PusherTest, TellsHowLongTheLastPushTook) {
  held_ = true;
  Pusher pusher(Options(1h));
  pusher.Start();
  EXPECT_EQ(pusher.state().last_took, 0s);
  const auto offered = std::chrono::steady_clock::now();
  pusher.Offer(Numbered(1));
  began_.acquire();
  const auto enough = std::chrono::steady_clock::now() + 2ms;
  while (std::chrono::steady_clock::now() < enough) std::this_thread::yield();
  held_ = false;
  go_on_.release();
  pusher.Hold();
  EXPECT_GE(pusher.state().last_took, 2ms);
  EXPECT_LE(pusher.state().last_took, std::chrono::steady_clock::now() - offered);
  pusher.Release();
  EXPECT_TRUE(pusher.Finish(Numbered(2)).ok());
}

TEST_F(PusherTest, LastPushHasALimit) {
  limit_ = 1ms;
  Pusher pusher(Options(1h));
  held_ = true;
  pusher.Start();
  EXPECT_EQ(pusher.Finish(Numbered(1)).error(), "interrupted");  // nobody but the limit lets it go on
  EXPECT_TRUE(pushed_.empty());
}

TEST_F(PusherTest, LastPushHasALowerLimitIfTheOneBeforeFailed) {
  limit_if_away_ = 1ms;
  Pusher pusher(Options(1h));
  fails_ = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  done_.acquire();
  held_ = true;
  EXPECT_EQ(pusher.Finish(Numbered(2)).error(), "refused");  // the reason that is known
  EXPECT_EQ(pushed_, (std::vector<double>{1}));
}

TEST_F(PusherTest, LastPushHasALowerLimitIfTheOneBeforeDidNotEnd) {
  limit_if_away_ = 1ms;
  Pusher pusher(Options(1ms));
  held_ = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  began_.acquire();
  EXPECT_EQ(pusher.Finish(Numbered(2)).error(), "interrupted");
  EXPECT_TRUE(pushed_.empty());
}

TEST_F(PusherTest, NothingIsTakenAfterTheEnd) {
  Pusher pusher(Options(1h));
  pusher.Start();
  EXPECT_TRUE(pusher.Finish(Numbered(1)).ok());
  EXPECT_FALSE(pusher.Offer(Numbered(2)));
}

}  // namespace
}  // namespace persia::agent

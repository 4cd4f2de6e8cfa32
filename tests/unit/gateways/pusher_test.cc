#include "gateways/pusher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "model/numbered_snapshot.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;

// A sink that can be blocked until it is interrupted, and that notes the snapshots that it got.
class BlockableSink : public PushSink {
 public:
  [[nodiscard]] const std::string& name() const override { return name_; }
  Status Push(const Snapshot& snapshot) override {
    if (blocked) {
      began.release();
      go_on.acquire();
    }
    if (interrupted) return Error{"interrupted"};
    pushed.push_back(snapshot.values[0]);
    done.release();
    if (fails) return Error{"refused"};
    return Done{};
  }
  [[nodiscard]] const PushReport& last_report() const override { return report_; }
  void Interrupt() override {
    interrupted = true;
    go_on.release();
  }
  void Rearm() override { interrupted = false; }
  Status DeleteGroups(const std::string&, std::chrono::milliseconds) override { return Done{}; }

  std::atomic<bool> blocked = false;
  std::atomic<bool> interrupted = false;
  std::atomic<bool> fails = false;
  std::counting_semaphore<> began{0};
  std::counting_semaphore<> go_on{0};
  std::counting_semaphore<> done{0};
  std::vector<double> pushed;  // the push thread's until it has ended

 private:
  const std::string name_ = "gateway:9091";
  const PushReport report_{};
};

class PusherTest : public ::testing::Test {
 protected:
  PusherTest() { reports_.SetGateways({sink_->name()}); }

  [[nodiscard]] Pusher::Limits Limits(std::chrono::milliseconds grace) const {
    return {.last_push = limit_, .last_push_if_away = limit_if_away_, .grace = grace};
  }

  std::chrono::milliseconds limit_ = 1h;
  std::chrono::milliseconds limit_if_away_ = 1h;
  OwnMetrics own_{{.identity = {"job", {}}, .version = "1"}};
  PushReports reports_{own_, 1h};
  const std::shared_ptr<BlockableSink> sink_ = std::make_shared<BlockableSink>();
};

TEST_F(PusherTest, AnEnqueuedSnapshotIsPushedAfterThePushUnderWay) {
  sink_->blocked = true;
  Pusher pusher(sink_, reports_, Limits(1h));
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  sink_->began.acquire();
  EXPECT_FALSE(pusher.Offer(Numbered(2)));
  pusher.Enqueue(Numbered(3));
  pusher.Enqueue(Numbered(4));  // newer
  sink_->blocked = false;
  sink_->go_on.release();
  sink_->done.acquire();
  sink_->done.acquire();
  EXPECT_TRUE(pusher.Finish(Numbered(5)).ok());
  pusher.Enqueue(Numbered(6));  // too late
  EXPECT_EQ(sink_->pushed, (std::vector<double>{1, 4, 5}));
}

TEST_F(PusherTest, PushesOfferedSnapshots) {
  Pusher pusher(sink_, reports_, Limits(1h));
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  sink_->done.acquire();
  EXPECT_TRUE(pusher.Finish(Numbered(2)).ok());
  EXPECT_EQ(sink_->pushed, (std::vector<double>{1, 2}));
  EXPECT_EQ(pusher.state().pushes, 2u);
  EXPECT_EQ(pusher.state().failed, 0u);
  EXPECT_TRUE(pusher.state().last_success);
}

TEST_F(PusherTest, SnapshotDuringAPushIsLeftOut) {
  Pusher pusher(sink_, reports_, Limits(1h));
  sink_->blocked = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  sink_->began.acquire();
  EXPECT_FALSE(pusher.Offer(Numbered(2)));
  sink_->blocked = false;
  sink_->go_on.release();
  EXPECT_TRUE(pusher.Finish(Numbered(3)).ok());
  EXPECT_EQ(sink_->pushed, (std::vector<double>{1, 3}));
}

TEST_F(PusherTest, LastPushDoesNotWaitLongForTheOneBefore) {
  Pusher pusher(sink_, reports_, Limits(0ms));
  sink_->blocked = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  sink_->began.acquire();
  sink_->blocked = false;
  EXPECT_TRUE(pusher.Finish(Numbered(2)).ok());  // interrupts the first, which is blocked
  EXPECT_EQ(sink_->pushed, (std::vector<double>{2}));
}

TEST_F(PusherTest, InterruptGivesTheLastPushUpToo) {
  Pusher pusher(sink_, reports_, Limits(1h));
  sink_->blocked = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  sink_->began.acquire();
  sink_->blocked = false;
  pusher.Interrupt();
  EXPECT_FALSE(pusher.Finish(Numbered(2)).ok());
  EXPECT_TRUE(sink_->pushed.empty());
  EXPECT_EQ(pusher.state().last_error, "interrupted");
}

TEST_F(PusherTest, AnErrorIsKeptUntilAPushSucceeds) {
  Pusher pusher(sink_, reports_, Limits(1h));
  sink_->fails = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  sink_->done.acquire();
  EXPECT_FALSE(pusher.Finish(Numbered(2)).ok());
  EXPECT_EQ(pusher.state().last_error, "refused");
  EXPECT_EQ(pusher.state().failed, 2u);
  EXPECT_FALSE(pusher.state().last_success);
}

TEST_F(PusherTest, TellsHowLongTheLastPushTook) {
  sink_->blocked = true;
  Pusher pusher(sink_, reports_, Limits(1h));
  pusher.Start();
  EXPECT_EQ(pusher.state().last_took, 0s);
  const auto offered = std::chrono::steady_clock::now();
  pusher.Offer(Numbered(1));
  sink_->began.acquire();
  const auto enough = std::chrono::steady_clock::now() + 2ms;
  while (std::chrono::steady_clock::now() < enough) std::this_thread::yield();
  sink_->blocked = false;
  sink_->go_on.release();
  pusher.Hold();
  EXPECT_GE(pusher.state().last_took, 2ms);
  EXPECT_LE(pusher.state().last_took, std::chrono::steady_clock::now() - offered);
  pusher.Release(sink_);
  EXPECT_TRUE(pusher.Finish(Numbered(2)).ok());
}

TEST_F(PusherTest, LastPushHasALimit) {
  limit_ = 1ms;
  Pusher pusher(sink_, reports_, Limits(1h));
  sink_->blocked = true;
  pusher.Start();
  EXPECT_EQ(pusher.Finish(Numbered(1)).error(), "interrupted");  // by the limit
  EXPECT_TRUE(sink_->pushed.empty());
}

TEST_F(PusherTest, LastPushHasALowerLimitIfTheOneBeforeFailed) {
  limit_if_away_ = 1ms;
  Pusher pusher(sink_, reports_, Limits(1h));
  sink_->fails = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  sink_->done.acquire();
  sink_->blocked = true;
  EXPECT_EQ(pusher.Finish(Numbered(2)).error(), "refused");  // the reason that is known
  EXPECT_EQ(sink_->pushed, (std::vector<double>{1}));
}

TEST_F(PusherTest, LastPushHasALowerLimitIfTheOneBeforeDidNotEnd) {
  limit_if_away_ = 1ms;
  Pusher pusher(sink_, reports_, Limits(1ms));
  sink_->blocked = true;
  pusher.Start();
  EXPECT_TRUE(pusher.Offer(Numbered(1)));
  sink_->began.acquire();
  EXPECT_EQ(pusher.Finish(Numbered(2)).error(), "interrupted");
  EXPECT_TRUE(sink_->pushed.empty());
}

TEST_F(PusherTest, NothingIsTakenAfterTheEnd) {
  Pusher pusher(sink_, reports_, Limits(1h));
  pusher.Start();
  EXPECT_TRUE(pusher.Finish(Numbered(1)).ok());
  EXPECT_FALSE(pusher.Offer(Numbered(2)));
}

}  // namespace
}  // namespace persia::agent

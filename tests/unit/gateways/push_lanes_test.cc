#include "gateways/push_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "format/scrape_renderer.h"
#include "model/numbered_snapshot.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A gateway that can be blocked until it is interrupted.
class BlockableGateway : public PushSink {
 public:
  explicit BlockableGateway(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  Status Push(const Snapshot& snapshot) override { return Push(snapshot.values[0]); }
  [[nodiscard]] const PushReport& last_report() const override { return report_; }
  void Interrupt() override { Set(interrupted_, true); }
  void Rearm() override { Set(interrupted_, false); }
  Status DeleteGroups(const std::string& job, std::chrono::milliseconds limit) override {
    EXPECT_EQ(job, "job");
    delete_limit = limit;
    return Push(0);
  }
  void Block(bool blocked) { Set(blocked_, blocked); }
  // Waits until a push has begun, or ended well, with this number.
  void AwaitBegun(double number) { Await(begun_, number); }
  void AwaitDone(double number) { Await(done_, number); }
  [[nodiscard]] bool busy() {
    const std::lock_guard lock(mutex_);
    return busy_;
  }

  size_t groups = 1;
  std::chrono::milliseconds delete_limit{0};

 private:
  Status Push(double number) {
    std::unique_lock lock(mutex_);
    busy_ = true;
    begun_ = number;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !blocked_ || interrupted_; });
    busy_ = false;
    report_ = {.result = interrupted_ ? PushResult::kInterrupted : PushResult::kSuccess, .groups = groups};
    if (interrupted_) {
      return Error{name_ + ": interrupted"};
    }
    done_ = number;
    changed_.notify_all();
    return Done{};
  }
  void Set(bool& flag, bool value) {
    const std::lock_guard lock(mutex_);
    flag = value;
    changed_.notify_all();
  }
  void Await(double& place, double number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return place == number; });
  }

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool blocked_ = false;
  bool interrupted_ = false;
  bool busy_ = false;
  PushReport report_;
  double begun_ = 0;
  double done_ = 0;
};

class PushLanesTest : public ::testing::Test {
 protected:
  void Use(const PushLanes::Sinks& gateways) {
    lanes_.Use([&] { return gateways; });
  }
  std::string Own() {
    std::string text;
    TextRenderer().Render(*own_.Collect(), text);
    return text;
  }

  OwnMetrics own_{{.identity = {"job", {}}, .version = "1"}};
  const std::shared_ptr<BlockableGateway> a_ = std::make_shared<BlockableGateway>("a:9091");
  const std::shared_ptr<BlockableGateway> b_ = std::make_shared<BlockableGateway>("b:9091");
  PushLanes lanes_{own_, {.interval = 10s, .limit = 1h, .limit_if_away = 1h}};
};

TEST_F(PushLanesTest, AGatewayThatDoesNotAnswerDelaysNoOther) {
  Use({a_, b_});
  lanes_.Start();
  a_->Block(true);
  EXPECT_TRUE(lanes_.Offer(Numbered(1)));
  a_->AwaitBegun(1);
  for (double number = 2; number < 5; ++number) {
    b_->AwaitDone(number - 1);
    while (lanes_.lanes()[1].state.pushes < number - 1) std::this_thread::yield();
    EXPECT_FALSE(lanes_.Offer(Numbered(number))) << "the first is busy";
  }
  b_->AwaitDone(4);
  a_->Block(false);
  a_->AwaitDone(1);
  EXPECT_TRUE(lanes_.Finish(Numbered(9)).ok());
  EXPECT_EQ(lanes_.lanes()[0].state.pushes, 2U);
  EXPECT_EQ(lanes_.lanes()[1].state.pushes, 5U);
}

TEST_F(PushLanesTest, GatewaysChangeWhileNoPushIsUnderWay) {
  Use({a_, b_});
  lanes_.Start();
  a_->Block(true);
  b_->Block(true);
  lanes_.Offer(Numbered(1));
  a_->AwaitBegun(1);
  b_->AwaitBegun(1);
  lanes_.Use([&] {
    EXPECT_FALSE(a_->busy());
    EXPECT_FALSE(b_->busy());
    EXPECT_FALSE(lanes_.Offer(Numbered(2)));
    a_->Block(false);
    return PushLanes::Sinks{a_};
  });
  ASSERT_EQ(lanes_.lanes().size(), 1U);
  lanes_.Enqueue(Numbered(3));
  a_->AwaitDone(3);
  EXPECT_TRUE(lanes_.Finish(Numbered(4)).ok());
  EXPECT_EQ(lanes_.lanes()[0].state.pushes, 3U) << "its history stays";
}

TEST_F(PushLanesTest, InterruptAlsoHoldsForGatewaysThatAreAddedLater) {
  Use({a_});
  lanes_.Start();
  lanes_.Interrupt();
  b_->Block(true);
  Use({a_, b_});
  EXPECT_THAT(lanes_.Finish(Numbered(1)).error(), HasSubstr("b:9091: interrupted"));
}

TEST_F(PushLanesTest, TheEndWaitsForAllAtOnce) {
  Use({a_, b_});
  lanes_.Start();
  a_->Block(true);
  std::thread end([&] { EXPECT_TRUE(lanes_.Finish(Numbered(7)).ok()); });
  b_->AwaitDone(7);  // though the first has not ended
  a_->Block(false);
  end.join();
  a_->Block(true);
  std::thread groups([&] { EXPECT_TRUE(lanes_.DeleteGroups("job").ok()); });
  b_->AwaitDone(0);
  a_->Block(false);
  groups.join();
}

// At the end of a job a gateway that is away must not keep the job waiting as long as one that answers.
TEST_F(PushLanesTest, AGatewayThatIsAwayHasTheLowerLimitForItsDeletionsToo) {
  lanes_.SetPace({.interval = 10s, .limit = 1h, .limit_if_away = 7s});
  Use({a_, b_});
  lanes_.Start();
  a_->Interrupt();
  EXPECT_FALSE(lanes_.Finish(Numbered(1)).ok());
  EXPECT_TRUE(lanes_.DeleteGroups("job").ok());
  EXPECT_EQ(a_->delete_limit, 7s);
  EXPECT_EQ(b_->delete_limit, 1h);
}

TEST_F(PushLanesTest, AGatewayWithoutGroupsCountsNoSuccess) {
  a_->groups = 0;
  Use({a_, b_});
  lanes_.Start();
  EXPECT_TRUE(lanes_.Finish(Numbered(1)).ok());
  EXPECT_THAT(Own(), AllOf(HasSubstr("persia_agent_pushes_total{job=\"job\",gateway=\"a:9091\",result=\"success\"} 0"),
                           HasSubstr("persia_agent_pushes_total{job=\"job\",gateway=\"b:9091\",result=\"success\"} 1"),
                           HasSubstr("persia_agent_last_push_success_timestamp_seconds{job=\"job\",gateway=\"b:9091\"}"),
                           Not(HasSubstr("persia_agent_last_push_success_timestamp_seconds{job=\"job\",gateway=\"a:9091\"}"))));
}

TEST_F(PushLanesTest, TheAgeOfTheLastPushEndsWithTheGateway) {
  Use({a_, b_});
  lanes_.Start();
  lanes_.Enqueue(Numbered(1));
  a_->AwaitDone(1);
  b_->AwaitDone(1);
  Use({b_});
  const std::string text = Own();
  EXPECT_THAT(text, Not(HasSubstr("persia_agent_last_push_success_timestamp_seconds{job=\"job\",gateway=\"a:9091\"}")));
  EXPECT_THAT(text, Not(HasSubstr("persia_agent_push_consecutive_failures{job=\"job\",gateway=\"a:9091\"}")));
  EXPECT_THAT(text, HasSubstr("persia_agent_pushes_total{job=\"job\",gateway=\"a:9091\",result=\"success\"} 1"));
  EXPECT_TRUE(lanes_.Finish(Numbered(2)).ok());
}

}  // namespace
}  // namespace persia::agent

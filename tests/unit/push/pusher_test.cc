#include "push/pusher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "format/scrape_renderer.h"
#include "model/numbered_snapshot.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(NameWatchTest, LooksUpUntilTheHostHasAnAddress) {
  std::atomic<int> lookups = 0;
  std::atomic<int> misses = 0;
  std::binary_semaphore known(0);
  const NameWatch watch("gateway",
                        {.interval = 1ms,
                         .has_address =
                             [&](const std::string& host) {
                               EXPECT_EQ(host, "gateway");
                               return ++lookups == 3;
                             }},
                        [&](bool is_known) { is_known ? known.release() : void(++misses); });
  known.acquire();
  EXPECT_EQ(misses, 2);
  EXPECT_EQ(lookups, 3);
}

TEST(NameWatchTest, NothingWaitsForAResolverThatHangs) {
  std::binary_semaphore asked(0);
  std::binary_semaphore go_on(0);
  std::binary_semaphore answered(0);
  {
    const NameWatch watch("gateway",
                          {.has_address =
                               [&](const std::string&) {
                                 asked.release();
                                 go_on.acquire();
                                 answered.release();
                                 return true;
                               }},
                          [](bool) { ADD_FAILURE() << "after the end"; });
    asked.acquire();
  }
  go_on.release();
  answered.acquire();  // the resolver is the last to need the semaphores
}

TEST(NameWatchTest, TheSystemsResolverAnswers) {
  for (const auto& [host, has_address] : {std::pair("127.0.0.1", true), std::pair("no_such_host.invalid", false)}) {
    EXPECT_EQ(NameWatch::Options().has_address(host), has_address) << host;
  }
}

// A gateway that can be blocked until it is interrupted, and that notes the snapshots that it got.
class BlockableGateway : public PushGateway {
 public:
  explicit BlockableGateway(const std::string& address = "gateway:9091")
      : PushGateway({.address = GatewayAddress::Parse(address).value()}) {}

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
  void LiftQuarantine() override { ++lifted; }
  Status DeleteGroups(const std::string& job, std::chrono::milliseconds limit) override {
    EXPECT_EQ(job, "job");
    delete_limit = limit;
    return interrupted ? Status(Error{"interrupted"}) : Status(Done{});
  }

  std::atomic<bool> blocked = false;
  std::atomic<bool> interrupted = false;
  std::atomic<bool> fails = false;
  std::atomic<int> lifted = 0;
  std::chrono::milliseconds delete_limit{0};
  std::counting_semaphore<> began{0};
  std::counting_semaphore<> go_on{0};
  std::counting_semaphore<> done{0};
  std::vector<double> pushed;  // the push thread's until it has ended

 private:
  const PushReport report_{};
};

class PusherTest : public ::testing::Test {
 protected:
  PusherTest() { pusher_.Use({.gateway = gateway_}); }

  void SetLimits(std::chrono::milliseconds grace, std::chrono::milliseconds last_push, std::chrono::milliseconds if_away) {
    pusher_.SetPace({.interval = 1h, .last_push = last_push, .last_push_if_away = if_away, .grace = grace});
  }
  std::string Own() {
    std::string text;
    TextRenderer().Render(*own_.Collect(), text);
    return text;
  }

  OwnMetrics own_{{.identity = {"job", {}}, .version = "1"}};
  const std::shared_ptr<BlockableGateway> gateway_ = std::make_shared<BlockableGateway>();
  const std::shared_ptr<BlockableGateway> other_ = std::make_shared<BlockableGateway>("other:9091");
  Pusher pusher_{{.own = own_, .pace = {.interval = 1h, .last_push = 1h, .last_push_if_away = 1h, .grace = 1h}}};
};

TEST_F(PusherTest, AnEnqueuedSnapshotIsPushedAfterThePushUnderWay) {
  gateway_->blocked = true;
  pusher_.Start();
  EXPECT_TRUE(pusher_.Offer(Numbered(1)));
  gateway_->began.acquire();
  EXPECT_FALSE(pusher_.Offer(Numbered(2)));
  pusher_.Enqueue(Numbered(3));
  pusher_.Enqueue(Numbered(4));  // newer
  gateway_->blocked = false;
  gateway_->go_on.release();
  gateway_->done.acquire();
  gateway_->done.acquire();
  EXPECT_TRUE(pusher_.Finish(Numbered(5)).ok());
  pusher_.Enqueue(Numbered(6));  // too late
  EXPECT_FALSE(pusher_.Offer(Numbered(7)));
  EXPECT_EQ(gateway_->pushed, (std::vector<double>{1, 4, 5}));
}

TEST_F(PusherTest, PushesOfferedSnapshots) {
  pusher_.Start();
  EXPECT_TRUE(pusher_.Offer(Numbered(1)));
  gateway_->done.acquire();
  EXPECT_TRUE(pusher_.Finish(Numbered(2)).ok());
  EXPECT_EQ(gateway_->pushed, (std::vector<double>{1, 2}));
  EXPECT_EQ(pusher_.state().pushes, 2u);
  EXPECT_EQ(pusher_.state().failed, 0u);
  EXPECT_TRUE(pusher_.state().last_success);
}

TEST_F(PusherTest, SnapshotDuringAPushIsLeftOut) {
  gateway_->blocked = true;
  pusher_.Start();
  EXPECT_TRUE(pusher_.Offer(Numbered(1)));
  gateway_->began.acquire();
  EXPECT_FALSE(pusher_.Offer(Numbered(2)));
  gateway_->blocked = false;
  gateway_->go_on.release();
  EXPECT_TRUE(pusher_.Finish(Numbered(3)).ok());
  EXPECT_EQ(gateway_->pushed, (std::vector<double>{1, 3}));
}

TEST_F(PusherTest, LastPushDoesNotWaitLongForTheOneBefore) {
  SetLimits(0ms, 1h, 1h);
  gateway_->blocked = true;
  pusher_.Start();
  EXPECT_TRUE(pusher_.Offer(Numbered(1)));
  gateway_->began.acquire();
  gateway_->blocked = false;
  EXPECT_TRUE(pusher_.Finish(Numbered(2)).ok());  // interrupts the first, which is blocked
  EXPECT_EQ(gateway_->pushed, (std::vector<double>{2}));
}

TEST_F(PusherTest, InterruptGivesTheLastPushUpToo) {
  gateway_->blocked = true;
  pusher_.Start();
  EXPECT_TRUE(pusher_.Offer(Numbered(1)));
  gateway_->began.acquire();
  gateway_->blocked = false;
  pusher_.Interrupt();
  EXPECT_FALSE(pusher_.Finish(Numbered(2)).ok());
  EXPECT_TRUE(gateway_->pushed.empty());
  EXPECT_EQ(pusher_.state().last_error, "interrupted");
}

TEST_F(PusherTest, AnErrorIsKeptUntilAPushSucceeds) {
  gateway_->fails = true;
  pusher_.Start();
  EXPECT_TRUE(pusher_.Offer(Numbered(1)));
  gateway_->done.acquire();
  EXPECT_FALSE(pusher_.Finish(Numbered(2)).ok());
  EXPECT_EQ(pusher_.state().last_error, "refused");
  EXPECT_EQ(pusher_.state().failed, 2u);
  EXPECT_FALSE(pusher_.state().last_success);
}

TEST_F(PusherTest, TellsHowLongTheLastPushTook) {
  gateway_->blocked = true;
  pusher_.Start();
  EXPECT_EQ(pusher_.state().last_took, 0s);
  const auto offered = std::chrono::steady_clock::now();
  pusher_.Offer(Numbered(1));
  gateway_->began.acquire();
  const auto enough = std::chrono::steady_clock::now() + 2ms;
  while (std::chrono::steady_clock::now() < enough) std::this_thread::yield();
  gateway_->blocked = false;
  gateway_->go_on.release();
  while (pusher_.state().pushes < 1) std::this_thread::yield();
  EXPECT_GE(pusher_.state().last_took, 2ms);
  EXPECT_LE(pusher_.state().last_took, std::chrono::steady_clock::now() - offered);
  EXPECT_TRUE(pusher_.Finish(Numbered(2)).ok());
}

TEST_F(PusherTest, LastPushHasALimit) {
  SetLimits(1h, 1ms, 1h);
  gateway_->blocked = true;
  pusher_.Start();
  EXPECT_EQ(pusher_.Finish(Numbered(1)).error(), "interrupted");  // by the limit
  EXPECT_TRUE(gateway_->pushed.empty());
}

TEST_F(PusherTest, LastPushHasALowerLimitIfTheOneBeforeFailed) {
  SetLimits(1h, 1h, 1ms);
  gateway_->fails = true;
  pusher_.Start();
  EXPECT_TRUE(pusher_.Offer(Numbered(1)));
  gateway_->done.acquire();
  gateway_->blocked = true;
  EXPECT_EQ(pusher_.Finish(Numbered(2)).error(), "refused");  // the reason that is known
  EXPECT_EQ(gateway_->pushed, (std::vector<double>{1}));
}

TEST_F(PusherTest, LastPushHasALowerLimitIfTheOneBeforeDidNotEnd) {
  SetLimits(1ms, 1h, 1ms);
  gateway_->blocked = true;
  pusher_.Start();
  EXPECT_TRUE(pusher_.Offer(Numbered(1)));
  gateway_->began.acquire();
  EXPECT_EQ(pusher_.Finish(Numbered(2)).error(), "interrupted");
  EXPECT_TRUE(gateway_->pushed.empty());
}

TEST_F(PusherTest, AnotherGatewayStartsWithoutTheFormersPushAndCounts) {
  gateway_->blocked = true;
  pusher_.Start();
  pusher_.Offer(Numbered(1));
  gateway_->began.acquire();
  pusher_.Use({.gateway = other_});  // interrupts the first
  EXPECT_EQ(pusher_.state().gateway, "other:9091");
  EXPECT_EQ(pusher_.state().pushes, 0U);
  EXPECT_TRUE(pusher_.Offer(Numbered(2)));
  other_->done.acquire();
  EXPECT_TRUE(pusher_.Finish(Numbered(3)).ok());
  EXPECT_TRUE(gateway_->pushed.empty());
  EXPECT_EQ(other_->pushed, (std::vector<double>{2, 3}));
}

TEST_F(PusherTest, AGatewayThatIsMadeAnewKeepsItsCounts) {
  const auto anew = std::make_shared<BlockableGateway>();
  pusher_.Start();
  pusher_.Offer(Numbered(1));
  gateway_->done.acquire();
  while (pusher_.state().pushes < 1) std::this_thread::yield();
  pusher_.Use({.gateway = anew});
  EXPECT_TRUE(pusher_.Finish(Numbered(2)).ok());
  EXPECT_EQ(anew->pushed, (std::vector<double>{2}));
  EXPECT_EQ(pusher_.state().pushes, 2U);
}

TEST_F(PusherTest, TheAgeOfTheLastPushEndsWithTheGateway) {
  pusher_.Start();
  pusher_.Offer(Numbered(1));
  gateway_->done.acquire();
  while (pusher_.state().pushes < 1) std::this_thread::yield();
  EXPECT_THAT(Own(), HasSubstr("persia_agent_last_push_success_timestamp_seconds{job=\"job\",gateway=\"gateway:9091\"}"));
  pusher_.Use({});
  EXPECT_THAT(Own(), AllOf(Not(HasSubstr("persia_agent_last_push_success_timestamp_seconds{")),
                           Not(HasSubstr("persia_agent_push_consecutive_failures{")),
                           HasSubstr("persia_agent_pushes_total{job=\"job\",gateway=\"gateway:9091\",result=\"success\"} 1")));
  EXPECT_TRUE(pusher_.Finish(Numbered(2)).ok());
}

TEST_F(PusherTest, WithoutAGatewayNothingWaits) {
  pusher_.Use({});
  pusher_.Start();
  EXPECT_EQ(pusher_.state().gateway, "");
  EXPECT_TRUE(pusher_.Offer(Numbered(1))) << "no tick is skipped";
  EXPECT_TRUE(pusher_.Finish(Numbered(2)).ok());
  EXPECT_TRUE(pusher_.DeleteGroups("job").ok());
}

TEST_F(PusherTest, InterruptHoldsForALaterGatewayToo) {
  pusher_.Start();
  pusher_.Interrupt();
  pusher_.Use({.gateway = other_});
  EXPECT_EQ(pusher_.Finish(Numbered(1)).error(), "interrupted");
}

// At the end of a job a gateway that is away must not keep the job waiting as long as one that answers.
TEST_F(PusherTest, AGatewayThatIsAwayHasTheLowerLimitForItsDeletionsToo) {
  SetLimits(1h, 1h, 7s);
  pusher_.Start();
  EXPECT_TRUE(pusher_.Finish(Numbered(1)).ok());
  EXPECT_TRUE(pusher_.DeleteGroups("job").ok());
  EXPECT_EQ(gateway_->delete_limit, 1h);
  gateway_->fails = true;
  Pusher second({.own = own_, .pace = {.last_push_if_away = 7s}});
  second.Use({.gateway = gateway_});
  second.Start();
  EXPECT_FALSE(second.Finish(Numbered(1)).ok());
  EXPECT_TRUE(second.DeleteGroups("job").ok());
  EXPECT_EQ(gateway_->delete_limit, 7s);
}

TEST_F(PusherTest, TryAgainLiftsTheQuarantine) {
  pusher_.Start();
  pusher_.TryAgain();
  EXPECT_EQ(gateway_->lifted, 1);
  EXPECT_TRUE(pusher_.Finish(Numbered(1)).ok());
}

// A gateway whose host is looked up at the start, and when the settings are read again. The test answers.
class AwaitedHostTest : public PusherTest {
 protected:
  explicit AwaitedHostTest(std::chrono::milliseconds patience = 1h) : patience_(patience) {
    awaiting_.Use({.gateway = other_, .awaited_host = "other"});
  }

  bool LookUp(const std::string& host) {
    EXPECT_EQ(host, "other");
    asked_.release();
    answer_.acquire();
    const bool known = known_;
    answered_.release();
    return known;
  }
  void Answer(bool known) {
    known_ = known;
    answer_.release();
    answered_.acquire();
  }
  void AwaitGateway() {
    while (awaiting_.state().gateway.empty()) std::this_thread::yield();
  }

  const std::chrono::milliseconds patience_;  // of the end
  std::counting_semaphore<> asked_{0};
  std::counting_semaphore<> answer_{0};
  std::counting_semaphore<> answered_{0};
  std::counting_semaphore<> missing_{0};
  std::atomic<bool> known_ = false;
  Pusher awaiting_{{.own = own_,
                    .pace = {.last_push = 1h, .last_push_if_away = 1h},
                    .look_up = {.interval = 1h, .has_address = [this](const std::string& host) { return LookUp(host); }},
                    .answer_patience = patience_,
                    .host_is_missing = [this] { missing_.release(); }}};
};

TEST_F(AwaitedHostTest, TheNewestSnapshotIsPushedOnceTheHostIsKnown) {
  awaiting_.Start();
  asked_.acquire();
  EXPECT_EQ(awaiting_.state().gateway, "");
  EXPECT_TRUE(awaiting_.Offer(Numbered(1)));
  EXPECT_TRUE(awaiting_.Offer(Numbered(2)));
  EXPECT_THAT(Own(), Not(HasSubstr("other:9091")));
  Answer(true);
  other_->done.acquire();
  EXPECT_EQ(awaiting_.state().gateway, "other:9091");
  EXPECT_TRUE(awaiting_.Finish(Numbered(3)).ok());
  EXPECT_EQ(other_->pushed, (std::vector<double>{2, 3}));
}

TEST_F(AwaitedHostTest, AMissingOneIsToldOnceAndLookedUpWhenTheSettingsAreReadAgain) {
  awaiting_.Start();
  Answer(false);
  missing_.acquire();
  asked_.acquire();
  awaiting_.TryAgain();
  asked_.acquire();
  Answer(false);
  awaiting_.TryAgain();
  asked_.acquire();
  Answer(true);
  AwaitGateway();
  EXPECT_FALSE(missing_.try_acquire());
  EXPECT_TRUE(awaiting_.Finish(Numbered(1)).ok());
  EXPECT_EQ(other_->pushed, (std::vector<double>{1}));
}

TEST_F(AwaitedHostTest, OneThatIsKnownIsNotLookedUpAgain) {
  awaiting_.Start();
  Answer(true);
  AwaitGateway();
  awaiting_.TryAgain();
  awaiting_.Use({.gateway = std::make_shared<BlockableGateway>("other:9091"), .awaited_host = "other"});
  EXPECT_EQ(awaiting_.state().gateway, "other:9091");
  asked_.acquire();
  EXPECT_FALSE(asked_.try_acquire());
}

TEST_F(AwaitedHostTest, TheEndWaitsForTheFirstAnswer) {
  awaiting_.Start();
  asked_.acquire();
  std::thread end([&] { EXPECT_TRUE(awaiting_.Finish(Numbered(1)).ok()); });
  Answer(true);
  end.join();
  EXPECT_EQ(other_->pushed, (std::vector<double>{1}));
}

TEST_F(AwaitedHostTest, TheEndDoesNotWaitForAHostThatIsMissing) {
  awaiting_.Start();
  Answer(false);
  missing_.acquire();
  EXPECT_TRUE(awaiting_.Finish(Numbered(1)).ok());
  EXPECT_TRUE(other_->pushed.empty());
}

class HangingResolverTest : public AwaitedHostTest {
 protected:
  HangingResolverTest() : AwaitedHostTest(1ms) {}
};

TEST_F(HangingResolverTest, TheEndDoesNotWaitForIt) {
  awaiting_.Start();
  asked_.acquire();
  EXPECT_TRUE(awaiting_.Finish(Numbered(1)).ok());
  EXPECT_TRUE(other_->pushed.empty());
  Answer(true);
}

}  // namespace
}  // namespace persia::agent

#include "gateways/gateway_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A scripted resolver and a manual clock.
class GatewayNamesTest : public ::testing::Test {
 protected:
  ~GatewayNamesTest() override { names_.Stop(); }

  void Answer(GatewayNames::Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  void Start() {
    names_.SetNames({"gateways"});
    names_.Start([this] { ++changes_; });
    AwaitAnswer();
  }
  // Until an answer is applied and `changed` was called.
  void AwaitAnswer() {
    told_.acquire();
    while (changes_ < due_) std::this_thread::yield();
  }
  void Pass(std::chrono::milliseconds time) {
    now_ = now_.load() + time;
    AwaitAnswer();
  }
  std::vector<std::string> Addresses() { return names_.Addresses("gateways"); }

  std::mutex mutex_;
  GatewayNames::Answer answer_ = Error{"no such name"};
  std::atomic<GatewayNames::Clock::duration> now_{1h};
  std::counting_semaphore<> told_{0};
  std::atomic<int> changes_ = 0;
  int due_ = 0;  // changes that the answer is to make
  std::string last_error_;
  bool last_known_ = false;
  GatewayNames names_{{.interval = 1ms,
                       .forget_after = 1min,
                       .look_up =
                           [this](const std::string&) {
                             const std::lock_guard lock(mutex_);
                             return answer_;
                           },
                       .now = [this] { return GatewayNames::Clock::time_point(now_.load()); },
                       .answered =
                           [this](const std::string&, const std::string& error, bool known) {
                             last_error_ = error;
                             last_known_ = known;
                             told_.release();
                           }}};
};

TEST_F(GatewayNamesTest, AnAddressThatComesIsTakenAtOnce) {
  Answer(std::vector<std::string>{"10.0.0.1"});
  due_ = 1;
  Start();
  EXPECT_THAT(Addresses(), ElementsAre("10.0.0.1"));
  Pass(1ms);
  EXPECT_EQ(changes_, 1) << "the same again is no change";
  Answer(std::vector<std::string>{"10.0.0.1", "fd00::2"});
  due_ = 2;
  Pass(1ms);
  EXPECT_THAT(Addresses(), ElementsAre("10.0.0.1", "fd00::2"));
}

TEST_F(GatewayNamesTest, AFailureChangesNothing) {
  Start();
  EXPECT_EQ(last_error_, "no such name");
  EXPECT_FALSE(last_known_);
  EXPECT_THAT(Addresses(), IsEmpty());
  Answer(std::vector<std::string>{"10.0.0.1"});
  due_ = 1;
  Pass(1ms);
  Answer(Error{"no server"});
  Pass(1h);
  EXPECT_TRUE(last_known_);
  EXPECT_THAT(Addresses(), ElementsAre("10.0.0.1"));
  EXPECT_EQ(changes_, 1);
}

TEST_F(GatewayNamesTest, AnAddressThatIsMissingForAWhileStays) {
  Answer(std::vector<std::string>{"10.0.0.1", "10.0.0.2"});
  due_ = 1;
  Start();
  Answer(std::vector<std::string>{"10.0.0.1"});
  Pass(59s);
  EXPECT_THAT(Addresses(), ElementsAre("10.0.0.1", "10.0.0.2"));
  Answer(std::vector<std::string>{"10.0.0.1", "10.0.0.2"});
  Pass(500ms);
  Answer(std::vector<std::string>{"10.0.0.1"});
  Pass(59s);
  EXPECT_THAT(Addresses(), ElementsAre("10.0.0.1", "10.0.0.2")) << "it was back meanwhile";
  EXPECT_EQ(changes_, 1);
  due_ = 2;
  Pass(1s);
  EXPECT_THAT(Addresses(), ElementsAre("10.0.0.1"));
}

TEST_F(GatewayNamesTest, LookUpNowAppliesTheAnswerAsItIs) {
  Answer(std::vector<std::string>{"10.0.0.1", "10.0.0.2"});
  due_ = 1;
  Start();
  Answer(std::vector<std::string>{"10.0.0.3"});
  due_ = 2;
  now_ = now_.load() + 1us;
  names_.LookUpNow();
  AwaitAnswer();
  EXPECT_THAT(Addresses(), ElementsAre("10.0.0.3"));
}

TEST(GatewayNames, LookUpNowDuringALookupLooksUpOnceMore) {
  std::counting_semaphore<> asked{0};
  std::counting_semaphore<> may_answer{0};
  std::atomic<bool> moved = false;
  GatewayNames names({.interval = 1h, .look_up = [&](const std::string&) -> GatewayNames::Answer {
                        const std::vector<std::string> addresses = {moved ? "10.0.0.2" : "10.0.0.1"};
                        asked.release();
                        may_answer.acquire();
                        return addresses;
                      }});
  std::counting_semaphore<> changes{0};
  names.SetNames({"gateways"});
  names.Start([&] { changes.release(); });
  asked.acquire();
  moved = true;
  names.LookUpNow();
  may_answer.release(2);
  changes.acquire();
  changes.acquire();
  EXPECT_THAT(names.Addresses("gateways"), ElementsAre("10.0.0.2")) << "and the older one is dropped at once";
  names.Stop();
}

TEST_F(GatewayNamesTest, OtherNamesAreForgotten) {
  Answer(std::vector<std::string>{"10.0.0.1"});
  due_ = 1;
  Start();
  due_ = 2;
  names_.SetNames({"others"});
  AwaitAnswer();
  EXPECT_THAT(Addresses(), IsEmpty());
  EXPECT_THAT(names_.Addresses("others"), ElementsAre("10.0.0.1"));
}

TEST(GatewayNames, NothingWaitsForAResolverThatHangs) {
  std::counting_semaphore<> asked(0);
  std::counting_semaphore<> go_on(0);
  {
    GatewayNames names({.look_up = [&](const std::string&) -> GatewayNames::Answer {
      asked.release();
      go_on.acquire();
      asked.release();
      return Error{"late"};
    }});
    names.SetNames({"gateways"});
    names.Start([] {});
    asked.acquire();
    names.AwaitFirst(1ms);
    names.Stop();
  }
  go_on.release();
  asked.acquire();  // the resolver is the last to need the semaphores
}

TEST(GatewayNames, TheEndWaitsForTheFirstAnswerOnly) {
  std::atomic<int> changes = 0;
  GatewayNames names(
      {.look_up = [](const std::string&) { return GatewayNames::Answer(std::vector<std::string>{"10.0.0.1"}); }});
  names.AwaitFirst(1h);  // there is no name
  names.SetNames({"gateways"});
  names.Start([&] { ++changes; });
  names.AwaitFirst(1h);
  EXPECT_EQ(changes, 1);
  names.AwaitFirst(1h);
}

TEST(LookUpAll, GivesAddressesAsTheyAre) {
  EXPECT_THAT(LookUpAll("127.0.0.1").value(), ElementsAre("127.0.0.1"));
  EXPECT_THAT(LookUpAll("no_such_host.invalid").error(), ::testing::HasSubstr("cannot look up \"no_such_host.invalid\": "));
}

}  // namespace
}  // namespace persia::agent

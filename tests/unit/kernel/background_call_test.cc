// Calls that may hang.
#include "kernel/background_call.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong = std::chrono::seconds(30);

TEST(BackgroundCallTest, ItsEndIsAwaited) {
  const auto calls = std::make_shared<std::atomic<int>>(0);
  BackgroundCall call("test");
  EXPECT_TRUE(call.Await(kLong)) << "none runs";
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(call.Start([calls] { ++*calls; }));
    EXPECT_TRUE(call.Await(kLong));
    EXPECT_EQ(*calls, i);
    EXPECT_FALSE(call.runs());
  }
}

TEST(BackgroundCallTest, OneThatHangsIsWaitedForOnceAndMayOutliveTheObject) {
  std::promise<void> gate;
  const auto ended = std::make_shared<std::promise<void>>();
  std::optional<BackgroundCall> call(std::in_place, "test");
  ASSERT_TRUE(call->Start([open = gate.get_future().share(), ended] {
    open.wait();
    ended->set_value();
  }));
  EXPECT_FALSE(call->Await(milliseconds(1)));
  EXPECT_FALSE(call->Await(kLong)) << "in vain before";
  EXPECT_TRUE(call->runs());
  EXPECT_FALSE(call->Start([] {})) << "one thread at a time";
  call.reset();
  gate.set_value();
  ended->get_future().wait();
}

}  // namespace
}  // namespace persia::agent

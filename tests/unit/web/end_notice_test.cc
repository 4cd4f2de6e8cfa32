#include "web/end_notice.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using Outcome = EndNotice::Outcome;

constexpr std::chrono::hours kLong(1);

TEST(EndNotice, ThoseThatWaitAreToldOfTheEndAndLaterOnesAtOnce) {
  EndNotice notice(kLong);
  std::atomic<int> told = 0;
  std::vector<std::thread> waiting;
  for (int i = 0; i < EndNotice::kMostWaiting; ++i) {
    waiting.emplace_back([&] { told += notice.Await() == Outcome::kEnded ? 1 : 0; });
  }
  notice.End();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(told, EndNotice::kMostWaiting) << "whether they came before the end or after it";
  EXPECT_EQ(notice.Await(), Outcome::kEnded);
}

TEST(EndNotice, WithoutAnEndTheAnswerComesInTime) {
  EndNotice notice(milliseconds(1));
  EXPECT_EQ(notice.Await(), Outcome::kNotYet);
  EXPECT_EQ(notice.Await(), Outcome::kNotYet) << "the place is free again";
}

TEST(EndNotice, BeyondTheMostARequestDoesNotWait) {
  EndNotice notice(kLong);
  std::vector<std::thread> waiting;
  std::atomic<int> refused = 0;
  // One more than there are places: one of them is refused, and ends the wait of the others.
  for (int i = 0; i <= EndNotice::kMostWaiting; ++i) {
    waiting.emplace_back([&] {
      if (notice.Await() != Outcome::kTooMany) return;
      ++refused;
      notice.End();
    });
  }
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(refused, 1);
}

}  // namespace
}  // namespace persia::agent

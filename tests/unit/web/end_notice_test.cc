#include "web/held_requests.h"

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

TEST(EndNotice, WithoutOpenPagesNoReaderIsAwaited) {
  EndNotice notice(milliseconds(1));
  EXPECT_EQ(notice.Await(), Outcome::kNotYet);
  notice.End();
  const auto before = std::chrono::steady_clock::now();
  notice.AwaitReaders();
  EXPECT_LT(std::chrono::steady_clock::now() - before, EndNotice::kReading);
}

TEST(EndNotice, OpenPagesHaveTimeToReadTheEnd) {
  EndNotice notice(kLong);
  std::atomic<bool> is_over = false;
  // The last of these requests is refused once all places are taken: then others wait.
  std::vector<std::thread> waiting;
  for (int i = 0; i <= EndNotice::kMostWaiting; ++i) {
    waiting.emplace_back([&] {
      if (notice.Await() != Outcome::kTooMany) return;
      const auto before = std::chrono::steady_clock::now();
      notice.End();
      notice.AwaitReaders();
      is_over = std::chrono::steady_clock::now() - before >= EndNotice::kReading;
    });
  }
  for (std::thread& thread : waiting) thread.join();
  EXPECT_TRUE(is_over);
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

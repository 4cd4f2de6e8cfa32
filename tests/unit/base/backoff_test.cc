#include "base/timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST(Backoff, DoublesFromTheFirstDelayUpToTheLongest) {
  Backoff backoff(100ms, 500ms);
  for (const milliseconds delay : {100ms, 200ms, 400ms, 500ms, 500ms}) EXPECT_EQ(backoff.Next(), delay);
}

TEST(Backoff, DrawsFromTheUpperHalf) {
  milliseconds least = milliseconds::max();
  milliseconds most{0};
  for (int i = 0; i < 1000; ++i) {
    Backoff backoff(100ms, 200ms);
    const milliseconds first = backoff.NextJittered();
    least = std::min(least, first);
    most = std::max(most, first);
    EXPECT_GE(backoff.NextJittered(), 100ms);
  }
  EXPECT_GE(least, 50ms);
  EXPECT_LT(least, 60ms);
  EXPECT_GT(most, 90ms);
  EXPECT_LE(most, 100ms);
}

TEST(Backoff, WaitsAtLeastAsLongAsThePeerAsks) {
  for (int i = 0; i < 100; ++i) {
    Backoff backoff(100ms, 1000ms);
    const milliseconds within = backoff.NextJittered(80ms);
    EXPECT_TRUE(80ms <= within && within <= 100ms) << within.count();
    EXPECT_EQ(backoff.NextJittered(5000ms), 5000ms);
    EXPECT_EQ(backoff.Next(), 400ms);
  }
}

}  // namespace
}  // namespace persia::agent

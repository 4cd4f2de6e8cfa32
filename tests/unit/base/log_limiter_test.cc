#include "base/log_limiter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LogLimiterTest : public ::testing::Test {
 protected:
  bool Admit(const std::string& event, const std::string& message = "text", int severity = 2) {
    return limiter_.Admit(event, severity, message);
  }
  int Admitted(const std::string& event, int lines) {
    int admitted = 0;
    for (int i = 0; i < lines; ++i) {
      admitted += Admit(event) ? 1 : 0;
    }
    return admitted;
  }

  LogLimiter::TimePoint now_{seconds(1'000'000)};
  LogLimiter limiter_{{.now = [this] { return now_; }}};
};

TEST_F(LogLimiterTest, NoEventWritesMoreThanTenLinesInAnyMinute) {
  std::vector<LogLimiter::TimePoint> written;
  for (int i = 0; i < 10'000; ++i, now_ += milliseconds(50)) {
    if (Admit("flood")) {
      written.push_back(now_);
    }
  }
  for (size_t i = 10; i < written.size(); ++i) {
    EXPECT_GE(written[i] - written[i - 10], seconds(60)) << i;
  }
  EXPECT_GT(written.size(), 40U) << "a flood is still heard of";
  EXPECT_EQ(limiter_.suppressed(), 10'000 - written.size());
}

TEST_F(LogLimiterTest, EachEventHasItsOwnLimit) {
  EXPECT_EQ(Admitted("one", 20), 5);
  EXPECT_EQ(Admitted("other_one", 3), 3);
}

TEST_F(LogLimiterTest, TheLimitRefillsUpToTheBurst) {
  EXPECT_EQ(Admitted("e", 20), 5);
  now_ += seconds(24);
  EXPECT_EQ(Admitted("e", 20), 2);
  now_ += seconds(100'000);
  EXPECT_EQ(Admitted("e", 20), 5);
}

TEST_F(LogLimiterTest, AFloodIsReportedOnceItIsOver) {
  Admitted("e", 5);
  Admit("e", "first left out", 3);
  now_ += seconds(7);
  Admit("e", "last left out", 2);
  now_ += seconds(59);
  EXPECT_TRUE(limiter_.TakeEnded().empty());
  now_ += seconds(1);
  const auto floods = limiter_.TakeEnded();
  ASSERT_EQ(floods.size(), 1U);
  EXPECT_EQ(floods[0].event, "e");
  EXPECT_EQ(floods[0].lines, 2U);
  EXPECT_EQ(floods[0].duration, seconds(7));
  EXPECT_EQ(floods[0].severity, 3);
  EXPECT_EQ(floods[0].last_message, "last left out");
  EXPECT_TRUE(limiter_.TakeEnded().empty());
  EXPECT_TRUE(limiter_.TakeAll().empty());
  EXPECT_EQ(limiter_.suppressed(), 2U);
}

TEST_F(LogLimiterTest, AtTheEndAFloodUnderWayIsReportedToo) {
  EXPECT_EQ(Admitted("e", 8), 5);
  const auto floods = limiter_.TakeAll();
  ASSERT_EQ(floods.size(), 1U);
  EXPECT_EQ(floods[0].lines, 3U);
}

TEST_F(LogLimiterTest, EventsBeyondTheMaximumShareOneLimit) {
  int admitted = 0;
  for (int i = 0; i < 10'000; ++i) {
    admitted += Admit("event " + std::to_string(i)) ? 1 : 0;
  }
  EXPECT_EQ(admitted, 64 + 5);
  const auto floods = limiter_.TakeAll();
  ASSERT_EQ(floods.size(), 1U);
  EXPECT_EQ(floods[0].event, "other");
}

}  // namespace
}  // namespace persia::agent

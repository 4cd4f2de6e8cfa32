#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
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

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class LogTest : public ::testing::Test {
 protected:
  LogTest() { ::testing::internal::CaptureStderr(); }
  ~LogTest() override {
    ::testing::internal::GetCapturedStderr();
    SetUpLog(LogLevel::kInfo, LogFormat::kText);
    SetLogLimiter(nullptr);
  }

  static std::string Lines() {
    const std::string lines = ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return lines;
  }
};

TEST_F(LogTest, TextLineHasTimeLevelAndMessage) {
  SetUpLog(LogLevel::kInfo, LogFormat::kText);
  LogWarning("some.event", "100 % {} of it\nsecond line");
  EXPECT_THAT(Lines(),
              MatchesRegex("....-..-..T..:..:......[+-]..:.. persia-metrics-agent warning: 100 % \\{\\} of it second line\n"));
}

// Standard error is a pipe that nothing reads. At the end it is as before.
class UnreadStderr {
 public:
  UnreadStderr() {
    if (pipe(ends_) != 0) abort();
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string block(4096, 'x');
    while (write(ends_[1], block.data(), block.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~UnreadStderr() {
    dup2(saved_, STDERR_FILENO);
    for (const int fd : {ends_[0], ends_[1], saved_}) close(fd);
  }
  UnreadStderr(const UnreadStderr&) = delete;
  UnreadStderr& operator=(const UnreadStderr&) = delete;

  std::string Read() {
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string all;
    char text[4096];
    for (ssize_t size = 0; (size = read(ends_[0], text, sizeof text)) > 0;) all.append(text, static_cast<size_t>(size));
    return all;
  }

 private:
  const int saved_ = dup(STDERR_FILENO);
  int ends_[2] = {-1, -1};
};

TEST_F(LogTest, AReaderThatHangsCostsLinesAndStopsNothing) {
  SetUpLog(LogLevel::kInfo, LogFormat::kText);
  UnreadStderr unread;
  const auto written = [before = LogLinesWritten()] {
    const auto now = LogLinesWritten();
    return now[1].second - before[1].second;  // warnings
  };
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) LogWarning("some.event", "lost");
  LogWarning("some.event", std::string(100'000, 'y'));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << "it is waited for once";
  EXPECT_EQ(written(), 0U);
  EXPECT_THAT(unread.Read(), Not(HasSubstr("lost")));
  LogWarning("some.event", "read again");
  LogWarning("some.event", "and again");
  EXPECT_THAT(unread.Read(),
              MatchesRegex(".*warning: read again\n.*warning: 101 log lines were lost, because nothing read stderr\n"
                           ".*warning: and again\n"));
  EXPECT_EQ(written(), 3U);
}

TEST_F(LogTest, ALineHasItsTimeInAnyYear) {
  const std::string zone = getenv("TZ") == nullptr ? "" : getenv("TZ");
  const auto in_zone = [](const char* name, time_t seconds, long nanoseconds) {
    setenv("TZ", name, 1);
    tzset();
    return LogTime({.tv_sec = seconds, .tv_nsec = nanoseconds});
  };
  EXPECT_EQ(in_zone("UTC0", 1'795'000'000, 123'999'999), "2026-11-18T11:06:40.123+00:00");
  EXPECT_EQ(in_zone("UTC0", -1, 500'000'000), "1969-12-31T23:59:59.500+00:00");
  EXPECT_EQ(in_zone("UTC0", 10'413'792'000, 0), "2300-01-01T00:00:00.000+00:00");
  EXPECT_EQ(in_zone("ABC-5:30", 0, 0), "1970-01-01T05:30:00.000+05:30");
  EXPECT_EQ(in_zone("ABC+3:30", 0, 7'000'000), "1969-12-31T20:30:00.007-03:30");
  if (zone.empty()) {
    unsetenv("TZ");
  } else {
    setenv("TZ", zone.c_str(), 1);
  }
  tzset();
}

TEST_F(LogTest, JsonLineIsJsonWhateverItSays) {
  SetUpLog(LogLevel::kInfo, LogFormat::kJson);
  LogError("some.event", "a \"quote\", a \\, {}, %v, a\nline, \x01 and \xff");
  const std::string line = Lines();
  EXPECT_THAT(line, ::testing::StartsWith("{\"time\":\"20"));
  EXPECT_THAT(line, ::testing::EndsWith("\",\"level\":\"error\",\"event\":\"some.event\",\"message\":"
                                        "\"a \\\"quote\\\", a \\\\, {}, %v, a\\nline, \\u0001 and \xef\xbf\xbd\"}\n"));
}

TEST_F(LogTest, LowerLevelsAreLeftOut) {
  SetUpLog(LogLevel::kWarning, LogFormat::kText);
  LogDebug("e", "debug");
  LogInfo("e", "info");
  LogWarning("e", "warning");
  EXPECT_THAT(Lines(),
              ::testing::AllOf(HasSubstr("warning"), ::testing::Not(HasSubstr("info")), ::testing::Not(HasSubstr("debug"))));
  SetUpLog(LogLevel::kOff, LogFormat::kText);
  LogError("e", "error");
  EXPECT_EQ(Lines(), "");
}

TEST_F(LogTest, AFloodIsCutAndSaidInOneLine) {
  LogLimiter::TimePoint now;
  SetLogLimiter(std::make_shared<LogLimiter>(LogLimiter::Options{.now = [&] { return now; }}));
  for (int i = 1; i <= 100; ++i) {
    LogInfo("flood", "line " + std::to_string(i));
  }
  LogError("other", "heard");
  EXPECT_THAT(Lines(),
              ::testing::AllOf(HasSubstr("line 5\n"), ::testing::Not(HasSubstr("line 6")), HasSubstr("error: heard\n")));
  now += std::chrono::seconds(61);
  SummarizeEndedFloods();
  EXPECT_THAT(Lines(), ::testing::EndsWith("info: 95 more lines of flood were left out; the last said: line 100\n"));
  SummarizeEndedFloods();
  EXPECT_EQ(Lines(), "");
  for (int i = 0; i < 6; ++i) {
    LogWarning("flood", "again");
  }
  Lines();
  SummarizeAllFloods();
  EXPECT_THAT(Lines(), HasSubstr("warning: 1 more line of flood was left out; it said: again\n"));
  for (int i = 0; i < 2; ++i) {
    LogWarning("flood", "and again");
    now += std::chrono::seconds(7);
  }
  Lines();
  SummarizeAllFloods();
  EXPECT_THAT(Lines(), HasSubstr("warning: 2 more lines of flood were left out in 7 s; the last said: and again\n"));
}

TEST_F(LogTest, WhatWasAskedForIsNotCut) {
  SetUpLog(LogLevel::kDebug, LogFormat::kText);
  SetLogLimiter(std::make_shared<LogLimiter>());
  for (int i = 1; i <= 100; ++i) {
    LogDebug("web", "request " + std::to_string(i));
  }
  EXPECT_THAT(Lines(), HasSubstr("request 100\n"));
  SetLogLimiter(nullptr);
  for (int i = 1; i <= 100; ++i) {
    LogError("config", "error " + std::to_string(i));
  }
  EXPECT_THAT(Lines(), HasSubstr("error 100\n")) << "at the start";
}

TEST_F(LogTest, LinesBelowTheLevelTakeNoRoom) {
  SetUpLog(LogLevel::kWarning, LogFormat::kText);
  const auto limiter = std::make_shared<LogLimiter>();
  SetLogLimiter(limiter);
  for (int i = 0; i < 100; ++i) {
    LogInfo("push", "not written anyway");
  }
  LogWarning("push", "heard");
  EXPECT_THAT(Lines(), HasSubstr("heard"));
  EXPECT_EQ(limiter->suppressed(), 0U);
}

TEST_F(LogTest, StateIsLoggedWhenItChanges) {
  StateLog state("gateway");
  EXPECT_TRUE(state.Good("up"));
  EXPECT_FALSE(state.Good("up"));
  EXPECT_THAT(Lines(), HasSubstr("info: up\n"));
  EXPECT_TRUE(state.Bad("away", "first reason"));
  EXPECT_FALSE(state.Bad("away", "second reason"));
  EXPECT_THAT(Lines(), ::testing::EndsWith("warning: first reason\n"));
  EXPECT_TRUE(state.Bad("refused", "another state"));
  EXPECT_THAT(Lines(), HasSubstr("another state"));
  EXPECT_TRUE(state.Good("up"));
  EXPECT_THAT(Lines(), MatchesRegex(".*info: up, after [0-9]+ s\n"));
}

TEST_F(LogTest, NoChangeOfStateIsLeftOut) {
  const auto limiter = std::make_shared<LogLimiter>();
  SetLogLimiter(limiter);
  StateLog state("gateway");
  for (int i = 0; i < 50; ++i) {
    state.Bad("away", "away " + std::to_string(i) + '.');
    state.Bad("refused", "refused " + std::to_string(i) + '.');
    state.Good("up " + std::to_string(i) + '.');
  }
  const std::string lines = Lines();
  for (int i = 0; i < 50; ++i) {
    for (const char* const change : {"away ", "refused ", "up "})
      EXPECT_THAT(lines, HasSubstr(change + std::to_string(i) + '.'));
  }
  EXPECT_EQ(limiter->suppressed(), 0U);
}

TEST_F(LogTest, RecoveryIsWorthALineOnlyAfterTrouble) {
  StateLog state("pace");
  EXPECT_FALSE(state.Recovered("fine"));
  EXPECT_TRUE(state.Bad("slow", "too slow"));
  EXPECT_TRUE(state.Recovered("fine"));
  EXPECT_FALSE(state.Recovered("fine"));
}

}  // namespace
}  // namespace persia::agent

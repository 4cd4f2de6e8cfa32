// What a target's answer does to a request: it is sent again, halved, redirected or dropped, and what the log says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "remote/receiver.h"
#include "remote/remote_write_fixture.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr auto kAgentGoesOn = RemoteWrite::Ending::kGoesOn;

class RemoteWriteAnswers : public RemoteWriteFixture {};

struct Answer {
  int status;
  bool again;
};

class RemoteWriteStatusTest : public RemoteWriteAnswers, public ::testing::WithParamInterface<Answer> {};

TEST_P(RemoteWriteStatusTest, DecidesWhetherARequestIsSentAgain) {
  Receiver receiver([](size_t number) {
    return number == 0 ? ServerResponse{.status = GetParam().status, .body = "why not\nmore"} : ServerResponse{.status = 0};
  });
  StartAgent(receiver.url());
  target_->Offer(Next());
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() == (GetParam().again ? 2U : 1U); }));
  ASSERT_TRUE(target_->Finish(Next(), std::chrono::minutes(10), kAgentGoesOn).ok());
  const auto stats = target_->stats();
  const std::string answer = "status " + std::to_string(GetParam().status) + ": why not more";
  if (GetParam().again) {
    EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(2)));
    EXPECT_EQ(receiver.bodies()[0], receiver.bodies()[1]) << "byte for byte";
    EXPECT_EQ(stats.retries, 1U);
    EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("cannot send to db: " + answer), HasSubstr("accepts samples again")));
  } else {
    EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(2)));
    EXPECT_THAT(stats.samples_refused, ElementsAre(Pair(GetParam().status, 1U)));
    EXPECT_EQ(stats.retries, 0U);
    EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("refuses 1 samples, which are dropped: " + answer),
                                             HasSubstr("accepts samples again; 0 wait, 1 were refused")));
  }
  EXPECT_EQ(stats.pending_samples, 0U);
  EXPECT_THAT(stats.requests, Contains(Pair(GetParam().status, 1U)));
  EXPECT_EQ(std::accumulate(stats.request_durations.counts.begin(), stats.request_durations.counts.end(), 0U),
            receiver.bodies().size());
}

INSTANTIATE_TEST_SUITE_P(Statuses, RemoteWriteStatusTest,
                         ::testing::Values(Answer{400, false}, Answer{409, false}, Answer{413, false}, Answer{422, false},
                                           Answer{301, true}, Answer{401, true}, Answer{404, true}, Answer{408, true},
                                           Answer{429, true}, Answer{500, true}, Answer{599, true}),
                         [](const auto& info) { return std::to_string(info.param.status); });

// Each header and query of a request may be secret, and error pages quote requests.
TEST_F(RemoteWriteAnswers, ARequestThatIsQuotedIsLoggedWithoutItsSecrets) {
  for (const int status : {404, 400}) {
    Receiver receiver([&](size_t number) {
      return number == 0 ? ServerResponse{.status = status,
                                          .body =
                                              "POST /api/v1/write?token=SECRET%20QUERY&db=ads, token "
                                              "SECRET QUERY, X-Api-Key: SECRETHEADER, X-Team: team-a"}
                         : ServerResponse{.status = 0};
    });
    options_.endpoint.headers = {{"X-Api-Key", "SECRETHEADER"}, {"X-Team", "team-a"}};
    StartAgent(receiver.url() + "?token=SECRET%20QUERY&db=ads");
    target_->Offer(Next());
    EXPECT_TRUE(receiver.WaitFor([&] { return !receiver.bodies().empty(); }));
    ASSERT_TRUE(target_->Finish(Next(), std::chrono::minutes(10), kAgentGoesOn).ok());
    EXPECT_THAT(log_.Text(), HasSubstr("POST /api/v1/write?***, token ***, X-Api-Key: ***"));
    EXPECT_THAT(log_.Text(), Not(HasSubstr("SECRET")));
  }
}

TEST_F(RemoteWriteAnswers, ARepeatedRefusalIsLoggedOnce) {
  Receiver receiver(
      [](size_t number) { return ServerResponse{.status = 400, .body = "out of order, " + std::to_string(number)}; });
  StartAgent(receiver.url());
  for (int i = 0; i < 5; ++i) {
    target_->Offer(Next());
    EXPECT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() == static_cast<size_t>(i) + 1; }));
  }
  EXPECT_TRUE(target_->Finish(nullptr, std::chrono::minutes(10), kAgentGoesOn).ok());
  EXPECT_THAT(log_.Messages(), SizeIs(1));
  EXPECT_THAT(target_->stats().requests, ElementsAre(Pair(400, 5U)));
}

TEST_F(RemoteWriteAnswers, EachChangeOfTheAnswerIsLogged) {
  constexpr int kAnswers[] = {401, 401, 0, 404, 403, 403, 0, 400, 0};
  Receiver receiver(
      [&](size_t number) { return ServerResponse{.status = number < std::size(kAnswers) ? kAnswers[number] : 0}; });
  StartAgent(receiver.url());
  for (int i = 1; i <= 4; ++i) {
    target_->Offer(Next());
    EXPECT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() >= std::array{3U, 7U, 8U, 9U}[i - 1]; }));
  }
  ASSERT_TRUE(target_->Finish(nullptr, std::chrono::minutes(10), kAgentGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(2), At(4)));
  EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("status 401"), HasSubstr("accepts samples again"), HasSubstr("status 404"),
                                           HasSubstr("status 403"), HasSubstr("accepts samples again"), HasSubstr("status 400"),
                                           HasSubstr("accepts samples again; 0 wait, 1 were refused, after")));
}

TEST_F(RemoteWriteAnswers, ARequestThatIsTooLargeIsHalved) {
  Receiver receiver;
  receiver.SetMaxSeries(3);
  StartAgent(receiver.url());
  target_->Offer(Next(20));
  ASSERT_TRUE(target_->Finish(Next(20), std::chrono::minutes(10), kAgentGoesOn).ok());
  for (int series = 100; series < 120; ++series) {
    EXPECT_THAT(receiver.Of("m" + std::to_string(series) + "{job=dlrm}"), ElementsAre(At(1), At(2)));
  }
  EXPECT_EQ(target_->stats().samples_sent, 40U);
  EXPECT_THAT(target_->stats().samples_refused, IsEmpty());
  EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("db finds a request of 20 samples too large (status 413)")));
}

TEST_F(RemoteWriteAnswers, OfAHalvedRequestOnlyTheRestIsDropped) {
  Receiver receiver([](size_t number) { return ServerResponse{.status = number == 0 ? 413 : number == 1 ? 0 : 500}; });
  // The samples are minutes old.
  options_.queue_max_age =
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now() - (begin_ + seconds(1))) + seconds(12);
  StartAgent(receiver.url());
  target_->Offer(Next(6));
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() > 2; }));
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  while (target_->stats().dropped_samples["queue_age"] == 0 && std::chrono::steady_clock::now() < end) {
    target_->Offer(Next(0));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(target_->stats().samples_sent, 3U);
  EXPECT_EQ(target_->stats().dropped_samples["queue_age"], 3U);
}

TEST_F(RemoteWriteAnswers, ASeriesThatIsTooLargeByItselfIsDropped) {
  Receiver receiver;
  receiver.SetMaxSeries(0);
  StartAgent(receiver.url());
  ASSERT_TRUE(target_->Finish(Next(5), std::chrono::minutes(10), kAgentGoesOn).ok());
  EXPECT_THAT(target_->stats().samples_refused, ElementsAre(Pair(413, 5U)));
  EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("sent in halves"),
                                           HasSubstr("refuses 1 samples, which are dropped: status 413: too large")));
}

// A request stays the agent's until it ends up on another host.
TEST_F(RemoteWriteAnswers, RedirectsAreFollowedOnTheSameHostOnly) {
  Receiver receiver;
  const std::string elsewhere = "http://localhost" + receiver.url().substr(receiver.url().rfind(':'));
  std::string location = elsewhere;
  std::mutex mutex;
  Receiver moved([&](size_t) {
    const std::lock_guard lock(mutex);
    return ServerResponse{.status = 307, .headers = {{"Location", location}}};
  });
  options_.endpoint.headers = {{"X-Scope-OrgID", "team"}};
  StartAgent(moved.url());
  target_->Offer(Next());
  EXPECT_TRUE(moved.WaitFor([&] { return moved.bodies().size() >= 2; }));
  EXPECT_EQ(moved.last_headers().at("X-Scope-OrgID"), "team");
  EXPECT_EQ(receiver.samples(), 0U);
  {
    const std::lock_guard lock(mutex);
    location = receiver.url();  // 127.0.0.1, another port
  }
  ASSERT_TRUE(target_->Finish(Next(), std::chrono::minutes(10), kAgentGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(2)));
  EXPECT_EQ(receiver.last_headers().at("Content-Encoding"), "snappy");
  EXPECT_EQ(receiver.last_headers().count("X-Scope-OrgID"), 0U);
  const std::string origin = elsewhere.substr(0, elsewhere.find("/api"));
  EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("status 307: it redirects to " + origin + ", which is not followed"),
                                           HasSubstr("accepts samples again")));
}

TEST_F(RemoteWriteAnswers, ARedirectToNowhereIsNamed) {
  size_t lines = 0;
  for (const char* location : {"", " ", "http://", "http://other host/w"}) {
    Receiver receiver([&](size_t number) {
      return number == 0 ? ServerResponse{.status = 307, .headers = {{"Location", location}}} : ServerResponse{.status = 0};
    });
    StartAgent(receiver.url());
    ASSERT_TRUE(target_->Finish(Next(), std::chrono::minutes(10), kAgentGoesOn).ok()) << location;
    ASSERT_THAT(log_.Messages(), SizeIs(lines + 2)) << location;
    EXPECT_THAT(log_.Messages()[lines], HasSubstr("status 307: it redirects, but its Location is missing or not a URL; set the "
                                                  "url to where it accepts samples"))
        << location;
    lines += 2;
  }
}

TEST_F(RemoteWriteAnswers, RedirectsMayBeOff) {
  Receiver receiver;
  Receiver moved([&](size_t) { return ServerResponse{.status = 307, .headers = {{"Location", receiver.url()}}}; });
  options_.endpoint.follow_redirects = false;
  StartAgent(moved.url());
  target_->Offer(Next());
  EXPECT_TRUE(moved.WaitFor([&] { return moved.bodies().size() >= 2; }));
  EXPECT_EQ(receiver.samples(), 0U);
}

TEST_F(RemoteWriteAnswers, RetryAfterIsHonoured) {
  Receiver receiver([](size_t number) {
    return number == 0 ? ServerResponse{.status = 429, .headers = {{"Retry-After", "1"}}} : ServerResponse{.status = 0};
  });
  StartAgent(receiver.url());
  const auto begin = std::chrono::steady_clock::now();
  target_->Offer(Next());
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 1; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, seconds(1));
  EXPECT_THAT(log_.Messages(), Contains(HasSubstr("wait in the disk queue for the 1 s that it asks for (Retry-After)")));
}

// What was queued as a native histogram is given up only by a target that is to get none.
struct NativeAnswer {
  int status;
  const char* body;
  bool is_dropped;
};

class RemoteWriteNativeTest : public RemoteWriteAnswers, public ::testing::WithParamInterface<NativeAnswer> {};

TEST_P(RemoteWriteNativeTest, QueuedHistogramsAreDroppedOnlyIfTheTargetRefusesThem) {
  const int status = GetParam().status;  // clang 14 captures no structured bindings
  const char* const body = GetParam().body;
  for (const bool sends_native : {true, false}) {
    // The first request has the gauge, the second the histogram.
    Receiver receiver([&](size_t number) {
      return number == 1 ? ServerResponse{.status = status, .body = body} : ServerResponse{.status = 0};
    });
    Receiver away([](size_t) { return ServerResponse{.status = 500}; });
    options_.sends_native = true;
    StartAgent(away.url());
    target_->Offer(NextWithHistogram());
    EXPECT_TRUE(away.WaitFor([&] { return !away.bodies().empty(); }));
    options_.sends_native = sends_native;
    StartAgent(receiver.url());
    ASSERT_TRUE(target_->Finish(nullptr, std::chrono::minutes(10), kAgentGoesOn).ok());
    const bool is_dropped = status == 400 || (GetParam().is_dropped && !sends_native);
    EXPECT_THAT(receiver.bodies(), SizeIs(is_dropped ? 2 : 3));
    EXPECT_THAT(receiver.Of(kWrittenSeries), SizeIs(1)) << "no number is lost with a histogram";
    EXPECT_EQ(target_->stats().samples_refused[status], is_dropped ? 1U : 0U);
    EXPECT_EQ(target_->stats().pending_samples, 0U);
    EXPECT_EQ(log_.Text().find("of native histograms, queued while") != std::string::npos,
              GetParam().is_dropped && !sends_native);
  }
}

INSTANTIATE_TEST_SUITE_P(Answers, RemoteWriteNativeTest,
                         ::testing::Values(NativeAnswer{500, "native histograms are disabled", true},
                                           NativeAnswer{400, "native histograms are disabled", true},
                                           NativeAnswer{400, "out of order", false}, NativeAnswer{404, "", false},
                                           NativeAnswer{503, "overloaded", false}),
                         [](const auto& info) { return std::to_string(info.index) + "_" + std::to_string(info.param.status); });

// The names of a gauge's refusal do not matter.
TEST_F(RemoteWriteAnswers, NumbersAreNotDroppedForAnAnswerAboutHistograms) {
  Receiver receiver([](size_t number) {
    return number == 0 ? ServerResponse{.status = 500, .body = "no native histogram today"} : ServerResponse{.status = 0};
  });
  StartAgent(receiver.url());
  ASSERT_TRUE(target_->Finish(Next(), std::chrono::minutes(10), kAgentGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1)));
}

// Otherwise a target whose limit fits no request at all would get two requests for each sample, at full speed.
TEST_F(RemoteWriteAnswers, ASampleThatIsTooLargeAloneIsFollowedByABackoff) {
  std::vector<std::chrono::steady_clock::time_point> times;
  std::mutex mutex;
  Receiver receiver([&](size_t) {
    const std::lock_guard lock(mutex);
    times.push_back(std::chrono::steady_clock::now());
    return ServerResponse{.status = 413};
  });
  StartAgent(receiver.url(), milliseconds(100), milliseconds(200));
  target_->Offer(Next(4));
  // The end would shorten a backoff that runs.
  ASSERT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() == 7; }));
  ASSERT_TRUE(target_->Finish(nullptr, std::chrono::minutes(10), kAgentGoesOn).ok());
  ASSERT_EQ(times.size(), 7U) << "4, 2, 1, 1, 2, 1, 1";
  for (const size_t next : {3U, 4U, 6U}) EXPECT_GE(times[next] - times[next - 1], milliseconds(50)) << next;
  EXPECT_EQ(target_->stats().samples_refused[413], 4U);
}

// Not even while the program goes on: what waits belongs to the next agent.
TEST_F(RemoteWriteAnswers, NothingIsSentAfterTheEnd) {
  Receiver receiver([](size_t) { return ServerResponse{.status = 503}; });
  StartAgent(receiver.url());
  target_->Offer(Next());
  ASSERT_TRUE(receiver.WaitFor([&] { return !receiver.bodies().empty(); }));
  ASSERT_FALSE(target_->Finish(Next(), milliseconds(100), kAgentGoesOn).ok());
  const size_t requests = receiver.bodies().size();
  std::this_thread::sleep_for(milliseconds(300));  // 15 times the longest delay
  EXPECT_LE(receiver.bodies().size(), requests + 1) << "one may have been under way";
}

// A target that is in trouble does not get a burst of attempts for each request.
TEST_F(RemoteWriteAnswers, TheBackoffGoesOnAfterADroppedRequest) {
  constexpr int kAnswers[] = {500, 500, 500, 500, 400, 500, 0};
  std::vector<std::chrono::steady_clock::time_point> times;
  std::mutex mutex;
  Receiver receiver([&](size_t number) {
    const std::lock_guard lock(mutex);
    times.push_back(std::chrono::steady_clock::now());
    return ServerResponse{.status = number < std::size(kAnswers) ? kAnswers[number] : 0};
  });
  StartAgent(receiver.url(), milliseconds(20), milliseconds(10'000));
  target_->Offer(Next());
  target_->Offer(Next());
  ASSERT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() >= 7; }));
  ASSERT_TRUE(target_->Finish(nullptr, std::chrono::minutes(10), kAgentGoesOn).ok());
  ASSERT_GE(times.size(), 7U);
  EXPECT_GE(times[6] - times[5], milliseconds(160)) << "half of the fifth delay, 320 ms";
}

}  // namespace
}  // namespace persia::agent

#include "remote/remote_write.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "captured_log.h"
#include "peers/scripted_peer.h"
#include "push/snapshots.h"
#include "remote/receiver.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr auto kGoesOn = RemoteWrite::Ending::kGoesOn;

class RemoteWriteTest : public ::testing::Test {
 protected:
  void SetUp() override { fd_ = open(temporary_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }
  void TearDown() override {
    target_.reset();
    close(fd_);
  }

  void StartAgent(const std::string& url) {
    target_.reset();
    options_.name = "db";
    options_.url = url;
    options_.directory_fd = fd_;
    options_.directory = temporary_.path();
    options_.file_name = "agent.remote";
    options_.min_backoff = milliseconds(1);
    options_.max_backoff = milliseconds(20);
    auto target = RemoteWrite::Open(options_);
    ASSERT_TRUE(target.ok()) << target.error();
    target_ = std::move(target).value();
  }
  // Gauges of one layout, a second after the last one.
  std::shared_ptr<const Snapshot> Next(size_t series = 1) {
    if (layout_ == nullptr || layout_->families.size() != series) {
      std::vector<Sample> samples;
      for (size_t i = 0; i < series; ++i) samples.push_back({"m" + std::to_string(100 + i), MetricType::kGauge, 0});
      layout_ = Snap({{"dlrm", {}}}, samples).layout;
    }
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = layout_;
    snapshot->values.assign(series, ++count_);
    snapshot->collected_at = begin_ + seconds(count_);
    return snapshot;
  }
  static std::string At(int count) {
    const auto at = std::chrono::time_point_cast<milliseconds>(begin_ + seconds(count));
    return std::to_string(count) + " @" + std::to_string(at.time_since_epoch().count());
  }

  static inline const auto begin_ = std::chrono::time_point_cast<seconds>(std::chrono::system_clock::now()) - seconds(500);
  const TemporaryDirectory temporary_;
  int fd_ = -1;
  CapturedLog log_;
  RemoteWrite::Options options_;
  std::shared_ptr<const Layout> layout_;
  int count_ = 0;
  std::unique_ptr<RemoteWrite> target_;
};

constexpr char kWrittenSeries[] = "m100{job=dlrm}";

TEST_F(RemoteWriteTest, SnapshotsArriveWithTheHeadersOfTheProtocol) {
  Receiver receiver;
  options_.headers = {{"X-Scope-OrgID", "team"}};
  options_.http.user_agent = "persia/1";
  StartAgent(receiver.url());
  target_->Offer(Next());
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 1; }));
  ASSERT_TRUE(target_->Finish(Next(), seconds(10), kGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(2)));
  const auto headers = receiver.last_headers();
  EXPECT_EQ(headers.at("Content-Type"), "application/x-protobuf");
  EXPECT_EQ(headers.at("Content-Encoding"), "snappy");
  EXPECT_EQ(headers.at("X-Prometheus-Remote-Write-Version"), "0.1.0");
  EXPECT_EQ(headers.at("User-Agent"), "persia/1");
  EXPECT_EQ(headers.at("X-Scope-OrgID"), "team");
  const auto stats = target_->stats();
  EXPECT_EQ(stats.sending.samples_sent, 2U);
  EXPECT_GT(stats.sending.bytes, 50U);
  EXPECT_EQ(stats.sending.highest_sent_ms,
            std::chrono::duration_cast<milliseconds>((begin_ + seconds(2)).time_since_epoch()).count());
  EXPECT_THAT(log_.Messages(), IsEmpty());
}

struct Answer {
  int status;
  bool again;
};

class RemoteWriteAnswerTest : public RemoteWriteTest, public ::testing::WithParamInterface<Answer> {};

TEST_P(RemoteWriteAnswerTest, DecidesWhetherARequestIsSentAgain) {
  Receiver receiver([](size_t number) {
    return number == 0 ? ServerResponse{.status = GetParam().status, .body = "why not\nmore"} : ServerResponse{.status = 0};
  });
  StartAgent(receiver.url());
  target_->Offer(Next());
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() == (GetParam().again ? 2U : 1U); }));
  ASSERT_TRUE(target_->Finish(Next(), seconds(10), kGoesOn).ok());
  const auto stats = target_->stats();
  const std::string answer = "status " + std::to_string(GetParam().status) + ": why not more";
  if (GetParam().again) {
    EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(2)));
    EXPECT_EQ(receiver.bodies()[0], receiver.bodies()[1]) << "byte for byte";
    EXPECT_EQ(stats.sending.retries, 1U);
    EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("cannot send to db: " + answer), HasSubstr("accepts samples again")));
  } else {
    EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(2)));
    EXPECT_THAT(stats.sending.samples_refused, ElementsAre(Pair(GetParam().status, 1U)));
    EXPECT_EQ(stats.sending.retries, 0U);
    EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("refuses 1 samples, which are dropped: " + answer),
                                             HasSubstr("accepts samples again; 0 wait, 1 were refused")));
  }
  EXPECT_EQ(stats.pending_samples, 0U);
  EXPECT_THAT(stats.sending.requests, Contains(Pair(GetParam().status, 1U)));
  EXPECT_EQ(std::accumulate(stats.sending.request_durations.counts.begin(), stats.sending.request_durations.counts.end(), 0U),
            receiver.bodies().size());
}

INSTANTIATE_TEST_SUITE_P(Statuses, RemoteWriteAnswerTest,
                         ::testing::Values(Answer{400, false}, Answer{409, false}, Answer{413, false}, Answer{422, false},
                                           Answer{301, true}, Answer{401, true}, Answer{403, true}, Answer{404, true},
                                           Answer{405, true}, Answer{407, true}, Answer{408, true}, Answer{410, true},
                                           Answer{415, true}, Answer{429, true}, Answer{500, true}, Answer{501, true},
                                           Answer{503, true}, Answer{599, true}),
                         [](const auto& info) { return std::to_string(info.param.status); });

TEST_F(RemoteWriteTest, ARepeatedRefusalIsLoggedOnce) {
  Receiver receiver(
      [](size_t number) { return ServerResponse{.status = 400, .body = "out of order, " + std::to_string(number)}; });
  StartAgent(receiver.url());
  for (int i = 0; i < 5; ++i) {
    target_->Offer(Next());
    EXPECT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() == static_cast<size_t>(i) + 1; }));
  }
  EXPECT_TRUE(target_->Finish(nullptr, seconds(10), kGoesOn).ok());
  EXPECT_THAT(log_.Messages(), SizeIs(1));
  EXPECT_THAT(target_->stats().sending.requests, ElementsAre(Pair(400, 5U)));
}

TEST_F(RemoteWriteTest, EachChangeOfTheAnswerIsLogged) {
  constexpr int kAnswers[] = {401, 401, 0, 404, 403, 403, 0, 400, 0};
  Receiver receiver(
      [&](size_t number) { return ServerResponse{.status = number < std::size(kAnswers) ? kAnswers[number] : 0}; });
  options_.max_shards = 1;
  StartAgent(receiver.url());
  for (int i = 1; i <= 4; ++i) {
    target_->Offer(Next());
    EXPECT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() >= std::array{3U, 7U, 8U, 9U}[i - 1]; }));
  }
  ASSERT_TRUE(target_->Finish(nullptr, seconds(10), kGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(2), At(4)));
  EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("status 401"), HasSubstr("accepts samples again"), HasSubstr("status 404"),
                                           HasSubstr("status 403"), HasSubstr("accepts samples again"), HasSubstr("status 400"),
                                           HasSubstr("accepts samples again; 0 wait, 1 were refused, after")));
}

TEST_F(RemoteWriteTest, ARequestThatIsTooLargeIsHalved) {
  Receiver receiver;
  receiver.SetMaxSeries(3);
  options_.max_shards = 1;
  StartAgent(receiver.url());
  target_->Offer(Next(20));
  ASSERT_TRUE(target_->Finish(Next(20), seconds(10), kGoesOn).ok());
  for (int series = 100; series < 120; ++series) {
    EXPECT_THAT(receiver.Of("m" + std::to_string(series) + "{job=dlrm}"), ElementsAre(At(1), At(2)));
  }
  EXPECT_EQ(target_->stats().sending.samples_sent, 40U);
  EXPECT_THAT(target_->stats().sending.samples_refused, IsEmpty());
  EXPECT_THAT(log_.Messages(), IsEmpty());
}

TEST_F(RemoteWriteTest, OfAHalvedRequestOnlyTheRestIsDropped) {
  Receiver receiver([](size_t number) { return ServerResponse{.status = number == 0 ? 413 : number == 1 ? 0 : 500}; });
  options_.max_shards = 1;
  // The samples are minutes old.
  options_.queue_max_age =
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now() - (begin_ + seconds(1))) + seconds(5);
  StartAgent(receiver.url());
  target_->Offer(Next(6));
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() > 2; }));
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  while (target_->stats().dropped_samples["queue_age"] == 0 && std::chrono::steady_clock::now() < end) {
    target_->Offer(Next(0));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(target_->stats().sending.samples_sent, 3U);
  EXPECT_EQ(target_->stats().dropped_samples["queue_age"], 3U);
}

TEST_F(RemoteWriteTest, ASeriesThatIsTooLargeByItselfIsDropped) {
  Receiver receiver;
  receiver.SetMaxSeries(0);
  StartAgent(receiver.url());
  ASSERT_TRUE(target_->Finish(Next(5), seconds(10), kGoesOn).ok());
  EXPECT_THAT(target_->stats().sending.samples_refused, ElementsAre(Pair(413, 5U)));
  EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("refuses 1 samples, which are dropped: status 413: too large")));
}

// A request stays the agent's until it ends up on another host.
TEST_F(RemoteWriteTest, RedirectsAreFollowedOnTheSameHostOnly) {
  Receiver receiver;
  const std::string elsewhere = "http://localhost" + receiver.url().substr(receiver.url().rfind(':'));
  std::string location = elsewhere;
  std::mutex mutex;
  Receiver moved([&](size_t) {
    const std::lock_guard lock(mutex);
    return ServerResponse{.status = 307, .headers = {{"Location", location}}};
  });
  StartAgent(moved.url());
  target_->Offer(Next());
  EXPECT_TRUE(moved.WaitFor([&] { return moved.bodies().size() >= 2; }));
  EXPECT_EQ(receiver.samples(), 0U);
  {
    const std::lock_guard lock(mutex);
    location = receiver.url();  // 127.0.0.1, another port
  }
  ASSERT_TRUE(target_->Finish(Next(), seconds(10), kGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(2)));
  EXPECT_EQ(receiver.last_headers().at("Content-Encoding"), "snappy");
  const std::string origin = elsewhere.substr(0, elsewhere.find("/api"));
  EXPECT_THAT(log_.Messages(), ElementsAre(HasSubstr("status 307: it redirects to " + origin + ", which is not followed"),
                                           HasSubstr("accepts samples again")));
}

TEST_F(RemoteWriteTest, RetryAfterIsHonoured) {
  Receiver receiver([](size_t number) {
    return number == 0 ? ServerResponse{.status = 429, .headers = {{"Retry-After", "1"}}} : ServerResponse{.status = 0};
  });
  StartAgent(receiver.url());
  const auto begin = std::chrono::steady_clock::now();
  target_->Offer(Next());
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 1; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, seconds(1));
}

// After a broken connection, an invalid answer or a timeout, the same bytes are sent again.
TEST_F(RemoteWriteTest, TransportErrorsAreRetried) {
  options_.http.total_timeout = milliseconds(200);
  options_.max_shards = 1;
  ScriptedPeer peer({Reply::Close(), Reply::Raw("HTTP/1.1 2"), Reply::Raw("no HTTP\r\n\r\n"), Reply::Silence(), Reply::Close(),
                     Reply::Status(200)});
  StartAgent("http://" + peer.address() + "/write");
  target_->Offer(Next());
  peer.WaitForRequests(6);
  ASSERT_TRUE(target_->Finish(nullptr, seconds(10), kGoesOn).ok());
  const auto requests = peer.requests();
  ASSERT_THAT(requests, SizeIs(::testing::Ge(6U)));  // the last one twice, if its answer takes too long
  for (const std::string& request : requests) {
    EXPECT_THAT(LinesOfBody(request.substr(request.find("\r\n\r\n") + 4)), ElementsAre(kWrittenSeries + (" " + At(1))));
  }
  EXPECT_EQ(target_->stats().sending.samples_sent, 1U);
}

TEST_F(RemoteWriteTest, SamplesNotSentInTimeWaitForTheNextAgent) {
  const ScriptedPeer silent({Reply::Silence()});
  options_.http.total_timeout = seconds(600);
  StartAgent("http://" + silent.address() + "/write");
  target_->Offer(Next());
  const auto begin = std::chrono::steady_clock::now();
  const Status left = target_->Finish(Next(), milliseconds(300), kGoesOn);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(60));
  ASSERT_FALSE(left.ok());
  EXPECT_THAT(left.error(), HasSubstr("2 samples wait in " + temporary_.path()));
  Receiver receiver;
  StartAgent(receiver.url());
  EXPECT_EQ(target_->stats().pending_samples, 2U);
  ASSERT_TRUE(target_->Finish(Next(), seconds(10), kGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(2), At(3)));
}

TEST_F(RemoteWriteTest, InterruptEndsFinish) {
  ScriptedPeer silent({Reply::Silence()});
  StartAgent("http://" + silent.address() + "/write");
  target_->Offer(Next());
  silent.WaitForRequests(1);
  std::thread impatient([this] { target_->Interrupt(); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(target_->Finish(nullptr, seconds(60), kGoesOn).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(50));
  impatient.join();
}

TEST_F(RemoteWriteTest, StaleMarkersAreSentAtTheEndOfTheJob) {
  Receiver receiver;
  StartAgent(receiver.url());
  ASSERT_TRUE(target_->Finish(Next(), seconds(10), RemoteWrite::Ending::kEnds).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), HasSubstr("stale")));
}

TEST_F(RemoteWriteTest, TheSendIntervalSkipsSnapshots) {
  options_.send_interval = seconds(3);
  Receiver receiver;
  StartAgent(receiver.url());
  for (int i = 0; i < 7; ++i) {
    target_->Offer(Next());
    if (i % 3 == 0) {
      EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == static_cast<size_t>(i / 3 + 1); })) << i;
    }
  }
  EXPECT_TRUE(target_->Finish(nullptr, seconds(10), kGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(4), At(7)));
}

// The agent is killed repeatedly while it sends to a target that fails half of the requests: each sample on disk arrives, in
// order.
TEST_F(RemoteWriteTest, KillsLoseNothingThatWasQueued) {
  constexpr int kRounds = 8;
  constexpr int kTicks = 5;
  options_.max_shards = 3;
  options_.series_per_shard = 10;
  options_.max_samples = 7;
  // Forked before any thread starts. Each waits for the URL, reports its snapshots, and is killed.
  struct Agent {
    pid_t pid = -1;
    int to[2];
    int from[2];
  } agents[kRounds];
  for (Agent& agent : agents) {
    ASSERT_EQ(pipe2(agent.to, O_CLOEXEC) + pipe2(agent.from, O_CLOEXEC), 0);
    agent.pid = fork();
    if (agent.pid == 0) {
      char url[100] = {};
      if (read(agent.to[0], url, sizeof url - 1) <= 0) _exit(1);
      count_ = static_cast<int>(&agent - agents) * kTicks;
      StartAgent(url);
      for (int i = 0; i < kTicks; ++i) {
        target_->Offer(Next(40));
        while (target_->stats().snapshots <= static_cast<uint64_t>(i)) usleep(500);
        static_cast<void>(!write(agent.from[1], "x", 1));
      }
      raise(SIGKILL);
    }
    close(agent.from[1]);
  }
  Receiver receiver([](size_t number) { return ServerResponse{.status = number % 2 == 0 ? 503 : 0}; });
  std::set<std::string> queued;
  for (Agent& agent : agents) {
    ASSERT_GT(write(agent.to[1], receiver.url().data(), receiver.url().size()), 0);
    char c;
    while (read(agent.from[0], &c, 1) == 1) queued.insert(At(++count_));
    int status = 0;
    ASSERT_EQ(waitpid(agent.pid, &status, 0), agent.pid);
    EXPECT_TRUE(WIFSIGNALED(status));
    for (const int fd : {agent.to[0], agent.to[1], agent.from[0]}) close(fd);
  }
  EXPECT_THAT(queued, SizeIs(kRounds * kTicks));
  StartAgent(receiver.url());
  const Status all = target_->Finish(Next(40), seconds(30), kGoesOn);
  ASSERT_TRUE(all.ok()) << all.error();
  EXPECT_THAT(target_->stats().sending.samples_refused, IsEmpty()) << "out of order";
  for (int i = 100; i < 140; ++i) {
    const auto samples = receiver.Of("m" + std::to_string(i) + "{job=dlrm}");
    EXPECT_EQ(std::set<std::string>(samples.begin(), samples.end()).size(), samples.size()) << "none twice";
    EXPECT_EQ(samples.size(), 41U);
    for (const std::string& sample : queued) EXPECT_THAT(samples, Contains(sample));
  }
}

}  // namespace
}  // namespace persia::agent

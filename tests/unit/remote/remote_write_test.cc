#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "peers/scripted_peer.h"
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
using ::testing::SizeIs;

constexpr auto kGoesOn = RemoteWrite::Ending::kGoesOn;

class RemoteWriteTest : public RemoteWriteFixture {};

TEST_F(RemoteWriteTest, SnapshotsArriveWithTheHeadersOfTheProtocol) {
  Receiver receiver;
  options_.endpoint.headers = {{"X-Scope-OrgID", "team"}};
  options_.endpoint.http.user_agent = "persia/1";
  StartAgent(receiver.url());
  target_->Offer(Next());
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 1; }));
  ASSERT_TRUE(target_->Finish(Next(), std::chrono::minutes(10), kGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(2)));
  const auto headers = receiver.last_headers();
  EXPECT_EQ(headers.at("Content-Type"), "application/x-protobuf");
  EXPECT_EQ(headers.at("Content-Encoding"), "snappy");
  EXPECT_EQ(headers.at("X-Prometheus-Remote-Write-Version"), "0.1.0");
  EXPECT_EQ(headers.at("User-Agent"), "persia/1");
  EXPECT_EQ(headers.at("X-Scope-OrgID"), "team");
  const auto stats = target_->stats();
  EXPECT_EQ(stats.samples_sent, 2U);
  EXPECT_GT(stats.bytes, 50U);
  EXPECT_EQ(stats.highest_sent_ms, std::chrono::duration_cast<milliseconds>((begin_ + seconds(2)).time_since_epoch()).count());
  EXPECT_THAT(log_.Messages(), IsEmpty());
}

TEST_F(RemoteWriteTest, SkippedSnapshotsUpdateTheQueuesNumbers) {
  options_.send_interval = seconds(3600);
  Receiver receiver;
  StartAgent(receiver.url());
  target_->Offer(Next());
  EXPECT_TRUE(receiver.WaitFor([&] { return receiver.samples() == 1; }));
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  while (target_->stats().queue_bytes == 0 && std::chrono::steady_clock::now() < end) {
    target_->Offer(Next());
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_GT(target_->stats().queue_bytes, 0U);
  EXPECT_EQ(target_->snapshots(), 1U);
}

// After a broken connection, an invalid answer or a timeout, the same bytes are sent again.
TEST_F(RemoteWriteTest, TransportErrorsAreRetried) {
  options_.endpoint.http.total_timeout = milliseconds(200);
  ScriptedPeer peer({Reply::Close(), Reply::Raw("HTTP/1.1 2"), Reply::Raw("no HTTP\r\n\r\n"), Reply::Silence(), Reply::Close(),
                     Reply::Status(200)});
  StartAgent("http://" + peer.address() + "/write");
  target_->Offer(Next());
  peer.WaitForRequests(6);
  ASSERT_TRUE(target_->Finish(nullptr, std::chrono::minutes(10), kGoesOn).ok());
  const auto requests = peer.requests();
  ASSERT_THAT(requests, SizeIs(::testing::Ge(6U)));  // the last one twice, if its answer takes too long
  for (const std::string& request : requests) {
    EXPECT_THAT(LinesOfBody(request.substr(request.find("\r\n\r\n") + 4)), ElementsAre(kWrittenSeries + (" " + At(1))));
  }
  EXPECT_EQ(target_->stats().samples_sent, 1U);
}

TEST_F(RemoteWriteTest, SamplesNotSentInTimeWaitForTheNextAgent) {
  const ScriptedPeer silent({Reply::Silence()});
  options_.endpoint.http.total_timeout = seconds(600);
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
  ASSERT_TRUE(target_->Finish(Next(), std::chrono::minutes(10), kGoesOn).ok());
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
  ASSERT_TRUE(target_->Finish(Next(), std::chrono::minutes(10), RemoteWrite::Ending::kEnds).ok());
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
  EXPECT_TRUE(target_->Finish(nullptr, std::chrono::minutes(10), kGoesOn).ok());
  EXPECT_THAT(receiver.Of(kWrittenSeries), ElementsAre(At(1), At(4), At(7)));
}

// They delay no sample: the target gets them when it has taken all of the queue.
TEST_F(RemoteWriteTest, MetadataComeAfterTheSamples) {
  options_.endpoint.metadata_interval = seconds(3600);
  options_.max_samples = 1;
  Receiver receiver;
  StartAgent(receiver.url());
  target_->Offer(Next(3));
  ASSERT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() == 4; }));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(LinesOfBody(receiver.bodies()[i]), SizeIs(1));
  EXPECT_THAT(MetadataOfBody(receiver.bodies()[3]), SizeIs(3));
  ASSERT_TRUE(target_->Finish(Next(4), std::chrono::minutes(10), kGoesOn).ok());
  ASSERT_THAT(receiver.bodies(), SizeIs(4 + 4 + 1));
  EXPECT_THAT(MetadataOfBody(receiver.bodies().back()), SizeIs(4)) << "they have changed";
  EXPECT_EQ(target_->stats().metadata_sent, 7U);
}

TEST_F(RemoteWriteTest, ATargetThatAcceptsNoSamplesGetsNoMetadata) {
  options_.endpoint.metadata_interval = milliseconds(1);
  Receiver receiver([](size_t) { return ServerResponse{.status = 400}; });
  StartAgent(receiver.url());
  target_->Offer(Next());
  ASSERT_TRUE(receiver.WaitFor([&] { return receiver.bodies().size() == 1; }));
  ASSERT_TRUE(target_->Finish(Next(), std::chrono::minutes(10), kGoesOn).ok());
  EXPECT_THAT(receiver.bodies(), SizeIs(2));
}

TEST_F(RemoteWriteTest, SilenceAboutMetadataHoldsTheEndNoLongerThanTheDeadline) {
  options_.endpoint.metadata_interval = seconds(3600);
  options_.endpoint.http.total_timeout = seconds(600);
  ScriptedPeer peer({Reply::Status(200), Reply::Silence()});
  StartAgent("http://" + peer.address() + "/write");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(target_->Finish(Next(), seconds(1), kGoesOn).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(45));
  EXPECT_THAT(log_.Messages(), IsEmpty());
}

// The agent is killed repeatedly while it sends to a target that fails half of the requests: each sample on disk arrives, in
// order.
TEST_F(RemoteWriteTest, KillsLoseNothingThatWasQueued) {
  constexpr int kRounds = 8;
  constexpr int kTicks = 5;
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
        while (target_->snapshots() <= static_cast<uint64_t>(i)) usleep(500);
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
  const Status all = target_->Finish(Next(40), std::chrono::minutes(10), kGoesOn);
  ASSERT_TRUE(all.ok()) << all.error();
  EXPECT_THAT(target_->stats().samples_refused, IsEmpty()) << "out of order";
  for (int i = 100; i < 140; ++i) {
    const auto samples = receiver.Of("m" + std::to_string(i) + "{job=dlrm}");
    EXPECT_EQ(std::set<std::string>(samples.begin(), samples.end()).size(), samples.size()) << "none twice";
    EXPECT_EQ(samples.size(), 41U);
    for (const std::string& sample : queued) EXPECT_THAT(samples, Contains(sample));
  }
}

}  // namespace
}  // namespace persia::agent

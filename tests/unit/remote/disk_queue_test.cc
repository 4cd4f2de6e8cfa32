#include "remote/disk_queue.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "remote/disk_queue_fixture.h"
#include "waiting_call.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class DiskQueueTest : public DiskQueueFixture {};

TEST_F(DiskQueueTest, RequestsComeOutInOrder) {
  StartAgent();
  EXPECT_FALSE(queue_->last_timestamp_ms());
  ASSERT_TRUE(Append("a").ok());
  ASSERT_TRUE(Append("bb").ok());
  const auto stats = queue_->stats();
  EXPECT_EQ(stats.pending_records, 2U);
  EXPECT_EQ(stats.pending_samples, 3U);
  EXPECT_EQ(stats.pending_bytes, 3U);
  EXPECT_EQ(stats.oldest_pending_ms, now_ms_ - 1);
  EXPECT_THAT(SendAll(), ElementsAre("a", "bb"));
  EXPECT_EQ(queue_->stats().pending_samples, 0U);
  EXPECT_FALSE(queue_->stats().oldest_pending_ms);
  EXPECT_EQ(queue_->last_timestamp_ms(), now_ms_);
}

TEST_F(DiskQueueTest, OneRequestOfAShardIsInFlight) {
  StartAgent();
  for (const char* body : {"a0", "b0", "a1", "b1"}) ASSERT_TRUE(Append(body, body[0] == 'a' ? 0 : 1).ok());
  const auto a0 = Take();
  const auto b0 = Take();
  EXPECT_EQ(a0.body, "a0");
  EXPECT_EQ(b0.body, "b0") << "another shard does not wait";
  WaitingCall waiting([this] { return Take(); });
  EXPECT_TRUE(waiting.Waits()) << "both shards are busy";
  Finish(b0);
  EXPECT_EQ(waiting.get().body, "b1");
  Finish(a0);
  EXPECT_EQ(Take().body, "a1");
}

// A series may change its shard: no request of the new generation is sent before all of the old one are.
TEST_F(DiskQueueTest, AGenerationWaitsForTheOneBefore) {
  StartAgent();
  ASSERT_TRUE(Append("old0", 0).ok());
  ASSERT_TRUE(Append("old1", 1).ok());
  queue_->BeginGeneration();
  ASSERT_TRUE(Append("new2", 2).ok());
  const auto old0 = Take();
  const auto old1 = Take();
  Finish(old0);
  WaitingCall waiting([this] { return Take(); });
  EXPECT_TRUE(waiting.Waits());
  Finish(old1);
  EXPECT_EQ(waiting.get().body, "new2");
}

TEST_F(DiskQueueTest, TheNextAgentSendsTheSameBytesFirst) {
  StartAgent();
  for (const char* body : {"sent", "not yet", "nor this"}) ASSERT_TRUE(Append(body).ok());
  Finish(Take());
  Take();  // in flight when the agent ends
  StartAgent();
  EXPECT_EQ(queue_->stats().pending_records, 2U);
  ASSERT_TRUE(Append("live", 7).ok());
  EXPECT_THAT(SendAll(), ElementsAre("not yet", "nor this", "live"));
  EXPECT_THAT(log_.Warnings(), IsEmpty());
}

TEST_F(DiskQueueTest, TheLastTimestampIsKeptWhenAllIsSent) {
  StartAgent();
  ASSERT_TRUE(Append(std::string(100'000, 'x'), 0, 5'000).ok());
  SendAll();
  queue_->Close();
  EXPECT_LE(queue_->stats().file_bytes, 64U) << "sent requests free their space";
  for (int agent = 0; agent < 3; ++agent) {
    StartAgent();
    EXPECT_EQ(queue_->last_timestamp_ms(), 5'000) << agent;
    EXPECT_THAT(Files(), SizeIs(1));
  }
  ASSERT_TRUE(Append("y", 0, 5'001).ok());
  EXPECT_THAT(Files(), SizeIs(1)) << "the newest is enough";
  StartAgent();
  EXPECT_EQ(queue_->last_timestamp_ms(), 5'001);
}

TEST_F(DiskQueueTest, SentRequestsFreeTheirDiskSpace) {
  StartAgent();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Append(std::string(10 << 20, 'x')).ok());
    EXPECT_THAT(SendAll(), SizeIs(1));
  }
  EXPECT_THAT(Files(), SizeIs(1));
  EXPECT_LT(queue_->stats().file_bytes, 17U << 20);
}

TEST_F(DiskQueueTest, TheOldestIsDroppedAtTheSizeLimit) {
  options_.max_bytes = 1 << 20;
  StartAgent();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(Append(std::string(50'000, static_cast<char>('A' + i))).ok());
  const auto stats = queue_->stats();
  EXPECT_LE(stats.file_bytes, 1U << 20);
  EXPECT_GT(stats.file_bytes, 900U << 10);
  EXPECT_EQ(stats.dropped_samples.at("queue_bytes") + stats.pending_samples, 40U * 50'000);
  const auto bodies = SendAll();
  ASSERT_THAT(bodies, SizeIs(stats.pending_records));
  EXPECT_EQ(bodies.back()[0], 'A' + 39) << "the newest are there";
  EXPECT_EQ(bodies.front()[0], 'A' + 40 - static_cast<int>(bodies.size()));
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("queue_max_bytes"))) << "once for all files";
  EXPECT_THAT(Append(std::string(2 << 20, 'x')).error(), HasSubstr("larger than the limit of 1048576 bytes (queue_max_bytes"));
  ASSERT_TRUE(Append("small").ok());
}

TEST_F(DiskQueueTest, ARequestMayFillTheQueueToTheLastByte) {
  options_.max_bytes = 100'000;
  StartAgent();
  constexpr size_t kHeaders = QueueFile::kFileHeaderBytes + QueueRecord::kHeaderBytes;
  EXPECT_FALSE(Append(std::string(100'000 - kHeaders + 1, 'x')).ok());
  const std::string largest(100'000 - kHeaders, 'x');
  ASSERT_TRUE(Append(largest).ok());
  EXPECT_EQ(queue_->stats().file_bytes, 100'000U);
  EXPECT_THAT(SendAll(), ElementsAre(largest));
}

TEST_F(DiskQueueTest, ADroppedRequestInFlightIsNotSentAgain) {
  options_.max_bytes = 1 << 20;
  StartAgent();
  ASSERT_TRUE(Append("first").ok());
  const auto first = Take();
  EXPECT_TRUE(queue_->StillWanted(first));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(Append(std::string(50'000, 'x')).ok());
  EXPECT_FALSE(queue_->StillWanted(first));
  const uint64_t before = queue_->stats().dropped_samples.at("queue_bytes");
  queue_->Finish(first, DiskQueue::Outcome::kDropped);
  EXPECT_EQ(queue_->stats().dropped_samples.at("queue_bytes"), before + 5) << "counted once, by Finish";
}

// In a directory that a group shares, as its files.
TEST_F(DiskQueueTest, ADirectoryOfAUserOutsideOfTheGroupIsRefused) {
  const std::string path = temporary_ / "queue";
  ASSERT_EQ(chmod(temporary_.path().c_str(), 02770), 0);
  StartAgent();
  queue_.reset();
  if (chown(path.c_str(), 4711, 4712) != 0) {
    ASSERT_NE(geteuid(), 0U);  // only root can give it away
    return;
  }
  EXPECT_EQ(DiskQueue::Open(options_).error(), path + " belongs to another user (4711, group 4712); remove it");
  ASSERT_EQ(chown(path.c_str(), 4711, getegid()), 0);
  EXPECT_TRUE(DiskQueue::Open(options_).ok()) << "it is a member's";
}

TEST_F(DiskQueueTest, ExpiredRequestsAreDropped) {
  options_.max_age = std::chrono::minutes(10);
  StartAgent();
  ASSERT_TRUE(Append("old file").ok());
  StartAgent();
  ASSERT_TRUE(Append("old").ok());
  now_ms_ += 9 * 60'000;
  ASSERT_TRUE(Append("young").ok());
  now_ms_ += 2 * 60'000;
  const auto old = Take();
  EXPECT_EQ(old.body, "old");
  EXPECT_FALSE(queue_->StillWanted(old));
  queue_->Finish(old, DiskQueue::Outcome::kDropped);
  const auto young = Take();
  EXPECT_EQ(young.body, "young");
  EXPECT_TRUE(queue_->StillWanted(young));
  Finish(young);
  EXPECT_THAT(queue_->stats().dropped_samples, ElementsAre(Pair("queue_age", 8U + 3U)));
}

TEST_F(DiskQueueTest, WaitEmptyReturnsWhenAllIsDropped) {
  options_.max_age = std::chrono::minutes(10);
  StartAgent();
  ASSERT_TRUE(Append("old").ok());
  StartAgent();
  ASSERT_TRUE(queue_->Append({.shard = 0, .samples = 0, .timestamp_ms = now_ms_}, "").ok());  // a newer file, nothing to send
  WaitingCall empty([this] { return queue_->WaitEmpty(std::chrono::steady_clock::now() + std::chrono::hours(1)); });
  EXPECT_TRUE(empty.Waits());
  now_ms_ += 11 * 60'000;
  EXPECT_FALSE(queue_->StillWanted({}));
  EXPECT_TRUE(empty.get());
}

TEST_F(DiskQueueTest, ARemovedDirectoryIsCreatedAgain) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  fs::remove_all(temporary_ / "queue");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append(std::string(12 << 20, 'x')).ok());
  EXPECT_THAT(SendAll(), SizeIs(4)) << "an open file is not lost with its name";
  EXPECT_THAT(Files(), SizeIs(1));
}

TEST_F(DiskQueueTest, OnlyTheOwnerMayReadItsFiles) {
  const mode_t former = umask(0);
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  umask(former);
  EXPECT_EQ(fs::status(Files().front()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(temporary_ / "queue").permissions(), fs::perms::owner_all);
}

TEST_F(DiskQueueTest, StopEndsAllWaits) {
  StartAgent();
  auto next = std::async(std::launch::async, [this] { return queue_->Next().has_value(); });
  ASSERT_TRUE(queue_->WaitEmpty(std::chrono::steady_clock::now()));
  queue_->Stop();
  EXPECT_FALSE(next.get());
  ASSERT_TRUE(Append("a").ok());
  EXPECT_FALSE(queue_->WaitEmpty(std::chrono::steady_clock::now() + std::chrono::hours(1)));
}

// Each shard's requests come out once, and in order.
TEST_F(DiskQueueTest, ShardsKeepTheirOrderWithManyThreads) {
  StartAgent();
  constexpr uint32_t kShards = 4;
  constexpr int kRounds = 300;
  std::mutex mutex;
  std::vector<std::string> sent[kShards];
  std::vector<std::thread> senders;
  for (uint32_t i = 0; i < kShards; ++i) {
    senders.emplace_back([&] {
      while (const auto claim = queue_->Next()) {
        {
          const std::lock_guard lock(mutex);
          sent[claim->record.shard].push_back(claim->body);
        }
        Finish(*claim);
      }
    });
  }
  std::vector<std::string> expected;
  for (int i = 0; i < kRounds; ++i) {
    expected.push_back(std::to_string(i));
    for (uint32_t shard = 0; shard < kShards; ++shard) ASSERT_TRUE(Append(expected.back(), shard).ok());
  }
  EXPECT_TRUE(queue_->WaitEmpty(std::chrono::steady_clock::now() + std::chrono::seconds(30)));
  queue_->Stop();
  for (std::thread& sender : senders) sender.join();
  for (const auto& of_shard : sent) EXPECT_EQ(of_shard, expected);
}

struct FaultPoint {
  const char* step;
  int time;
};

class DiskQueueFaultTest : public DiskQueueFixture, public ::testing::WithParamInterface<FaultPoint> {};

// After a kill at any step, all appended requests are sent, and only the one in flight is sent twice.
TEST_P(DiskQueueFaultTest, AKillLosesNothing) {
  const fs::path journal = temporary_.path() + "/journal";
  const pid_t pid = fork();
  if (pid == 0) {
    std::ofstream out(journal);
    int time = 0;
    StartAgent([&](std::string_view step) {
      if (step == GetParam().step && ++time == GetParam().time) raise(SIGKILL);
    });
    for (int i = 0; i < 8; ++i) {
      // Each fills a file, so that files are created and removed.
      static_cast<void>(Append(std::to_string(i) + std::string(17 << 20, 'x')));
      out << "appended " << i << std::endl;
      if (i >= 3) {
        const auto claim = Take();
        out << "sent " << claim.body[0] << std::endl;
        Finish(claim);
      }
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the step was not reached";
  int appended = 0;
  int sent = 0;
  std::ifstream in(journal);
  for (std::string what, number; in >> what >> number;) ++(what == "sent" ? sent : appended);

  StartAgent();
  ASSERT_TRUE(Append("live").ok());
  const auto bodies = SendAll();
  ASSERT_FALSE(bodies.empty());
  EXPECT_EQ(bodies.back(), "live");
  const int first = bodies.size() == 1 ? appended : bodies.front()[0] - '0';
  EXPECT_GE(first, sent - 1) << "only the request in flight is sent again";
  EXPECT_LE(first, sent) << "and nothing is left out";
  for (size_t i = 0; i + 1 < bodies.size(); ++i) EXPECT_EQ(bodies[i][0] - '0', first + static_cast<int>(i));
  EXPECT_GE(first + static_cast<int>(bodies.size()) - 1, appended);
  EXPECT_THAT(log_.Warnings(), IsEmpty());
  EXPECT_THAT(Files(), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Steps, DiskQueueFaultTest,
                         ::testing::Values(FaultPoint{"file created", 1}, FaultPoint{"file created", 6},
                                           FaultPoint{"record written", 1}, FaultPoint{"record written", 6},
                                           FaultPoint{"record done", 1}, FaultPoint{"record done", 4},
                                           FaultPoint{"file removed", 1}, FaultPoint{"file removed", 3}),
                         [](const auto& info) {
                           std::string name(info.param.step);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name + "_" + std::to_string(info.param.time);
                         });

}  // namespace
}  // namespace persia::agent

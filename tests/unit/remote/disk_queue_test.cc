#include "remote/disk_queue.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "remote/disk_queue_fixture.h"
#include "waiting_call.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
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
  EXPECT_EQ(stats.pending_bytes, 2 * 4096U) << "a block each";
  EXPECT_EQ(stats.oldest_pending_ms, now_ms_ - 1);
  EXPECT_THAT(SendAll(), ElementsAre("a", "bb"));
  EXPECT_EQ(queue_->stats().pending_samples, 0U);
  EXPECT_FALSE(queue_->stats().oldest_pending_ms);
  EXPECT_EQ(queue_->last_timestamp_ms(), now_ms_.load());
}

TEST_F(DiskQueueTest, ANameTellsAllButTheBody) {
  const QueueRecord record{.number = 12, .timestamp_ms = -5, .samples = 500, .is_native = true};
  EXPECT_EQ(record.FileName(), "000000000012.-5.500.native.queue");
  const auto read = QueueRecord::OfFileName(record.FileName());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->number, 12U);
  EXPECT_EQ(read->timestamp_ms, -5);
  EXPECT_EQ(read->samples, 500U);
  EXPECT_TRUE(read->is_native);
  for (const char* none :
       {"000000000012.5.500", "12.5.500.queue", "000000000012.5.queue", "000000000012.5.-1.queue", "000000000012..1.queue",
        "+00000000012.5.1.queue", "0000000000012.5.1.queue", "000000000012.5.1x.queue", "000000000012.5.1.native",
        "000000000012.5.1.queue.draft", "000000000012.5.4294967296.queue", ".queue"}) {
    EXPECT_FALSE(QueueRecord::OfFileName(none)) << none;
  }
}

TEST_F(DiskQueueTest, TheNextAgentSendsTheSameBytesFirst) {
  StartAgent();
  for (const char* body : {"sent", "not yet", "nor this"}) ASSERT_TRUE(Append(body).ok());
  Take();
  queue_->Finish();
  Take();  // in flight when the agent ends
  StartAgent();
  EXPECT_EQ(queue_->stats().pending_records, 2U);
  ASSERT_TRUE(Append("live").ok());
  EXPECT_THAT(SendAll(), ElementsAre("not yet", "nor this", "live"));
  EXPECT_THAT(log_.Warnings(), IsEmpty());
}

TEST_F(DiskQueueTest, TheLastTimestampIsKeptWhenAllIsSent) {
  options_.max_age = std::chrono::hours(24 * 365 * 200);
  StartAgent();
  ASSERT_TRUE(Append("x", 5'000).ok());
  SendAll();
  for (int agent = 0; agent < 3; ++agent) {
    StartAgent();
    EXPECT_EQ(queue_->last_timestamp_ms(), 5'000) << agent;
    EXPECT_THAT(Names(), ElementsAre("000000000001.5000.0.queue"));
  }
  ASSERT_TRUE(Append("y", 5'001).ok());
  EXPECT_THAT(Names(), ElementsAre("000000000002.5001.1.queue")) << "the newest is enough";
  StartAgent();
  EXPECT_EQ(queue_->last_timestamp_ms(), 5'001);
}

TEST_F(DiskQueueTest, SentRequestsFreeTheirDiskSpace) {
  StartAgent();
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 3; ++j) ASSERT_TRUE(Append(std::string(1 << 20, 'x')).ok());
    EXPECT_THAT(SendAll(), SizeIs(3));
    EXPECT_THAT(Files(), SizeIs(1));
    EXPECT_LT(queue_->stats().queue_bytes, 2U << 20);
  }
}

TEST_F(DiskQueueTest, TheOldestIsDroppedAtTheSizeLimit) {
  options_.max_bytes = 1 << 20;
  StartAgent();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(Append(std::string(50'000, static_cast<char>('A' + i))).ok());
  const auto stats = queue_->stats();
  EXPECT_LE(stats.queue_bytes, 1U << 20);
  EXPECT_GT(stats.queue_bytes, 900U << 10);
  EXPECT_EQ(stats.queue_max_bytes, 1U << 20);
  EXPECT_EQ(stats.dropped_samples.at("queue_bytes") + stats.pending_samples, 40U * 50'000);
  const auto bodies = SendAll();
  ASSERT_THAT(bodies, SizeIs(stats.pending_records));
  EXPECT_EQ(bodies.back()[0], 'A' + 39) << "the newest are there";
  EXPECT_EQ(bodies.front()[0], 'A' + 40 - static_cast<int>(bodies.size()));
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("queue_max_bytes"))) << "once";
  EXPECT_THAT(Append(std::string(2 << 20, 'x')).error(), HasSubstr("larger than the limit of 1048576 bytes (queue_max_bytes"));
  ASSERT_TRUE(Append("small").ok());
}

TEST_F(DiskQueueTest, ARequestMayFillTheQueue) {
  options_.max_bytes = 10 * 4096;
  StartAgent();
  ASSERT_TRUE(Append("small").ok());
  const std::string largest(10 * 4096 - 100, 'x');
  ASSERT_TRUE(Append(largest).ok());
  EXPECT_EQ(queue_->stats().queue_bytes, 10 * 4096U);
  EXPECT_THAT(SendAll(), ElementsAre(largest));
  EXPECT_FALSE(Append(std::string(10 * 4096, 'x')).ok());
}

TEST_F(DiskQueueTest, ATooLargeRequestIsRefused) {
  options_.max_bytes = 1 << 30;
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  EXPECT_THAT(Append(std::string(DiskQueue::kMaxFileBytes, 'x')).error(), HasSubstr("larger than the limit of"));
  EXPECT_EQ(queue_->stats().dropped_samples, (std::map<std::string, uint64_t>{{"queue_bytes", DiskQueue::kMaxFileBytes}}));
  EXPECT_THAT(SendAll(), ElementsAre("a"));
}

TEST_F(DiskQueueTest, ADroppedRequestInFlightIsNotSentAgain) {
  options_.max_bytes = 1 << 20;
  StartAgent();
  ASSERT_TRUE(Append("first").ok());
  EXPECT_EQ(Take(), "first");
  EXPECT_TRUE(queue_->StillWanted());
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(Append(std::string(50'000, 'x')).ok());
  EXPECT_FALSE(queue_->StillWanted());
  const uint64_t before = queue_->stats().dropped_samples.at("queue_bytes");
  queue_->Finish(2);
  EXPECT_EQ(queue_->stats().dropped_samples.at("queue_bytes"), before + 2) << "counted once, by Finish";
  EXPECT_EQ(Take().front(), 'x');
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
  ASSERT_TRUE(Append("older").ok());
  ASSERT_TRUE(Append("old").ok());
  now_ms_ += 9 * 60'000;
  ASSERT_TRUE(Append("young").ok());
  EXPECT_EQ(Take(), "older");
  now_ms_ += 2 * 60'000;
  EXPECT_FALSE(queue_->StillWanted());
  queue_->Finish(5);
  EXPECT_EQ(Take(), "young");
  EXPECT_TRUE(queue_->StillWanted());
  queue_->Finish();
  EXPECT_THAT(queue_->stats().dropped_samples, ElementsAre(Pair("queue_age", 5U + 3U)));
}

// So does the last timestamp.
TEST_F(DiskQueueTest, TheNewestExpiresToo) {
  options_.max_age = std::chrono::minutes(10);
  StartAgent();
  ASSERT_TRUE(Append("old").ok());
  const int64_t last = now_ms_;
  now_ms_ += 11 * 60'000;
  EXPECT_FALSE(queue_->stats().oldest_pending_ms);
  EXPECT_TRUE(queue_->empty());
  StartAgent();
  EXPECT_EQ(queue_->last_timestamp_ms(), last);
  EXPECT_THAT(SendAll(), IsEmpty());
}

TEST_F(DiskQueueTest, EndWhenEmptyEndsTheWaitOnceAllIsSent) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  queue_->EndWhenEmpty();
  EXPECT_EQ(Take(), "a");
  queue_->Finish();
  EXPECT_EQ(Take(), "(nothing)");
  EXPECT_TRUE(queue_->empty());
}

TEST_F(DiskQueueTest, EndWhenEmptyEndsAWaitThatIsUnderWay) {
  StartAgent();
  WaitingCall waiting([this] { return Take(); });
  EXPECT_TRUE(waiting.Waits());
  queue_->EndWhenEmpty();
  EXPECT_EQ(waiting.get(), "(nothing)");
}

TEST_F(DiskQueueTest, NextWaitsForARequest) {
  StartAgent();
  WaitingCall waiting([this] { return Take(); });
  EXPECT_TRUE(waiting.Waits());
  ASSERT_TRUE(Append("a").ok());
  EXPECT_EQ(waiting.get(), "a");
}

TEST_F(DiskQueueTest, ARemovedDirectoryIsCreatedAgain) {
  StartAgent();
  ASSERT_TRUE(Append("lost").ok());
  fs::remove_all(temporary_ / "queue");
  for (const char* body : {"a", "b"}) ASSERT_TRUE(Append(body).ok());
  queue_->EndWhenEmpty();
  EXPECT_THAT(SendAll(), ElementsAre("a", "b"));
  EXPECT_EQ(queue_->stats().dropped_samples.at("corrupt"), 4U);
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("is gone; 4 samples in it are lost")));
}

TEST_F(DiskQueueTest, OnlyTheOwnerMayReadItsFiles) {
  const mode_t former = umask(0);
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  umask(former);
  EXPECT_EQ(fs::status(Files().front()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(temporary_ / "queue").permissions(), fs::perms::owner_all);
}

TEST_F(DiskQueueTest, StopEndsTheWait) {
  StartAgent();
  WaitingCall waiting([this] { return Take(); });
  EXPECT_TRUE(waiting.Waits());
  queue_->Stop();
  EXPECT_EQ(waiting.get(), "(nothing)");
  ASSERT_TRUE(Append("a").ok());
  EXPECT_EQ(Take(), "(nothing)");
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
      static_cast<void>(Append(std::to_string(i)));
      out << "appended " << i << std::endl;
      if (i >= 3) {
        out << "sent " << Take() << std::endl;
        queue_->Finish();
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
  EXPECT_THAT(Files(), SizeIs(1)) << "and no draft";
}

INSTANTIATE_TEST_SUITE_P(Steps, DiskQueueFaultTest,
                         ::testing::Values(FaultPoint{"draft made", 1}, FaultPoint{"draft made", 6},
                                           FaultPoint{"draft written", 1}, FaultPoint{"draft written", 6},
                                           FaultPoint{"renamed", 1}, FaultPoint{"renamed", 6}, FaultPoint{"request done", 1},
                                           FaultPoint{"request done", 4}),
                         [](const auto& info) {
                           std::string name(info.param.step);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name + "_" + std::to_string(info.param.time);
                         });

}  // namespace
}  // namespace persia::agent

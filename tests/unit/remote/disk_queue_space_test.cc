// A queue on a filesystem that is full, or fails during a write.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>

#include "remote/disk_queue.h"
#include "remote/disk_queue_fixture.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DiskQueueSpaceTest : public DiskQueueFixture {
 protected:
  DiskQueueSpaceTest() {
    options_.free_bytes = [this] { return free_bytes_; };
  }

  uint64_t free_bytes_ = 0;
};

// Every request passes through the queue: a /dev/shm that others fill must not stop remote write.
TEST_F(DiskQueueSpaceTest, AHealthyTargetGetsAllSamplesOnAFullDisk) {
  StartAgent();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(Append(std::string(100'000, 'x')).ok()) << i;
    EXPECT_THAT(SendAll(), SizeIs(1));
  }
  EXPECT_LE(queue_->stats().queue_bytes, 200'000U) << "sent requests keep no space";
  EXPECT_THAT(Files(), SizeIs(1));
  EXPECT_THAT(log_.Warnings(), IsEmpty());
}

TEST_F(DiskQueueSpaceTest, FreeDiskSpaceLimitsTheBacklog) {
  options_.min_backlog_bytes = 3 * 4096;
  StartAgent();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append(std::string(300, 'x')).ok()) << i;
  EXPECT_FALSE(Append(std::string(300, 'y')).ok());
  EXPECT_FALSE(Append(std::string(300, 'y')).ok());
  EXPECT_THAT(SendAll(), SizeIs(3));
  ASSERT_TRUE(Append("after").ok());
}

// A large job's collection exceeds min_backlog_bytes.
TEST_F(DiskQueueSpaceTest, TwoCollectionsOfAnySizeMayWait) {
  options_.min_backlog_bytes = 0;
  StartAgent();
  const auto collect = [this] {
    const int64_t timestamp_ms = ++now_ms_;
    int good = 0;
    for (int i = 0; i < 4; ++i) good += Append(std::string(50'000, 'x'), timestamp_ms).ok() ? 1 : 0;
    return good;
  };
  EXPECT_EQ(collect(), 4);
  EXPECT_EQ(collect(), 4);
  EXPECT_EQ(collect(), 0);
  EXPECT_EQ(collect(), 0);
  EXPECT_THAT(SendAll(), SizeIs(8));
  EXPECT_EQ(collect(), 4);
}

TEST_F(DiskQueueSpaceTest, AFullDiskIsLoggedOnceAndDropsNewSamples) {
  options_.min_backlog_bytes = 0;
  StartAgent();
  ASSERT_TRUE(Append("one").ok());
  ASSERT_TRUE(Append("two").ok());
  EXPECT_THAT(Append("lost").error(), HasSubstr("full"));
  EXPECT_FALSE(Append("lost too").ok());
  EXPECT_THAT(log_.Warnings(), SizeIs(1));
  EXPECT_EQ(queue_->stats().dropped_samples.at("disk_full"), 4U + 8U);
  free_bytes_ = 4096;
  ASSERT_TRUE(Append("after").ok());
  EXPECT_THAT(SendAll(), ElementsAre("one", "two", "after"));
}

// Runs in a child process, since the limit cannot be raised again. `then` returns whether it passed.
void WithFilesUpTo(rlim_t bytes, const std::function<void()>& before, const std::function<bool()>& then) {
  const pid_t pid = fork();
  if (pid == 0) {
    before();
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    _exit(setrlimit(RLIMIT_FSIZE, &limit) == 0 && then() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

// The write fails in the middle of a request.
TEST_F(DiskQueueSpaceTest, AFailedWriteLeavesNothing) {
  free_bytes_ = 1 << 30;
  WithFilesUpTo(
      1000,
      [this] {
        StartAgent();
        ASSERT_TRUE(Append("before").ok());
      },
      [this] { return !Append(std::string(5000, 'x')).ok() && Append("after").ok() && Files().size() == 2; });
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("File too large")));
  StartAgent();
  EXPECT_THAT(SendAll(), ElementsAre("before", "after"));
  EXPECT_EQ(queue_->stats().damaged_places, 0U);
}

}  // namespace
}  // namespace persia::agent

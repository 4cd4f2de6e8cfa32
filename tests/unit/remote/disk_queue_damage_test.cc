// A queue whose files are torn, damaged, of another program, or cannot be read now.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>

#include "base/log.h"
#include "remote/disk_queue.h"
#include "remote/disk_queue_fixture.h"
#include "waiting_call.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class DiskQueueDamageTest : public DiskQueueFixture {
 protected:
  // Appends "first", "second" and "third", and ends the agent.
  void LeaveThree() {
    StartAgent();
    for (const char* body : {"first", "second", "third"}) ASSERT_TRUE(Append(body).ok());
    queue_.reset();
    ASSERT_THAT(Files(), SizeIs(3));
    second_ = Files()[1];
  }
  // The next agent sends all but the second, and says why.
  void ExpectSecondIsLost(const std::string& why) {
    const size_t told = log_.Warnings().size();
    StartAgent();
    ASSERT_TRUE(Append("live").ok());
    EXPECT_THAT(SendAll(), ElementsAre("first", "third", "live")) << why;
    EXPECT_EQ(queue_->stats().damaged_places, 1U) << why;
    EXPECT_EQ(queue_->stats().dropped_samples.at("corrupt"), 6U) << why;
    ASSERT_THAT(log_.Warnings(), SizeIs(told + 1)) << why;
    EXPECT_THAT(log_.Warnings().back(), HasSubstr(why));
    EXPECT_THAT(log_.Warnings().back(), EndsWith("; 6 samples in it are lost"));
    queue_.reset();
  }

  fs::path second_;
};

// As a power cut leaves it.
TEST_F(DiskQueueDamageTest, ATornFileCostsItsRequestAndIsKept) {
  LeaveThree();
  const std::string whole = Read(second_);
  for (size_t size = 0; size < whole.size(); ++size) {
    fs::remove_all(temporary_ / "queue");
    LeaveThree();
    Write(second_, whole.substr(0, size));
    ExpectSecondIsLost(second_.string() + " cannot be used: ");
    EXPECT_EQ(Read(second_.string() + ".broken-1"), whole.substr(0, size));
  }
}

TEST_F(DiskQueueDamageTest, ADamagedByteCostsItsRequest) {
  LeaveThree();
  const std::string whole = Read(second_);
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at >= 12 && at < 16) continue;  // not used
    fs::remove_all(temporary_ / "queue");
    LeaveThree();
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    Write(second_, damaged);
    ExpectSecondIsLost(second_.string() + " cannot be used: ");
  }
}

TEST_F(DiskQueueDamageTest, AFileOfZerosCostsItsRequest) {
  for (const size_t size : {1, 16, 64, 100'000}) {
    LeaveThree();
    Write(second_, std::string(size, '\0'));
    ExpectSecondIsLost("cannot be used");
    fs::remove_all(temporary_ / "queue");
  }
}

TEST_F(DiskQueueDamageTest, ATooLargeFileIsNotRead) {
  LeaveThree();
  fs::resize_file(second_, DiskQueue::kMaxFileBytes + 1);  // a hole
  ExpectSecondIsLost("larger than any state of an agent");
}

TEST_F(DiskQueueDamageTest, ALinkIsNotFollowed) {
  LeaveThree();
  fs::rename(second_, temporary_ / "another");
  fs::create_symlink(temporary_ / "another", second_);
  ExpectSecondIsLost("is a symbolic link");
}

TEST_F(DiskQueueDamageTest, ADirectoryInAFilesPlaceIsSkipped) {
  LeaveThree();
  fs::remove(second_);
  fs::create_directory(second_);
  ExpectSecondIsLost("is not a regular file");
}

TEST_F(DiskQueueDamageTest, FilesWithOtherNamesAreIgnored) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  queue_.reset();
  const std::string bytes = Read(Files().front());
  for (const char* name : {"1.queue", "1.2.3.queue", "000000000002.queue", "README"})
    Write((temporary_ / "queue/") + name, bytes);
  StartAgent();
  EXPECT_THAT(log_.Warnings(), SizeIs(3));
  EXPECT_THAT(log_.Warnings(), Contains(HasSubstr("/1.2.3.queue is not a file name of a disk queue; it is ignored")));
  ASSERT_TRUE(Append("live").ok());
  EXPECT_THAT(Names(), Contains(StartsWith("000000000002.17")));
  EXPECT_THAT(SendAll(), ElementsAre("a", "live"));
  EXPECT_TRUE(fs::exists(temporary_ / "queue/1.queue"));
}

// Of an agent that was killed while it wrote.
TEST_F(DiskQueueDamageTest, ADraftIsRemoved) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  Write(temporary_ / "queue/000000000002.1.1.queue.draft", "torn");
  StartAgent();
  EXPECT_THAT(Files(), SizeIs(1));
  EXPECT_THAT(SendAll(), ElementsAre("a"));
  EXPECT_THAT(log_.Warnings(), IsEmpty());
}

void AllowDescriptorsBelow(rlim_t number) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min(limit.rlim_max, number);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// Allows the descriptors that are open and no more.
void AllowNoMoreFiles() {
  LogInfo("test.files", "no more files");  // UBSan opens a file when it sees the logger's types for the first time
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(next, 0);
  close(next);
  AllowDescriptorsBelow(static_cast<rlim_t>(next));
}

void AllowMoreFiles() { AllowDescriptorsBelow(1024); }

// The first file cannot be opened, as if there were no descriptors: a socket is in its place.
class DiskQueueUnreadTest : public DiskQueueDamageTest {
 protected:
  void LeaveThreeAndHideTheFirst() {
    LeaveThree();
    first_ = Files().front();
    fs::rename(first_, temporary_ / "kept");
    ASSERT_EQ(mknod(first_.c_str(), S_IFSOCK | 0600, 0), 0);
  }

  fs::path first_;
};

// Newer requests wait, or their series would be sent out of order.
TEST_F(DiskQueueUnreadTest, AnUnreadableFileIsSentLater) {
  LeaveThreeAndHideTheFirst();
  StartAgent();
  ASSERT_TRUE(Append("live").ok());
  WaitingCall waiting([this] { return Take(); });
  EXPECT_TRUE(waiting.Waits());
  while (log_.Warnings().empty()) std::this_thread::yield();  // the first attempt failed; the next is in a second
  fs::rename(temporary_ / "kept", first_);
  EXPECT_EQ(waiting.get(), "first");
  queue_->Finish();
  EXPECT_THAT(SendAll(), ElementsAre("second", "third", "live"));
  EXPECT_EQ(queue_->stats().damaged_places, 0U);
  EXPECT_THAT(log_.Warnings(), ElementsAre(AllOf(HasSubstr(first_.string()), HasSubstr("the agent tries again each second"))));
  EXPECT_THAT(log_.Messages(), Contains(HasSubstr("the disk queue can be read again")));
}

TEST_F(DiskQueueUnreadTest, AnUnreadableFileExpires) {
  LeaveThreeAndHideTheFirst();
  StartAgent();
  WaitingCall waiting([this] { return Take(); });
  EXPECT_TRUE(waiting.Waits());
  while (log_.Warnings().empty()) std::this_thread::yield();
  now_ms_ += 25 * 3'600'000;
  ASSERT_TRUE(Append("live").ok());
  EXPECT_EQ(waiting.get(), "live");
  EXPECT_EQ(queue_->stats().dropped_samples.at("queue_age"), 16U);
}

TEST_F(DiskQueueDamageTest, ADirectoryThatCannotBeListedIsAnError) {
  StartAgent();
  queue_.reset();
  const int last = open("/dev/null", O_RDONLY | O_CLOEXEC);  // the directory would get this descriptor
  AllowNoMoreFiles();
  close(last);
  const auto queue = DiskQueue::Open(options_);
  AllowMoreFiles();
  ASSERT_FALSE(queue.ok());
  EXPECT_THAT(queue.error(), HasSubstr("cannot list"));
}

}  // namespace
}  // namespace persia::agent

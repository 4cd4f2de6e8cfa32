// A queue whose files are torn, damaged, of another program, or cannot be read now.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "remote/disk_queue.h"
#include "remote/disk_queue_fixture.h"
#include "waiting_call.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DiskQueueDamageTest : public DiskQueueFixture {};

TEST_F(DiskQueueDamageTest, ATornTailIsCut) {
  StartAgent();
  ASSERT_TRUE(Append("whole").ok());
  const std::string whole = Read(Files().front());
  ASSERT_TRUE(Append("torn").ok());
  const std::string both = Read(Files().front());
  for (size_t size = whole.size(); size < both.size(); ++size) {
    queue_.reset();
    for (const fs::path& file : Files()) fs::remove(file);
    Write(temporary_ / "queue/000000000001.queue", both.substr(0, size));
    StartAgent();
    EXPECT_EQ(Read(Files().front()), whole) << size;
    ASSERT_TRUE(Append("live").ok());
    EXPECT_THAT(SendAll(), ElementsAre("whole", "live")) << size;
    EXPECT_EQ(queue_->stats().corrupt_places, 0U) << size;
  }
  EXPECT_THAT(log_.Warnings(), IsEmpty());
}

// As a power cut leaves it, if later pages were on disk.
TEST_F(DiskQueueDamageTest, AZeroFirstPageCostsItsRecordsOnly) {
  constexpr size_t kPage = 4096;
  StartAgent();
  for (const std::string& body : {std::string("lost"), std::string(kPage, 'x'), std::string("second page")}) {
    ASSERT_TRUE(Append(body).ok());
  }
  std::string content = Read(Files().front());
  content.replace(0, kPage, kPage, '\0');
  queue_.reset();
  Write(Files().front(), content);
  StartAgent();
  EXPECT_THAT(SendAll(), ElementsAre("second page"));
  EXPECT_EQ(queue_->stats().corrupt_places, 1U);
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("damaged")));
}

// A damaged byte costs at most the record that it is in.
TEST_F(DiskQueueDamageTest, ADamagedByteCostsItsRecordAndIsLogged) {
  StartAgent();
  for (const char* body : {"first", "second", "third"}) ASSERT_TRUE(Append(body).ok());
  const std::string good = Read(Files().front());
  const std::vector<std::string> all{"first", "second", "third", "live"};
  const size_t begin = QueueFile::kFileHeaderBytes;
  const size_t ends[] = {begin + 48 + 5, begin + 96 + 11, begin + 144 + 16};
  size_t warnings = 0;
  for (size_t at = begin; at < good.size(); ++at) {
    queue_.reset();
    for (const fs::path& file : Files()) fs::remove(file);
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    Write(temporary_ / "queue/000000000001.queue", damaged);
    StartAgent();
    ASSERT_TRUE(Append("live").ok());
    const size_t hit = static_cast<size_t>(std::upper_bound(std::begin(ends), std::end(ends), at) - std::begin(ends));
    const size_t in_record = at - (hit == 0 ? begin : ends[hit - 1]);
    std::vector<std::string> expected = all;
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(hit));
    const bool unused = in_record > 40 && in_record < 48;
    EXPECT_EQ(SendAll(), unused ? all : expected) << at;
    const bool marks = in_record >= 40 && in_record < 48;  // `done` and the padding: no checksum covers them
    warnings += marks ? 0 : 1;
    EXPECT_THAT(log_.Warnings(), SizeIs(warnings)) << at;
    EXPECT_EQ(queue_->stats().corrupt_places, marks ? 0U : 1U) << at;
  }
}

TEST_F(DiskQueueDamageTest, AFileWithAnotherHeaderIsSetAside) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  queue_.reset();
  Write(temporary_ / "queue/000000000002.queue", "something else, of another program");
  StartAgent();
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("000000000002.queue does not begin as a disk queue")));
  EXPECT_TRUE(fs::exists(temporary_ / "queue/000000000002.queue.broken"));
  EXPECT_THAT(SendAll(), ElementsAre("a"));
}

// As a power cut leaves it, if no page was on disk.
TEST_F(DiskQueueDamageTest, AFileOfZerosIsNamedAndSetAside) {
  const fs::path file = temporary_ / "queue/000000000002.queue";
  const std::string aside = file.string() + ".broken";
  for (const size_t size : {17, 40, 64, 100'000}) {
    StartAgent();
    ASSERT_TRUE(Append("a").ok());
    queue_.reset();
    Write(file, std::string(size, '\0'));
    const size_t told = log_.Warnings().size();
    StartAgent();
    ASSERT_THAT(log_.Warnings(), SizeIs(told + 1)) << size;
    EXPECT_THAT(log_.Warnings().back(), HasSubstr("000000000002.queue has no whole record; it is renamed to")) << size;
    EXPECT_EQ(Read(aside), std::string(size, '\0'));
    EXPECT_EQ(queue_->stats().corrupt_places, 1U);
    EXPECT_THAT(SendAll(), ElementsAre("a"));
    queue_.reset();
    fs::remove_all(temporary_ / "queue");
  }
  for (const size_t size : {0, 1, 16}) {  // no request was in it
    StartAgent();
    queue_.reset();
    Write(file, std::string(size, '\0'));
    const size_t told = log_.Warnings().size();
    StartAgent();
    EXPECT_THAT(log_.Warnings(), SizeIs(told)) << size;
    EXPECT_FALSE(fs::exists(file));
  }
}

// A queue writes into its files: it would damage a file that a member of the group has linked there.
TEST_F(DiskQueueDamageTest, ALinkedFileInASharedQueueIsSetAside) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  queue_.reset();
  ASSERT_EQ(chmod((temporary_ / "queue").c_str(), 02770), 0);
  Write(temporary_ / "private", std::string(100, '\0'));
  fs::create_hard_link(temporary_ / "private", temporary_ / "queue/000000000002.queue");
  StartAgent();
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("000000000002.queue has 2 names; it is renamed to")));
  EXPECT_EQ(Read(temporary_ / "private"), std::string(100, '\0'));
  EXPECT_THAT(SendAll(), ElementsAre("a"));
}

TEST_F(DiskQueueDamageTest, FilesWithOtherNamesAreIgnored) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  queue_.reset();
  const std::string bytes = Read(Files().front());
  for (const char* name : {"1.queue", "+00000000001.queue", "0000000000001.queue", "18446744073709551615.queue"}) {
    Write((temporary_ / "queue/") + name, bytes);
  }
  StartAgent();
  EXPECT_THAT(log_.Warnings(), SizeIs(4));
  EXPECT_THAT(log_.Warnings(), Contains(HasSubstr("/18446744073709551615.queue is not a file name of a disk queue")));
  ASSERT_TRUE(Append("live").ok());
  EXPECT_THAT(Files(), Contains(temporary_ / "queue/000000000002.queue"));
  EXPECT_THAT(SendAll(), ElementsAre("a", "live"));
  EXPECT_TRUE(fs::exists(temporary_ / "queue/1.queue"));
}

TEST_F(DiskQueueDamageTest, ATooLargeFileIsSetAside) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  queue_.reset();
  fs::resize_file(Files().front(), QueueFile::kMaxFileBytes + 1);  // a hole, not read
  StartAgent();
  EXPECT_THAT(log_.Warnings(),
              ElementsAre(HasSubstr("000000000001.queue has 41943041 bytes, more than a queue writes; it is renamed")));
}

TEST_F(DiskQueueDamageTest, ATooLargeBodyIsRefused) {
  options_.max_bytes = 1 << 30;
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  EXPECT_THAT(Append(std::string(QueueFile::kMaxBodyBytes + 1, 'x')).error(), HasSubstr("larger than the limit of"));
  EXPECT_EQ(queue_->stats().dropped_samples.count("disk_full"), 0U);
  EXPECT_EQ(queue_->stats().dropped_samples.at("queue_bytes"), QueueFile::kMaxBodyBytes + 1);
  EXPECT_THAT(SendAll(), ElementsAre("a"));
}

// Nothing in the file is sent.
TEST_F(DiskQueueDamageTest, SamplesInAFileWithADamagedHeaderAreCounted) {
  StartAgent();
  for (const char* body : {"sent", "second", "third"}) ASSERT_TRUE(Append(body).ok());
  Finish(Take());
  queue_.reset();
  std::string bytes = Read(Files().front());
  bytes[3] = 'x';
  Write(Files().front(), bytes);
  StartAgent();
  EXPECT_EQ(queue_->stats().dropped_samples.at("corrupt"), 6U + 5U);
  EXPECT_THAT(log_.Warnings(),
              ElementsAre(HasSubstr("does not begin as a disk queue of this version does; 11 samples in it are lost")));
}

void AllowDescriptorsBelow(rlim_t number) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min(limit.rlim_max, number);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// Allows the descriptors that are open and `spare` more.
void AllowNoMoreFiles(int spare = 0) {
  LogInfo("test.files", "no more files");  // UBSan opens a file when it sees the logger's types for the first time
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(next, 0);
  close(next);
  AllowDescriptorsBelow(static_cast<rlim_t>(next + spare));
}

void AllowMoreFiles() { AllowDescriptorsBelow(1024); }

// Replaces the descriptor of an open file by one with other flags.
void Reopen(const fs::path& path, int flags) {
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry, error) != path) continue;
    const int fd = open(path.c_str(), flags | O_CLOEXEC);
    ASSERT_GE(dup3(fd, std::stoi(entry.path().filename()), O_CLOEXEC), 0);
    close(fd);
    return;
  }
  FAIL() << path << " is not open";
}

TEST_F(DiskQueueDamageTest, AnUnreadableFileIsSentLater) {
  options_.max_bytes = 1 << 20;
  StartAgent();
  for (const char letter : {'a', 'b', 'c'}) ASSERT_TRUE(Append(std::string(60'000, letter)).ok());
  StartAgent();
  ASSERT_TRUE(Append("live").ok());
  AllowNoMoreFiles();
  EXPECT_FALSE(queue_->stats().oldest_pending_ms);
  EXPECT_FALSE(queue_->stats().oldest_pending_ms);
  AllowMoreFiles();
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("Too many open files; the agent tries again")));
  EXPECT_THAT(SendAll(), SizeIs(4));
  EXPECT_EQ(queue_->stats().corrupt_places, 0U);
}

TEST_F(DiskQueueDamageTest, NextWaitsForAnUnreadableFile) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  Reopen(Files().front(), O_WRONLY);
  EXPECT_EQ(queue_->stats().pending_records, 1U);
  WaitingCall waiting([this] { return Take(); });
  EXPECT_TRUE(waiting.Waits());
  Reopen(Files().front(), O_RDWR);
  EXPECT_EQ(waiting.get().body, "a");
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("000000000001.queue: Bad file descriptor")));
}

TEST_F(DiskQueueDamageTest, AnUnreadableBodyIsReadLater) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  EXPECT_TRUE(queue_->stats().oldest_pending_ms);  // its header is read
  Reopen(Files().front(), O_WRONLY);
  WaitingCall waiting([this] { return Take(); });
  while (log_.Warnings().empty()) std::this_thread::yield();  // the first attempt failed; the next is in a second
  Reopen(Files().front(), O_RDWR);
  EXPECT_EQ(waiting.get().body, "a");
  EXPECT_EQ(queue_->stats().corrupt_places, 0U);
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("000000000001.queue: Bad file descriptor")));
}

// Two files with a request each; the agent that starts cannot read the second.
class DiskQueueUnreadTest : public DiskQueueFixture {
 protected:
  void StartAgentThatCannotReadTheSecond() {
    StartAgent();
    ASSERT_TRUE(Append("first").ok());
    StartAgent();
    ASSERT_TRUE(Append("second").ok());
    queue_.reset();
    DiskQueue::Options options = options_;
    options.now_ms = [this, started = std::make_shared<bool>(false)] {
      if (!std::exchange(*started, true)) AllowDescriptorsBelow(0);  // the first is open, for a while
      return now_ms_;
    };
    auto queue = DiskQueue::Open(options);
    AllowMoreFiles();
    ASSERT_TRUE(queue.ok()) << queue.error();
    queue_ = std::move(queue).value();
    queue_->BeginGeneration();
  }
  // The second still cannot be read.
  void SendTheFirst() {
    AllowNoMoreFiles(1);
    const auto first = Take();
    EXPECT_EQ(first.body, "first");
    Finish(first);
    AllowNoMoreFiles();
  }
};

// Newer requests wait, or their series would be sent out of order.
TEST_F(DiskQueueUnreadTest, AFileThatIsUnreadableAtStartupIsSentInOrder) {
  StartAgentThatCannotReadTheSecond();
  ASSERT_TRUE(Append("live").ok());
  AllowNoMoreFiles();
  EXPECT_FALSE(queue_->stats().oldest_pending_ms) << "not even the first can be opened";
  EXPECT_FALSE(queue_->WaitEmpty(std::chrono::steady_clock::now()));
  AllowMoreFiles();
  const auto first = Take();
  EXPECT_EQ(first.body, "first");
  Finish(first);
  const auto second = Take();
  EXPECT_EQ(second.body, "second");
  Finish(second);
  const auto live = Take();
  EXPECT_EQ(live.body, "live");
  EXPECT_GT(live.record.generation, second.record.generation + 1000) << "the next agent tells them apart as well";
  EXPECT_EQ(queue_->stats().corrupt_places, 0U);
}

TEST_F(DiskQueueUnreadTest, RequestsBehindAnUnreadableFileWait) {
  bool is_there = false;
  const auto take = [&] { return is_there ? Take() : DiskQueue::Claim{}; };
  // Runs once without the limit: sanitizers open files when they first see an object.
  std::async(std::launch::async, take).get();
  StartAgentThatCannotReadTheSecond();
  ASSERT_TRUE(Append("live").ok());
  SendTheFirst();
  is_there = true;
  auto waiting = std::async(std::launch::async, take);
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  AllowMoreFiles();
  EXPECT_EQ(waiting.get().body, "second");
  EXPECT_THAT(log_.Warnings(),
              ElementsAre(HasSubstr("000000000002.queue: Too many open files; the agent tries again each second")));
}

TEST_F(DiskQueueUnreadTest, AnUnreadableFileExpires) {
  StartAgentThatCannotReadTheSecond();
  ASSERT_TRUE(Append("live").ok());
  SendTheFirst();
  now_ms_ = std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1) + 25 * 3'600'000;
  ASSERT_TRUE(Append("more").ok());
  AllowMoreFiles();
  EXPECT_EQ(queue_->stats().corrupt_places, 1U);
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("Too many open files"),
                                           HasSubstr("000000000002.queue could not be read before it had to be dropped")));
  EXPECT_THAT(SendAll(), ElementsAre("live", "more"));
}

TEST_F(DiskQueueUnreadTest, CloseWithoutAnyFileKeepsTheLastTimestamp) {
  StartAgentThatCannotReadTheSecond();
  SendTheFirst();
  AllowMoreFiles();
  Write(temporary_ / "queue/000000000002.queue", "something else");
  EXPECT_FALSE(queue_->stats().oldest_pending_ms);
  EXPECT_TRUE(queue_->WaitEmpty(std::chrono::steady_clock::now()));
  queue_->Close();
  StartAgent();
  EXPECT_TRUE(queue_->last_timestamp_ms()) << "it is remembered all the same";
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

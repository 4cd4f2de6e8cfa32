// What becomes of a queue whose files are torn, damaged, not its own, or cannot be read now.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "remote/write_queue.h"
#include "remote/write_queue_fixture.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WriteQueueDamageTest : public WriteQueueFixture {};

TEST_F(WriteQueueDamageTest, ATornTailIsCut) {
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
  EXPECT_THAT(said_, IsEmpty());
}

// Whichever byte is damaged, it costs its record at most, and the others come out as they were.
TEST_F(WriteQueueDamageTest, ADamagedByteCostsItsRecordAndIsSaid) {
  StartAgent();
  for (const char* body : {"first", "second", "third"}) ASSERT_TRUE(Append(body).ok());
  const std::string good = Read(Files().front());
  const std::vector<std::string> all{"first", "second", "third", "live"};
  const size_t begin = QueueSegment::kFileHeaderBytes;
  const size_t ends[] = {begin + 48 + 5, begin + 96 + 11, begin + 144 + 16};
  for (size_t at = begin; at < good.size(); ++at) {
    queue_.reset();
    said_.clear();
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
    const bool marks = in_record >= 40 && in_record < 48;  // not covered: a mark of being done, and bytes without a meaning
    EXPECT_THAT(said_, SizeIs(marks ? 0 : 1)) << at;
    EXPECT_EQ(queue_->stats().corrupt_places, marks ? 0U : 1U) << at;
  }
}

TEST_F(WriteQueueDamageTest, AFileThatIsNoQueueIsSetAside) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  queue_.reset();
  Write(temporary_ / "queue/000000000002.queue", "something else, of another program");
  StartAgent();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("000000000002.queue does not begin as a queue")));
  EXPECT_TRUE(fs::exists(temporary_ / "queue/000000000002.queue.broken"));
  EXPECT_THAT(SendAll(), ElementsAre("a"));
}

TEST_F(WriteQueueDamageTest, OnlyNamesThatAQueueGivesAreItsFiles) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  queue_.reset();
  const std::string bytes = Read(Files().front());
  for (const char* name : {"1.queue", "+00000000001.queue", "0000000000001.queue", "18446744073709551615.queue"}) {
    Write((temporary_ / "queue/") + name, bytes);
  }
  StartAgent();
  EXPECT_THAT(said_, SizeIs(4));
  EXPECT_THAT(said_, Contains(HasSubstr("/18446744073709551615.queue is not a name that a queue gives")));
  ASSERT_TRUE(Append("live").ok());
  EXPECT_THAT(Files(), Contains(temporary_ / "queue/000000000002.queue"));
  EXPECT_THAT(SendAll(), ElementsAre("a", "live"));
  EXPECT_TRUE(fs::exists(temporary_ / "queue/1.queue"));
}

TEST_F(WriteQueueDamageTest, AFileThatIsTooLargeIsSetAside) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  queue_.reset();
  fs::resize_file(Files().front(), QueueSegment::kMostFileBytes + 1);  // a hole, not read
  StartAgent();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("000000000001.queue has 83886081 bytes, more than a queue writes; it is kept")));
}

TEST_F(WriteQueueDamageTest, ABodyThatIsTooLargeIsRefused) {
  options_.max_bytes = 1 << 30;
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  EXPECT_THAT(Append(std::string(QueueSegment::kMostBodyBytes + 1, 'x')).error(), HasSubstr("too many for a record"));
  EXPECT_EQ(queue_->stats().dropped_samples.count("disk_full"), 0U);
  EXPECT_EQ(queue_->stats().dropped_samples.at("queue_bytes"), QueueSegment::kMostBodyBytes + 1);
  EXPECT_THAT(SendAll(), ElementsAre("a"));
}

// Of a file with a damaged header nothing is sent, but what is lost is counted.
TEST_F(WriteQueueDamageTest, ADamagedHeaderCostsWhatIsCounted) {
  StartAgent();
  for (const char* body : {"sent", "second", "third"}) ASSERT_TRUE(Append(body).ok());
  Finish(Take());
  queue_.reset();
  std::string bytes = Read(Files().front());
  bytes[3] = 'x';
  Write(Files().front(), bytes);
  StartAgent();
  EXPECT_EQ(queue_->stats().dropped_samples.at("corrupt"), 6U + 5U);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("does not begin as a queue of this version does, and 11 samples in it are lost")));
}

// As many descriptors as are open, and so many more, or fewer; the next one fails.
void AllowNoMoreFiles(int spare = 0) {
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(next, 0);
  close(next);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = static_cast<rlim_t>(next + spare);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void AllowMoreFiles() {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1024);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// The descriptor through which this process has a file is opened again, in another way.
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

TEST_F(WriteQueueDamageTest, AFileThatCannotBeOpenedNowIsSentLater) {
  options_.max_bytes = 1 << 20;
  StartAgent();
  for (const char letter : {'a', 'b', 'c'}) ASSERT_TRUE(Append(std::string(60'000, letter)).ok());
  StartAgent();
  ASSERT_TRUE(Append("live").ok());
  AllowNoMoreFiles();
  EXPECT_FALSE(queue_->stats().oldest_pending_ms);
  EXPECT_FALSE(queue_->stats().oldest_pending_ms);
  AllowMoreFiles();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("Too many open files; it is tried again")));
  EXPECT_THAT(SendAll(), SizeIs(4));
  EXPECT_EQ(queue_->stats().corrupt_places, 0U);
}

TEST_F(WriteQueueDamageTest, NextWaitsForWhatCannotBeReadNow) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  Reopen(Files().front(), O_WRONLY);
  EXPECT_EQ(queue_->stats().pending_records, 1U);
  auto waiting = std::async(std::launch::async, [this] { return Take(); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  Reopen(Files().front(), O_RDWR);
  EXPECT_EQ(waiting.get().body, "a");
  EXPECT_THAT(said_, ElementsAre(HasSubstr("000000000001.queue: Bad file descriptor")));
}

TEST_F(WriteQueueDamageTest, ABodyThatCannotBeReadNowIsReadLater) {
  StartAgent();
  ASSERT_TRUE(Append("a").ok());
  EXPECT_TRUE(queue_->stats().oldest_pending_ms);  // its header is read
  Reopen(Files().front(), O_WRONLY);
  auto waiting = std::async(std::launch::async, [this] { return Take(); });
  while (lines_said_ == 0) std::this_thread::yield();  // it has tried, and will again in a second
  Reopen(Files().front(), O_RDWR);
  EXPECT_EQ(waiting.get().body, "a");
  EXPECT_EQ(queue_->stats().corrupt_places, 0U);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("000000000001.queue: Bad file descriptor")));
}

// An agent starts that cannot read the second of two files, with a request in each.
class WriteQueueUnreadTest : public WriteQueueFixture {
 protected:
  void StartAgentThatCannotReadTheSecond() {
    StartAgent();
    ASSERT_TRUE(Append("first").ok());
    StartAgent();
    ASSERT_TRUE(Append("second").ok());
    queue_.reset();
    WriteQueue::Options options = options_;
    options.now_ms = [this, started = std::make_shared<bool>(false)] {
      if (!std::exchange(*started, true)) AllowNoMoreFiles(-1);  // the first is open, for a while
      return now_ms_;
    };
    auto queue = WriteQueue::Open(options);
    AllowMoreFiles();
    ASSERT_TRUE(queue.ok()) << queue.error();
    queue_ = std::move(queue).value();
    queue_->BeginGeneration();
  }
  // And the second cannot be read yet.
  void SendTheFirst() {
    AllowNoMoreFiles(1);
    const auto first = Take();
    EXPECT_EQ(first.body, "first");
    Finish(first);
    AllowNoMoreFiles();
  }
};

// Whatever is younger waits, or its series would be sent out of order.
TEST_F(WriteQueueUnreadTest, AFileThatCannotBeReadAtTheStartIsSentInItsTurn) {
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

TEST_F(WriteQueueUnreadTest, WhatIsBehindItWaits) {
  bool is_there = false;
  const auto take = [&] { return is_there ? Take() : WriteQueue::Claim{}; };
  // Once while files may be opened: a sanitizer opens some to look at objects that are new to it.
  std::async(std::launch::async, take).get();
  StartAgentThatCannotReadTheSecond();
  ASSERT_TRUE(Append("live").ok());
  SendTheFirst();
  is_there = true;
  auto waiting = std::async(std::launch::async, take);
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  AllowMoreFiles();
  EXPECT_EQ(waiting.get().body, "second");
  EXPECT_THAT(said_, ElementsAre(HasSubstr("000000000002.queue: Too many open files; it is tried again each second")));
}

TEST_F(WriteQueueUnreadTest, ItIsGivenUpAtItsAge) {
  StartAgentThatCannotReadTheSecond();
  ASSERT_TRUE(Append("live").ok());
  SendTheFirst();
  now_ms_ = std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1) + 25 * 3'600'000;
  ASSERT_TRUE(Append("more").ok());
  AllowMoreFiles();
  EXPECT_EQ(queue_->stats().corrupt_places, 1U);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("Too many open files"),
                                 HasSubstr("000000000002.queue could not be read, and may stay no longer")));
  EXPECT_THAT(SendAll(), ElementsAre("live", "more"));
}

TEST_F(WriteQueueUnreadTest, CloseMayFindNoFileAtAll) {
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

TEST_F(WriteQueueDamageTest, ADirectoryThatCannotBeListedIsAnError) {
  StartAgent();
  queue_.reset();
  const int last = open("/dev/null", O_RDONLY | O_CLOEXEC);  // that descriptor is the directory's
  AllowNoMoreFiles();
  close(last);
  const auto queue = WriteQueue::Open(options_);
  AllowMoreFiles();
  ASSERT_FALSE(queue.ok());
  EXPECT_THAT(queue.error(), HasSubstr("cannot list"));
}

}  // namespace
}  // namespace persia::agent

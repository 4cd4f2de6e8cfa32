#include "gpu/gpu_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "captured_log.h"
#include "sanitizers.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Readers that are shell scripts. $SAMPLE is a file with a sample, which a script may `cat >&3`.
class GpuReaderTest : public ::testing::Test {
 protected:
  GpuReaderTest() {
    Put("sample", EncodeGpuMessage(GpuSample{.driver = "550", .devices = {{.gpu = "0"}, {.gpu = "1"}}}));
    Put("xid", EncodeGpuMessage(GpuXid{"0", 79, 1}));
    Put("problem", EncodeGpuMessage(GpuProblem{"the NVIDIA driver is not loaded"}));
  }
  ~GpuReaderTest() override { reader_.reset(); }

  void Put(const std::string& name, const std::string& bytes) { std::ofstream(folder_ / name, std::ios::binary) << bytes; }

  void Start(const std::string& script) {
    options_.command = {"/bin/sh", "-c", "cd " + folder_.path() + "; echo $$ > pid; " + script};
    reader_ = std::make_unique<GpuReader>(options_);
    reader_->Start();
  }

  // Of all news since the last call.
  GpuReader::News WaitUntil(const std::function<bool(const GpuReader::News&)>& there) {
    GpuReader::News news = reader_->Take();
    // The test has a time limit (test_main.cc).
    while (!there(news)) {
      std::this_thread::sleep_for(milliseconds(2));
      GpuReader::News next = reader_->Take();
      next.xids.insert(next.xids.begin(), news.xids.begin(), news.xids.end());
      news = std::move(next);
    }
    return news;
  }

  const TemporaryDirectory folder_;
  GpuReader::Options options_{.command = {},
                              .interval = milliseconds(1),
                              .first_patience = std::chrono::minutes(1),
                              .patience = std::chrono::minutes(1),
                              .min_backoff = milliseconds(1),
                              .max_backoff = milliseconds(2),
                              .stop_patience = std::chrono::minutes(1)};
  std::unique_ptr<GpuReader> reader_;
};

TEST_F(GpuReaderTest, SamplesAndErrorsArrive) {
  const CapturedLog log;
  Start("cat xid sample xid >&3; sleep 100");
  const GpuReader::News news = WaitUntil([](const auto& now) { return now.runs && now.xids.size() == 2; });
  ASSERT_NE(news.sample, nullptr);
  EXPECT_EQ(news.sample->devices[1].gpu, "1");
  EXPECT_EQ(news.xids[0].xid, 79);
  EXPECT_EQ(news.restarts, 0);
  EXPECT_THAT(reader_->Take().xids, SizeIs(0)) << "each once";
  EXPECT_THAT(log.Infos(), ElementsAre("reading 2 GPUs, driver 550"));
}

TEST_F(GpuReaderTest, StopEndsTheProcess) {
  Start("cat sample >&3; trap '' TERM INT HUP; sleep 100");
  WaitUntil([](const auto& now) { return now.runs; });
  pid_t pid = 0;
  std::ifstream(folder_ / "pid") >> pid;
  ASSERT_EQ(kill(pid, 0), 0);
  reader_->Stop();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_FALSE(reader_->Take().runs);
}

TEST_F(GpuReaderTest, ASilentProcessIsKilledAndStartedAgain) {
  const CapturedLog log;
  options_.first_patience = options_.patience = milliseconds(100);
  Start("test -e again || cat sample >&3; touch again; sleep 100");
  WaitUntil([](const auto& now) { return now.restarts >= 2; });
  reader_->Stop();
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("a call of the driver's library has not returned for"))) << "once";
}

TEST_F(GpuReaderTest, ACrashIsToldOnceAndOverWhenItHasRunAgainForAWhile) {
  const CapturedLog log;
  Start(
      "if test -e 3; then while :; do cat sample >&3; sleep 0.003; done; fi; test -e 2 && touch 3; test -e 1 && touch 2; touch "
      "1; "
      "kill -SEGV $$");
  while (log.Infos().empty()) std::this_thread::sleep_for(milliseconds(2));
  reader_->Stop();
  EXPECT_THAT(log.Messages(), ElementsAre(AllOf(HasSubstr("GPUs are not read"), HasSubstr("crashed by SIGSEGV")),
                                          HasSubstr("reading 2 GPUs, driver 550")));
}

TEST_F(GpuReaderTest, ACrashAfterEachFirstSampleIsToldOnceAndTriedMoreAndMoreRarely) {
  const CapturedLog log;
  const auto began = std::chrono::steady_clock::now();
  options_.max_backoff = std::chrono::minutes(5);
  Start("cat sample >&3; kill -SEGV $$");
  WaitUntil([](const auto& now) { return now.restarts >= 6; });
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(1 + 2 + 4 + 8 + 16 + 32));
  reader_->Stop();
  EXPECT_THAT(log.Messages(), ElementsAre(HasSubstr("reading 2 GPUs"), HasSubstr("crashed by SIGSEGV")));
}

TEST(GpuReaderOptionsTest, TheBackoffIsFiveSecondsToFiveMinutes) {
  for (const milliseconds interval : {milliseconds(1'000), milliseconds(5'000), milliseconds(60'000)}) {
    const GpuReader::Options options = ReaderOptions("library", interval);
    EXPECT_EQ(options.min_backoff, std::chrono::seconds(5));
    EXPECT_EQ(options.max_backoff, std::chrono::minutes(5));
  }
  EXPECT_EQ(ReaderOptions("library", milliseconds(100)).min_backoff, milliseconds(500));
}

// As the kernel has it on a busy machine: the pipe is closed long before the process can be reaped.
TEST_F(GpuReaderTest, TheExitOfAProcessThatEndsSlowlyIsTold) {
  const CapturedLog log;
  int asked = 0;
  options_.stop_patience = milliseconds(0);
  options_.reap = [&](pid_t process, int* status) { return ++asked % 10 != 0 ? 0 : waitpid(process, status, 0); };
  Start("exit 7");
  WaitUntil([](const auto& now) { return now.restarts >= 2; });
  reader_->Stop();
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("ended with exit code 7")));
}

TEST_F(GpuReaderTest, AProcessThatTheKernelHoldsIsToldAndHasNoSuccessor) {
  const CapturedLog log;
  std::atomic<int> asked = 0;
  options_.patience = options_.stop_patience = milliseconds(10);
  options_.reap = [&](pid_t, int*) { return ++asked, 0; };
  Start("exit 7");
  while (log.Warnings().empty()) std::this_thread::sleep_for(milliseconds(2));
  const int then = asked;
  while (asked < then + 10) std::this_thread::sleep_for(milliseconds(2));
  reader_->Stop();
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("hangs in the kernel")));
  EXPECT_EQ(reader_->Take().restarts, 0U);
  EXPECT_FALSE(reader_->HasEnded());
}

TEST_F(GpuReaderTest, StopWaitsForAProcessThatTheKernelHoldsNoLongerThanItMay) {
  const CapturedLog log;
  std::atomic<int> asked = 0;
  options_.patience = std::chrono::hours(1);
  options_.stop_patience = milliseconds(10);
  options_.reap = [&](pid_t, int*) { return ++asked, 0; };
  Start("exit 7");
  while (asked < 2) std::this_thread::sleep_for(milliseconds(2));
  reader_->Stop();  // within the limit of a test
  EXPECT_THAT(log.Warnings(), IsEmpty()) << "it may have ended in time";
}

TEST_F(GpuReaderTest, AnAgentThatIgnoresTheEndOfItsChildrenStartsItAgain) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  Start("exit 7");
  WaitUntil([](const auto& now) { return now.restarts >= 2; });
  reader_->Stop();
  signal(SIGCHLD, before);
}

TEST_F(GpuReaderTest, AProcessThatWritesGarbageIsKilled) {
  const CapturedLog log;
  Start("echo NVRM: hello >&3; sleep 100");
  WaitUntil([](const auto& now) { return now.restarts >= 2; });
  reader_->Stop();
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("wrote bytes that are no message: \"NVRM: he\"")));
}

TEST_F(GpuReaderTest, AProblemIsToldInItsOwnWords) {
  const CapturedLog log;
  Start("cat problem >&3; exit 1");
  WaitUntil([](const auto& now) { return now.restarts >= 2; });
  reader_->Stop();
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("GPUs are not read: the NVIDIA driver is not loaded;")));
}

TEST_F(GpuReaderTest, AProgramThatCannotBeStartedIsTold) {
  const CapturedLog log;
  reader_ = std::make_unique<GpuReader>(
      GpuReader::Options{.command = {"/nowhere/at/all"}, .min_backoff = milliseconds(1), .max_backoff = milliseconds(2)});
  reader_->Start();
  WaitUntil([](const auto& now) { return now.restarts >= 2; });
  reader_->Stop();
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("cannot start /nowhere/at/all")));
}

TEST_F(GpuReaderTest, ErrorsBeyondTheLimitAreNotKept) {
  std::string all;
  for (size_t i = 0; i < GpuReader::kMaxXids + 100; ++i) all += EncodeGpuMessage(GpuXid{"0", 79, 1});
  Put("storm", all);
  Start("cat storm sample >&3; sleep 100");
  // Without a Take in between.
  while (true) {
    std::this_thread::sleep_for(milliseconds(2));
    const GpuReader::News news = reader_->Take();
    EXPECT_LE(news.xids.size(), GpuReader::kMaxXids);
    if (news.runs) break;
  }
}

TEST_F(GpuReaderTest, TheProcessHasNoOtherDescriptors) {
  Start("ls /proc/$$/fd > seen; cat sample >&3; sleep 100");
  WaitUntil([](const auto& now) { return now.runs; });
  std::ifstream file(folder_ / "seen");
  std::vector<int> descriptors;
  for (int fd = 0; file >> fd;) {
    if (fd < 10) descriptors.push_back(fd);  // a shell keeps some above
  }
  EXPECT_THAT(descriptors, ElementsAre(0, 1, 2, GpuReader::kPipe));
}

// ThreadSanitizer needs more memory than the process allows itself.
#if !PERSIA_TEST_TSAN
// The agent may be killed before the process asks the kernel to end with it.
TEST(GpuReaderProcess, WithoutAnAgentItEndsBeforeItCallsTheDriver) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const auto run = [&] { _exit(ReadGpus({kGpuReaderVerb, std::to_string(ends[1]), "100", "/nowhere/libnvidia-ml.so.1"})); };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(1), "") << "there is no such library";
  close(ends[0]);
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  close(ends[1]);
}
#endif

}  // namespace
}  // namespace persia::agent

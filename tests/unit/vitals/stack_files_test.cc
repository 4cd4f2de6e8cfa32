// Which processes are asked for their stacks, and what is read of them.
#include "vitals/stack_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>

#include "files/proc_reader.h"
#include "vitals/file_tree.h"

namespace persia::agent {
namespace {

using ::testing::SizeIs;

std::atomic<int> caught = 0;

class StackFilesTest : public ::testing::Test {
 protected:
  StackFilesTest() { caught = 0; }
  ~StackFilesTest() override { std::signal(signal_, SIG_DFL); }

  void Write(const std::string& content) {
    tree_.Write(std::to_string(pid_) + "-" + std::to_string(start_) + ".stacks", content);
  }
  [[nodiscard]] std::string Header() const { return "persia-metrics stacks 1 signal " + std::to_string(signal_) + "\n"; }

  const int signal_ = SIGRTMIN + 15;
  const uint32_t pid_ = static_cast<uint32_t>(getpid());
  const uint64_t start_ = ProcReader().Stat("self")->start_ticks;
  FileTree tree_;
  StackFiles files_{tree_.path()};
};

TEST_F(StackFilesTest, AProcessThatOptedInIsAsked) {
  Write(Header());
  std::signal(signal_, [](int) { ++caught; });
  EXPECT_TRUE(files_.Ask(pid_, start_));
  EXPECT_EQ(caught, 1);
}

// The signal would end it.
TEST_F(StackFilesTest, AProcessThatDoesNotCatchTheSignalIsNotAsked) {
  Write(Header());
  EXPECT_FALSE(files_.Ask(pid_, start_));
}

TEST_F(StackFilesTest, AnotherProcessWithThisPidIsNotAsked) {
  tree_.Write(std::to_string(pid_) + "-1.stacks", Header());
  std::signal(signal_, [](int) { ++caught; });
  EXPECT_FALSE(files_.Ask(pid_, 1));
  EXPECT_EQ(caught, 0);
}

TEST_F(StackFilesTest, WithoutAFileOrWithAnotherHeaderNothingIsSent) {
  std::signal(signal_, [](int) { ++caught; });
  EXPECT_FALSE(files_.Ask(pid_, start_));
  for (const char* header :
       {"", "x", "persia-metrics stacks 1 signal ", "persia-metrics stacks 1 signal 0\n", "persia-metrics stacks 1 signal -9\n",
        "persia-metrics stacks 1 signal 400\n", "persia-metrics stacks 1 signal 9x\n"}) {
    Write(header);
    EXPECT_FALSE(files_.Ask(pid_, start_)) << header;
  }
  EXPECT_EQ(caught, 0);
}

TEST_F(StackFilesTest, TheStacksFollowTheHeader) {
  Write(Header());
  EXPECT_EQ(files_.Read(pid_, start_), "");
  Write(Header() + "Thread 0x1:\n  File \"a.py\", line 1 in f\n");
  EXPECT_EQ(files_.Read(pid_, start_), "Thread 0x1:\n  File \"a.py\", line 1 in f\n");
  files_.Remove(pid_, start_);
  EXPECT_EQ(files_.Read(pid_, start_), "");
}

TEST_F(StackFilesTest, LongStacksAreCutAndControlCharactersReplaced) {
  Write(Header() + std::string(100'000, 'x') + "\n\x1b[2J\n");
  EXPECT_THAT(files_.Read(pid_, start_), SizeIs(StackFiles::kMaxBytes + 1));
  Write(Header() + "\x1b[2J\n");
  EXPECT_EQ(files_.Read(pid_, start_), "\uFFFD[2J\n");
}

TEST_F(StackFilesTest, ALinkIsNotFollowed) {
  tree_.Write("secret", Header() + "secret");
  std::filesystem::create_symlink(tree_.path() + "/secret",
                                  tree_.path() + "/" + std::to_string(pid_) + "-" + std::to_string(start_) + ".stacks");
  EXPECT_EQ(files_.Read(pid_, start_), "");
}

}  // namespace
}  // namespace persia::agent

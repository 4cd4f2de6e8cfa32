// Which processes are asked for their stacks, and what is read of them.
#include "health/stack_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "file_tree.h"
#include "kernel/proc_reader.h"

namespace persia::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

std::atomic<int> caught = 0;

class StackFilesTest : public ::testing::Test {
 protected:
  StackFilesTest() { caught = 0; }
  ~StackFilesTest() override { std::signal(signal_, SIG_DFL); }

  void Write(const std::string& content) {
    tree_.Write(std::to_string(process_.pid) + "-" + std::to_string(process_.start_ticks) + ".stacks", content);
  }
  void Append(const std::string& content) {
    std::ofstream(tree_.path() + "/" + std::to_string(process_.pid) + "-" + std::to_string(process_.start_ticks) + ".stacks",
                  std::ios::app)
        << content;
  }
  static std::string Stacks(const std::string& thread, const std::string& function, size_t calls) {
    std::string text = thread + " (most recent call first):\n";
    for (size_t i = 0; i < calls; ++i) text += "  File \"a.py\", line " + std::to_string(i) + " in " + function + "\n";
    return text;
  }
  [[nodiscard]] std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(tree_.path())) names.push_back(entry.path().filename());
    return names;
  }
  [[nodiscard]] std::string Header() const { return "persia-metrics stacks 1 signal " + std::to_string(signal_) + "\n"; }

  const int signal_ = SIGRTMIN + 15;
  const ProcessId process_{.pid = static_cast<uint32_t>(getpid()), .start_ticks = ProcReader().Stat("self")->start_ticks};
  FileTree tree_;
  StackFiles files_{tree_.path()};
};

TEST_F(StackFilesTest, AProcessThatOptedInIsAsked) {
  Write(Header());
  std::signal(signal_, [](int) { ++caught; });
  EXPECT_TRUE(files_.Ask(process_));
  EXPECT_EQ(caught, 1);
}

// The signal would end it.
TEST_F(StackFilesTest, AProcessThatDoesNotCatchTheSignalIsNotAsked) {
  Write(Header());
  EXPECT_FALSE(files_.Ask(process_));
}

TEST_F(StackFilesTest, AnotherProcessWithThisPidIsNotAsked) {
  tree_.Write(std::to_string(process_.pid) + "-1.stacks", Header());
  std::signal(signal_, [](int) { ++caught; });
  EXPECT_FALSE(files_.Ask({.pid = process_.pid, .start_ticks = 1}));
  EXPECT_EQ(caught, 0);
}

TEST_F(StackFilesTest, WithoutAFileOrWithAnotherHeaderNothingIsSent) {
  std::signal(signal_, [](int) { ++caught; });
  EXPECT_FALSE(files_.Ask(process_));
  for (const char* header :
       {"", "x", "persia-metrics stacks 1 signal ", "persia-metrics stacks 1 signal 0\n", "persia-metrics stacks 1 signal -9\n",
        "persia-metrics stacks 1 signal 400\n", "persia-metrics stacks 1 signal 9x\n"}) {
    Write(header);
    EXPECT_FALSE(files_.Ask(process_)) << header;
  }
  EXPECT_EQ(caught, 0);
}

TEST_F(StackFilesTest, TheStacksFollowTheHeader) {
  Write(Header());
  EXPECT_EQ(files_.Read(process_), "");
  Write(Header() + "Thread 0x1:\n  File \"a.py\", line 1 in f\n");
  EXPECT_EQ(files_.Read(process_), "Thread 0x1:\n  File \"a.py\", line 1 in f\n");
}

TEST_F(StackFilesTest, TheFileOfAnEndedProcessIsRemoved) {
  Write(Header());
  tree_.Write(std::to_string(process_.pid) + "-1.stacks", Header());
  files_.Remove({.pid = process_.pid, .start_ticks = 1});
  EXPECT_THAT(Names(), SizeIs(1));
  files_.Remove(process_);
  EXPECT_THAT(Names(), SizeIs(1)) << "a program that this process has executed may have written it";
}

TEST_F(StackFilesTest, LongStacksAreCutAndControlCharactersReplaced) {
  Write(Header() + std::string(100'000, 'x') + "\n\x1b[2J\n");
  EXPECT_THAT(files_.Read(process_), SizeIs(Le(StackFiles::kMaxBytes + 10)));
  Write(Header() + "\x1b[2J\n");
  EXPECT_EQ(files_.Read(process_), "\uFFFD[2J\n");
}

TEST_F(StackFilesTest, AQuestionLeavesOutWhatWasWrittenBefore) {
  Write(Header());
  std::signal(signal_, [](int) { ++caught; });
  ASSERT_TRUE(files_.Ask(process_));
  Append("Thread 0x1:\n  File \"a.py\", line 1 in the_first_hang\n");
  EXPECT_THAT(files_.Read(process_), HasSubstr("the_first_hang"));
  EXPECT_THAT(files_.Read(process_), HasSubstr("the_first_hang")) << "also at its end, if it says nothing more";
  ASSERT_TRUE(files_.Ask(process_));
  EXPECT_EQ(files_.Read(process_), "") << "it has not answered yet";
  Append("Thread 0x1:\n  File \"a.py\", line 2 in the_second_hang\n");
  EXPECT_EQ(files_.Read(process_), "Thread 0x1:\n  File \"a.py\", line 2 in the_second_hang\n");
}

TEST_F(StackFilesTest, ACrashLeavesOutTheHangsBefore) {
  const std::string crash =
      "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n  File \"a.py\"\n";
  Write(Header() + "Thread 0x1 (most recent call first):\n  File \"hang.py\"\n" + crash);
  EXPECT_EQ(files_.Read(process_), crash);
  Write(Header() + Stacks("Thread 0x7", "hang", 30'000) + crash);
  EXPECT_EQ(files_.Read(process_), crash);
}

TEST_F(StackFilesTest, OfLongStacksTheThreadThatCrashedAndTheMainThreadAreKept) {
  const std::string title = "Fatal Python error: Segmentation fault\n\n";
  const std::string modules = "Extension modules: " + std::string(5000, 'm') + "\n";
  std::string others;
  for (int i = 0; i < 20; ++i) others += Stacks("Thread 0x" + std::to_string(i), "other", 5) + "\n";
  for (const size_t calls : {3, 90}) {
    Write(Header() + title + others + Stacks("Current thread 0xa", "crashed", calls) + "\n" + others +
          Stacks("Thread 0xb", "main_program", calls) + "\n" + modules);
    const std::string shown = files_.Read(process_);
    EXPECT_THAT(shown, StartsWith(title));
    EXPECT_THAT(shown, HasSubstr("Current thread 0xa (most recent call first):\n  File \"a.py\", line 0 in crashed\n"));
    EXPECT_THAT(shown, HasSubstr("Thread 0xb (most recent call first):\n  File \"a.py\", line 0 in main_program\n"));
    EXPECT_THAT(shown, HasSubstr("...\n")) << "says that something is left out";
    EXPECT_THAT(shown, SizeIs(Le(StackFiles::kMaxBytes + 100)));
  }
}

TEST_F(StackFilesTest, OfAFileThatGrowsWithoutEndTheLastMebibyteIsRead) {
  const auto mebibyte = [](const std::string& begin) { return begin + std::string((1 << 20) - begin.size(), '\n'); };
  const std::string crash = "Fatal Python error: early\n";
  Write(Header() + mebibyte(crash));
  EXPECT_THAT(files_.Read(process_), StartsWith(crash));
  Write(Header() + crash + mebibyte("Current thread 0x2\n"));
  EXPECT_THAT(files_.Read(process_), StartsWith("Current thread 0x2\n"));
}

TEST_F(StackFilesTest, FilesOfEndedProcessesWithoutASegmentAreRemoved) {
  const std::string self = std::to_string(process_.pid) + "-" + std::to_string(process_.start_ticks) + ".stacks";
  const std::string reused = std::to_string(process_.pid) + "-1.stacks";
  // No pid is as high.
  for (const std::string& name : {self, reused, std::string("4194305-1.stacks"), std::string("4194306-1.stacks"),
                                  std::string("4194306-0123456789abcdef.seg"), std::string("x.stacks")}) {
    tree_.Write(name, Header());
  }
  files_.RemoveOrphans();
  EXPECT_THAT(Names(), UnorderedElementsAre(self, "4194306-1.stacks", "4194306-0123456789abcdef.seg", "x.stacks"));
}

TEST_F(StackFilesTest, WithoutADirectoryNothingIsRemoved) { StackFiles("/nowhere/at/all").RemoveOrphans(); }

TEST_F(StackFilesTest, ALinkIsNotFollowed) {
  tree_.Write("secret", Header() + "secret");
  std::filesystem::create_symlink(tree_.path() + "/secret", tree_.path() + "/" + std::to_string(process_.pid) + "-" +
                                                                std::to_string(process_.start_ticks) + ".stacks");
  EXPECT_EQ(files_.Read(process_), "");
}

}  // namespace
}  // namespace persia::agent

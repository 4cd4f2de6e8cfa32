// The last lines of a file that is a process's stderr.
#include "health/stderr_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "file_tree.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class StderrFileTest : public ::testing::Test {
 protected:
  StderrFileTest() {
    tree_.Write("7/fd/0", "");
    tree_.Write("log", "");
    std::filesystem::create_symlink(tree_.path() + "/log", tree_.path() + "/7/fd/2");
  }
  std::vector<std::string> LinesOf(const std::string& content, size_t count = 3) {
    tree_.Write("log", content);
    const auto file = Of();
    return file ? file->LastLines(count) : std::vector<std::string>{"not seen"};
  }

  // With the inode that the file has now.
  std::optional<StderrFile> Of() {
    struct stat info {};
    EXPECT_EQ(stat((tree_.path() + "/log").c_str(), &info), 0);
    tree_.Write("7/fdinfo/2", "pos:\t0\nflags:\t0100001\nmnt_id:\t27\nino:\t" + std::to_string(info.st_ino) + "\n");
    return StderrFile::Of(proc_, "7");
  }

  FileTree tree_;
  ProcReader proc_{tree_.path()};
};

TEST_F(StderrFileTest, TheLastLinesAreReturnedInTheirOrder) {
  EXPECT_THAT(LinesOf("a\nb\nc\nd\n"), ElementsAre("b", "c", "d"));
  EXPECT_THAT(LinesOf("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(LinesOf(""), IsEmpty());
  EXPECT_THAT(LinesOf("\n\n"), IsEmpty());
  EXPECT_THAT(LinesOf(" 10%\r 20%\r\nend\n"), ElementsAre(" 10%", " 20%", "end"));
}

TEST_F(StderrFileTest, LongFilesAndLinesAreCut) {
  EXPECT_THAT(LinesOf(std::string(100'000, 'x')), IsEmpty()) << "where the line begins is not known";
  EXPECT_THAT(LinesOf(std::string(100'000, 'x') + "\n" + std::string(1000, 'y') + "\n"),
              ElementsAre(SizeIs(StderrFile::kMaxLineBytes)));
}

TEST_F(StderrFileTest, ControlCharactersAreReplaced) { EXPECT_THAT(LinesOf("\x1b[2J\n"), ElementsAre("\uFFFD[2J")); }

TEST_F(StderrFileTest, AnotherFileOfThisNameIsNotRead) {
  tree_.Write("log", "a\n");
  const auto file = Of();
  ASSERT_TRUE(file);
  std::filesystem::rename(tree_.path() + "/log", tree_.path() + "/log.1");
  EXPECT_THAT(file->LastLines(3), IsEmpty());
  tree_.Write("log", "of another\n");
  EXPECT_THAT(file->LastLines(3), IsEmpty());
}

TEST_F(StderrFileTest, WhatIsNoFileIsNotRead) {
  EXPECT_FALSE(StderrFile::Of(proc_, "8"));
  for (const char* target : {"/dev/null", "/dev/pts/0", "pipe:[4711]", "socket:[4711]"}) {
    std::filesystem::remove(tree_.path() + "/7/fd/2");
    std::filesystem::create_symlink(target, tree_.path() + "/7/fd/2");
    EXPECT_FALSE(StderrFile::Of(proc_, "7")) << target;
  }
}

// A call that followed the link would wait for a filesystem that hangs.
TEST_F(StderrFileTest, ToFindItsNameTheFileIsNotTouched) {
  std::filesystem::remove(tree_.path() + "/log");
  EXPECT_TRUE(StderrFile::Of(proc_, "7"));
}

}  // namespace
}  // namespace persia::agent

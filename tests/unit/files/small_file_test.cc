#include "files/small_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/owned_fd.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

class SmallFileTest : public ::testing::Test {
 protected:
  std::string Read(const std::string& path) {
    const Result<SmallFile> file = ReadSmallFile(path, "; expected more");
    return file.ok() ? file.value().content : "error: " + file.error();
  }
  std::string Read(size_t bytes) {
    std::ofstream(path_, std::ios::binary) << std::string(bytes, 'x');
    return Read(path_);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/file";
};

TEST_F(SmallFileTest, IsReadWholeUpToItsLimit) {
  EXPECT_EQ(Read(0), "");
  EXPECT_EQ(Read(100'000), std::string(100'000, 'x'));
  EXPECT_EQ(Read(1 << 20).size(), 1U << 20);
  EXPECT_EQ(Read((1 << 20) + 1), "error: is larger than 1 MiB; expected more");
  EXPECT_EQ(ReadSmallFile(path_, "", 3).value().content.size(), (1U << 20) + 1);
  Read((3 << 20) + 1);
  EXPECT_EQ(ReadSmallFile(path_, "; expected less", 3).error(), "is larger than 3 MiB; expected less");
}

// Such as a file of /proc, or one that grows: here the arguments of a program that waits.
TEST_F(SmallFileTest, AFileThatIsLargerThanItTellsIsReadUpToItsLimit) {
  std::string program = "sh", option = "-c", script = "read line", argument(100'000, 'x');
  std::vector<char*> arguments = {program.data(), option.data(), script.data()};
  arguments.resize(arguments.size() + 11, argument.data());
  arguments.push_back(nullptr);
  std::array<int, 2> input{};
  ASSERT_EQ(pipe2(input.data(), O_CLOEXEC), 0);
  const OwnedFd reads(input[0]);
  OwnedFd writes(input[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, reads.get(), STDIN_FILENO);
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, "/bin/sh", &actions, nullptr, arguments.data(), nullptr), 0);
  posix_spawn_file_actions_destroy(&actions);
  const std::string path = "/proc/" + std::to_string(child) + "/cmdline";
  while (Read(path).empty()) std::this_thread::yield();  // until the kernel has set the program up
  EXPECT_EQ(Read(path), "error: is larger than 1 MiB; expected more");
  EXPECT_EQ(ReadSmallFile(path, "", 2).value().content.size(), sizeof "sh" + sizeof "-c" + sizeof "read line" + 11 * 100'001);
  writes = OwnedFd();
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(SmallFileTest, WhatIsNoRegularFileIsRefusedUnread) {
  EXPECT_EQ(Read(path_), "error: cannot be read: No such file or directory");
  EXPECT_EQ(Read(directory_.path()), "error: is a directory; expected more");
  EXPECT_EQ(Read("/dev/zero"), "error: is not a regular file; expected more");
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Read(path_), "error: is not a regular file; expected more");
}

}  // namespace
}  // namespace persia::agent

#include "files/small_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

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

TEST_F(SmallFileTest, WhatIsNoRegularFileIsRefusedUnread) {
  EXPECT_EQ(Read(path_), "error: cannot be read: No such file or directory");
  EXPECT_EQ(Read(directory_.path()), "error: is a directory; expected more");
  EXPECT_EQ(Read("/dev/zero"), "error: is not a regular file; expected more");
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Read(path_), "error: is not a regular file; expected more");
}

}  // namespace
}  // namespace persia::agent

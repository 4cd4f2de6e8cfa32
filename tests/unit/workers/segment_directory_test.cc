#include "workers/segment_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SegmentDirectoryTest : public ::testing::Test {
 protected:
  // A change that the filesystem's clock, which goes in steps, tells from the one before.
  void Write(const std::string& name) {
    AwaitClock();
    std::ofstream(directory_ / name) << "x";
  }
  void Remove(const std::string& name) {
    AwaitClock();
    unlink((directory_ / name).c_str());
  }
  void AwaitClock() {
    struct stat changed {
    }, now{};
    stat(directory_.path().c_str(), &changed);
    const TemporaryDirectory other("/dev/shm");
    do {
      std::ofstream(other / "now") << "x";
      stat((other / "now").c_str(), &now);
    } while (FileId{.changed = now.st_ctim}.Same({.changed = changed.st_ctim}));
  }
  size_t ListAfter(milliseconds time) {
    now_ += time;
    return files_.List().files.size();
  }

  const TemporaryDirectory directory_{"/dev/shm"};
  std::chrono::steady_clock::time_point now_{seconds(1000)};
  DiskSegmentDirectory files_{directory_.path(), [this] { return now_; }};
};

TEST_F(SegmentDirectoryTest, IsUnchangedUntilAFileComesOrGoes) {
  Write("1-0123456789abcdef.seg");
  EXPECT_FALSE(files_.IsUnchanged()) << "it was not listed";
  EXPECT_EQ(ListAfter(seconds(1)), 1U);
  EXPECT_EQ(ListAfter(seconds(1)), 1U);
  EXPECT_TRUE(files_.IsUnchanged());
  Write("2-0123456789abcdef.seg");
  EXPECT_FALSE(files_.IsUnchanged());
  EXPECT_EQ(ListAfter(seconds(1)), 2U);
  EXPECT_EQ(ListAfter(seconds(1)), 2U);
  EXPECT_TRUE(files_.IsUnchanged());
  Remove("1-0123456789abcdef.seg");
  EXPECT_FALSE(files_.IsUnchanged());
}

// The filesystem's clock goes in steps.
TEST_F(SegmentDirectoryTest, AChangeInTheInstantOfAListingIsNotMissed) {
  Write("1-0123456789abcdef.seg");
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(ListAfter(milliseconds(100)), 1U);
    EXPECT_EQ(files_.IsUnchanged(), i == 5) << i;
  }
}

TEST_F(SegmentDirectoryTest, AnotherDirectoryOfItsNameIsAChange) {
  ListAfter(seconds(1));
  ListAfter(seconds(1));
  EXPECT_TRUE(files_.IsUnchanged());
  const std::string moved = directory_.path() + ".moved";
  std::filesystem::rename(directory_.path(), moved);
  EXPECT_FALSE(files_.IsUnchanged());
  std::filesystem::create_directory(directory_.path());
  EXPECT_FALSE(files_.IsUnchanged());
  std::filesystem::remove(directory_.path());
  std::filesystem::rename(moved, directory_.path());
}

}  // namespace
}  // namespace persia::agent

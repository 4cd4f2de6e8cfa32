// Which filesystems in memory are asked, and which are full.
#include "kernel/full_filesystems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "file_tree.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;

std::set<std::string> Find(const std::string& mountinfo, FullFilesystems::FreeRatio free_ratio) {
  FileTree proc;
  proc.Write("self/mountinfo", mountinfo);
  FullFilesystems filesystems(proc.path(), std::move(free_ratio));
  filesystems.Ask();
  filesystems.Await(std::chrono::seconds(30));
  return filesystems.Find();
}

TEST(FullFilesystemsTest, OnlyFullOnesInMemoryAreFound) {
  EXPECT_THAT(Find("1 0 8:1 / / rw - ext4 /dev/vda rw\n2 1 0:32 / /dev/shm rw shared:4 master:1 - tmpfs shm rw\n"
                   "3 1 0:33 / /with\\040blank rw - tmpfs x rw\n4 1 0:34 / /free rw - tmpfs y rw\nbroken\n",
                   [](const std::string& path, dev_t) { return path == "/free" ? 0.5 : 0.0; }),
              ElementsAre("/dev/shm", "/with blank"));
}

TEST(FullFilesystemsTest, OfAMountPointOnlyTheLastMountCounts) {
  EXPECT_THAT(Find("2 1 0:32 / /hidden rw - tmpfs x rw\n3 1 0:33 / /hidden rw - fuse y rw\n"
                   "4 1 0:34 / /twice rw - tmpfs x rw\n5 1 0:35 / /twice rw - tmpfs y rw\n",
                   [](const std::string&, dev_t device) { return device == makedev(0, 34) ? 0.5 : 0.0; }),
              ElementsAre("/twice"));
}

TEST(FullFilesystemsTest, APathThatLeadsToAnotherFilesystemIsNotJudged) {
  const TemporaryDirectory directory("/dev/shm");
  struct stat info {};
  ASSERT_EQ(stat(directory.path().c_str(), &info), 0);
  EXPECT_GE(FullFilesystems::FreeRatioOf(directory.path(), info.st_dev), 0);
  EXPECT_LT(FullFilesystems::FreeRatioOf(directory.path(), info.st_dev + 1), 0);
  EXPECT_LT(FullFilesystems::FreeRatioOf(directory.path() + "/gone", info.st_dev), 0);
}

}  // namespace
}  // namespace persia::agent

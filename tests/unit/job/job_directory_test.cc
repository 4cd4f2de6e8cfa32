#include "job/job_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::HasSubstr;

class JobDirectoryTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return root_ / name; }
  static mode_t ModeOf(const std::string& path) {
    struct stat info {};
    stat(path.c_str(), &info);
    return info.st_mode & 07777;
  }
  static Result<JobDirectory> Open(const std::string& path, const std::string& group = {}) {
    return JobDirectory::Open({.path = path, .group = group});
  }
  static std::string Refusal(const std::string& path) {
    const auto directory = Open(path);
    return directory.ok() ? "" : directory.error();
  }

  const TemporaryDirectory temporary_;
  const std::filesystem::path root_ = temporary_.path();
};

TEST_F(JobDirectoryTest, IsCreatedForThisUserAlone) {
  ASSERT_TRUE(Open(Path("parent/job")).ok());
  EXPECT_EQ(ModeOf(Path("parent/job")), 0700u);
  EXPECT_EQ(ModeOf(Path("parent")), 0700u);
}

TEST_F(JobDirectoryTest, OnlyTheParentIsCreatedToo) {
  EXPECT_THAT(Refusal(Path("a/b/job")), HasSubstr("cannot open " + Path("a")));
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
}

TEST_F(JobDirectoryTest, NamesTheFilesystemIfItIsOnADisk) {
  const TemporaryDirectory in_memory("/dev/shm");
  EXPECT_EQ(Open(in_memory.path() + "/job").value().DiskFilesystem(), std::nullopt);
  EXPECT_EQ(DiskFilesystemOf(0xEF53), "ext4");
  EXPECT_EQ(DiskFilesystemOf(0x58465342), "xfs");
  EXPECT_EQ(DiskFilesystemOf(0x9123683E), "btrfs");
  EXPECT_EQ(DiskFilesystemOf(0x858458F6), std::nullopt) << "ramfs";
  struct statfs filesystem {};
  ASSERT_EQ(statfs(Path("").c_str(), &filesystem), 0);
  EXPECT_EQ(Open(Path("job")).value().DiskFilesystem(), DiskFilesystemOf(static_cast<long>(filesystem.f_type)));
}

TEST_F(JobDirectoryTest, AnExistingDirectoryIsUsed) {
  mkdir(Path("job").c_str(), 0755);
  EXPECT_TRUE(Open(Path("job")).ok());
  EXPECT_EQ(ModeOf(Path("job")), 0755u);
}

TEST_F(JobDirectoryTest, ThatOthersCanWriteToIsRefused) {
  mkdir(Path("job").c_str(), 0700);
  chmod(Path("job").c_str(), 0777);
  EXPECT_THAT(Refusal(Path("job")), HasSubstr("mode 0777"));
}

TEST_F(JobDirectoryTest, OfAnotherUserIsRefused) {
  mkdir(Path("job").c_str(), 0700);
  // As root we can give it away; as anyone else there is one of root's.
  const bool root = geteuid() == 0;
  const std::string path = root ? Path("job") : "/usr";
  if (root) {
    ASSERT_EQ(chown(path.c_str(), 4711, 4711), 0);
  }
  EXPECT_THAT(Refusal(path), HasSubstr(root ? "owner 4711" : "owner 0"));
}

TEST_F(JobDirectoryTest, ThatIsALinkIsRefused) {
  mkdir(Path("real").c_str(), 0700);
  symlink(Path("real").c_str(), Path("job").c_str());
  EXPECT_THAT(Refusal(Path("job")), HasSubstr("cannot open the directory"));
}

TEST_F(JobDirectoryTest, ThatIsAFileIsRefused) {
  std::ofstream(Path("job")) << "x";
  EXPECT_THAT(Refusal(Path("job")), HasSubstr("Not a directory"));
  EXPECT_THAT(Refusal(Path("job/below")), HasSubstr(Path("job") + " is not a directory"));
}

TEST_F(JobDirectoryTest, OwnLinkOnTheWayIsFollowed) {
  mkdir(Path("real").c_str(), 0700);
  symlink(Path("real").c_str(), Path("link").c_str());
  ASSERT_TRUE(Open(Path("link/job")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(Path("real/job")));
}

TEST_F(JobDirectoryTest, LinkOfAnotherUserOnTheWayIsNotFollowed) {
  mkdir(Path("real").c_str(), 0700);
  symlink(Path("real").c_str(), Path("link").c_str());
  if (lchown(Path("link").c_str(), 4711, 4711) != 0) {
    ASSERT_NE(geteuid(), 0u);  // only root can make one
    return;
  }
  EXPECT_THAT(Refusal(Path("link/job")), HasSubstr("is a symbolic link of another user (4711); it is not followed"));
}

// A member of a shared directory's group could give a private file this name, and the agent would empty it.
TEST_F(JobDirectoryTest, ALockThatIsAnotherFileIsRefusedAndStaysAsItIs) {
  auto directory = Open(Path("job"), std::to_string(getegid()));
  std::ofstream(Path("private")) << "secret";
  chmod(Path("private").c_str(), 0600);
  for (const auto make : {link, symlink}) {
    ASSERT_EQ(make(Path("private").c_str(), Path("job/agent.lock").c_str()), 0);
    EXPECT_FALSE(directory.value().Lock().ok());
    EXPECT_EQ(std::filesystem::file_size(Path("private")), 6U);
    EXPECT_EQ(ModeOf(Path("private")), 0600U);
    std::filesystem::remove(Path("job/agent.lock"));
  }
  EXPECT_TRUE(directory.value().Lock().ok());
}

// A member of the group could put a pipe there, whose reader would wait for a writer.
TEST_F(JobDirectoryTest, APipeInPlaceOfALockHasNoHolder) {
  const auto directory = Open(Path("job"));
  for (const char* name : {"job/agent.lock", "job/agent.execs", "job/agent.conf"}) {
    ASSERT_EQ(mkfifo(Path(name).c_str(), 0600), 0);
  }
  EXPECT_EQ(directory.value().Holder().has_value(), false);
  EXPECT_FALSE(directory.value().HasOthers(0));
  EXPECT_EQ(directory.value().ReadConf(), AgentConf());
}

TEST_F(JobDirectoryTest, IsSharedWithAGroup) {
  auto directory = Open(Path("job"), std::to_string(getegid()));
  ASSERT_TRUE(directory.ok());
  EXPECT_EQ(ModeOf(Path("job")), 02770u);
  EXPECT_EQ(directory.value().group(), getegid());
  // Found again without being told.
  EXPECT_EQ(Open(Path("job")).value().group(), getegid());
  ASSERT_TRUE(directory.value().WriteConf({}).ok());
  ASSERT_TRUE(directory.value().Lock().ok());
  EXPECT_EQ(ModeOf(Path("job/agent.conf")), 0660u);
  EXPECT_EQ(ModeOf(Path("job/agent.lock")), 0660u);
}

TEST_F(JobDirectoryTest, UnknownGroupIsNamed) {
  const auto directory = Open(Path("job"), "no_such_group");
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.error(), "metrics_dir_group: there is no group \"no_such_group\" on this host");
}

TEST_F(JobDirectoryTest, HasOneAgentAtATime) {
  auto first = Open(Path("job"));
  EXPECT_EQ(first.value().Lock().value(), std::nullopt);
  {
    auto second = Open(Path("job"));
    EXPECT_EQ(second.value().Lock().value(), std::to_string(getpid()));
  }
  first = Error{"gone"};
  auto third = Open(Path("job"));
  EXPECT_EQ(third.value().Lock().value(), std::nullopt);
}

TEST_F(JobDirectoryTest, ALockThatWasRemovedIsTakenAgain) {
  JobDirectory directory = Open(Path("job")).value();
  EXPECT_FALSE(directory.WasRemoved()) << "without a lock";
  ASSERT_TRUE(directory.Lock().ok());
  EXPECT_FALSE(directory.WasRemoved());
  std::filesystem::remove(Path("job/agent.lock"));
  EXPECT_TRUE(directory.WasRemoved());
  ASSERT_TRUE(directory.Recreate().ok());
  EXPECT_FALSE(directory.WasRemoved());
  JobDirectory second = Open(Path("job")).value();
  EXPECT_EQ(second.Lock().value(), std::to_string(getpid()));

  std::filesystem::remove(Path("job/agent.lock"));
  ASSERT_EQ(second.Lock().value(), std::nullopt);
  EXPECT_TRUE(directory.WasRemoved()) << "another file has its name";
  EXPECT_THAT(directory.Recreate().error(), HasSubstr("the agent with pid " + std::to_string(getpid()) + " holds the lock"));
}

TEST_F(JobDirectoryTest, ConfIsReadAsItWasWritten) {
  const AgentConf written{.enabled = false,
                          .run_id = "run 7",
                          .job = "a=b",
                          .ended = true,
                          .starter = "1:2:3",
                          .command = "4",
                          .web = "http://a",
                          .state_replica = 5,
                          .attempt = 6,
                          .run_began = 7};
  auto directory = Open(Path("job"));
  ASSERT_TRUE(directory.value().WriteConf(written).ok());
  EXPECT_EQ(directory.value().ReadConf(), written);
  ASSERT_TRUE(directory.value().WriteConf({}).ok());
  EXPECT_FALSE(directory.value().ReadConf().ended);
  const auto entries = std::filesystem::directory_iterator(Path("job"));
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "nothing is left beside it";
}

TEST_F(JobDirectoryTest, ConfThatIsALinkIsNotRead) {
  auto directory = Open(Path("job"));
  std::ofstream(Path("elsewhere")) << "run_id=planted\n";
  symlink(Path("elsewhere").c_str(), Path("job/agent.conf").c_str());
  EXPECT_EQ(directory.value().ReadConf().run_id, "");
  ASSERT_TRUE(directory.value().WriteConf({.run_id = "ours"}).ok());
  EXPECT_EQ(directory.value().ReadConf().run_id, "ours");
}

TEST_F(JobDirectoryTest, OpenExistingCreatesNothing) {
  EXPECT_FALSE(JobDirectory::OpenExisting(Path("job")).ok());
  EXPECT_FALSE(std::filesystem::exists(Path("job")));
}

TEST(RunId, IsNewEachTime) {
  EXPECT_THAT(MakeRunId(), ::testing::MatchesRegex("[0-9a-f]{16}"));
  EXPECT_NE(MakeRunId(), MakeRunId());
}

}  // namespace
}  // namespace persia::agent

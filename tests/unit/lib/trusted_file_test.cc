// Which files the library and the agent trust: one table for both.
#include "trusted_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "descriptor.h"
#include "temporary_directory.h"

namespace persia::metrics {
namespace {

constexpr uid_t kOtherUser = 4711;
constexpr gid_t kOtherGroup = 4712;
const uid_t kThisUser = geteuid();

// The rules of a directory of this user alone, of one that a group shares, of segments and of pipes.
const FileTrust kPrivate{.owner = std::nullopt, .may_have_names = true};
const FileTrust kShared{.group = kOtherGroup};
const FileTrust kSegment{.owner = kThisUser, .may_have_names = true};
const FileTrust kSegmentOfGroup{.owner = kThisUser, .group = kOtherGroup, .may_have_names = true};
const FileTrust kPipe{.type = S_IFIFO};
const FileTrust kPipeOfGroup{.type = S_IFIFO, .group = kOtherGroup};

struct FileCase {
  const char* name;
  FileTrust trust;
  mode_t type;
  uid_t owner;
  gid_t group;
  nlink_t names;
  const char* distrust;  // "": trusted
};

constexpr char kForeignFile[] = "belongs to another user (4711, group 4712)";
constexpr char kNoFile[] = "is not a regular file";

class TrustedFileTest : public ::testing::TestWithParam<FileCase> {};

TEST_P(TrustedFileTest, ByTypeOwnerGroupAndNames) {
  const FileCase& given = GetParam();
  struct stat info {};
  info.st_mode = given.type | 0600U;
  info.st_uid = given.owner;
  info.st_gid = given.group;
  info.st_nlink = given.names;
  EXPECT_EQ(DistrustOf(info, given.trust), given.distrust);
}

INSTANTIATE_TEST_SUITE_P(
    Each, TrustedFileTest,
    ::testing::Values(FileCase{"Ours", kPrivate, S_IFREG, kThisUser, 0, 1, ""},
                      FileCase{"OursRemoved", kShared, S_IFREG, kThisUser, 0, 0, ""},
                      FileCase{"OursInABackupToo", kPrivate, S_IFREG, kThisUser, 0, 2, ""},
                      FileCase{"ForeignWhereOnlyWePutFiles", kPrivate, S_IFREG, kOtherUser, kOtherGroup, 1, ""},
                      FileCase{"PipeInPlaceOfAFile", kPrivate, S_IFIFO, kThisUser, 0, 1, kNoFile},
                      FileCase{"DirectoryInPlaceOfAFile", kShared, S_IFDIR, kThisUser, 0, 2, kNoFile},
                      FileCase{"DeviceInPlaceOfAFile", kSegment, S_IFCHR, 0, 0, 1, kNoFile},
                      FileCase{"OursShared", kShared, S_IFREG, kThisUser, kOtherGroup, 1, ""},
                      FileCase{"OursOfAnotherGroup", kShared, S_IFREG, kThisUser, kOtherGroup + 1, 1, ""},
                      FileCase{"RootsShared", kShared, S_IFREG, 0, 0, 1, ""},
                      FileCase{"AMembers", kShared, S_IFREG, kOtherUser, kOtherGroup, 1, ""},
                      FileCase{"OfNoMember", kShared, S_IFREG, kOtherUser, kOtherGroup + 1, 1,
                               "belongs to another user (4711, group 4713)"},
                      FileCase{"OursLinkedByAMember", kShared, S_IFREG, kThisUser, kOtherGroup, 2, "has 2 names"},
                      FileCase{"OursSegment", kSegment, S_IFREG, kThisUser, 0, 1, ""},
                      FileCase{"OursSegmentWithTwoNames", kSegment, S_IFREG, kThisUser, 0, 2, ""},
                      FileCase{"RootsSegment", kSegment, S_IFREG, 0, 0, 1, ""},
                      FileCase{"ForeignSegment", kSegment, S_IFREG, kOtherUser, kOtherGroup, 1, kForeignFile},
                      FileCase{"AMembersSegment", kSegmentOfGroup, S_IFREG, kOtherUser, kOtherGroup, 1, ""},
                      FileCase{"OursPipe", kPipe, S_IFIFO, kThisUser, 0, 1, ""},
                      FileCase{"RootsPipe", kPipe, S_IFIFO, 0, 0, 1, ""},
                      FileCase{"ForeignPipe", kPipe, S_IFIFO, kOtherUser, kOtherGroup, 1, kForeignFile},
                      FileCase{"AMembersPipe", kPipeOfGroup, S_IFIFO, kOtherUser, kOtherGroup, 1, ""},
                      FileCase{"FileInPlaceOfAPipe", kPipe, S_IFREG, kThisUser, 0, 1, "is not a named pipe"}),
    [](const auto& info) { return std::string(info.param.name); });

// What is at the place of a file, who may put it there, and what comes of it.
class TrustedPlaceTest : public ::testing::Test {
 protected:
  // "opened"; why it is not trusted; or the error.
  std::string Open(int flags = O_RDWR) {
    std::string distrust;
    const Descriptor directory(open(root_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const Descriptor fd(OpenTrustedFile(directory.get(), "file", flags, TrustIn(directory.get()), distrust, 0600));
    const int error = errno;
    EXPECT_TRUE(!fd.valid() || distrust.empty());
    return fd.valid() ? "opened" : !distrust.empty() ? distrust : std::strerror(error);
  }

  const TemporaryDirectory root_;
  const std::string path_ = root_ / "file";
};

TEST_F(TrustedPlaceTest, NothingElseThanAFileIsOpenedAndNothingIsWaitedFor) {
  EXPECT_EQ(Open(), "No such file or directory");
  EXPECT_EQ(Open(O_RDWR | O_CREAT), "opened");
  EXPECT_EQ(Open(O_RDONLY), "opened");
  ASSERT_EQ(rename(path_.c_str(), (root_ / "real").c_str()), 0);
  ASSERT_EQ(symlink("real", path_.c_str()), 0);
  EXPECT_EQ(Open(), "is a symbolic link, which is not followed");
  unlink(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Open(), "is not a regular file");
  EXPECT_EQ(Open(O_RDONLY), "is not a regular file") << "although no writer is there";
  unlink(path_.c_str());
  ASSERT_EQ(mknod(path_.c_str(), S_IFSOCK | 0600, 0), 0);
  EXPECT_EQ(Open(), "No such device or address") << "an error as any other, which a caller may try again";
}

TEST_F(TrustedPlaceTest, WhereAGroupMayPutFilesALinkedOneIsNotTrusted) {
  std::ofstream(root_ / "private") << "secret";
  ASSERT_EQ(link((root_ / "private").c_str(), path_.c_str()), 0);
  EXPECT_EQ(Open(), "opened");
  ASSERT_EQ(chmod(root_.path().c_str(), 02770), 0);
  EXPECT_EQ(Open(), "has 2 names");
  EXPECT_EQ(Open(O_RDONLY), "opened") << "as a backup may link it";
  unlink((root_ / "private").c_str());
  EXPECT_EQ(Open(), "opened");
  if (chown(path_.c_str(), kOtherUser, getegid()) != 0) {
    ASSERT_NE(geteuid(), 0U);  // only root can give it away
    return;
  }
  EXPECT_EQ(Open(), "opened") << "a member's";
  ASSERT_EQ(chown(path_.c_str(), kOtherUser, kOtherGroup), 0);
  EXPECT_EQ(Open(), kForeignFile);
  ASSERT_EQ(chmod(root_.path().c_str(), 0700), 0);
  EXPECT_EQ(Open(), "opened") << "only we can have put it here";
}

}  // namespace
}  // namespace persia::metrics

// Which directories the library and the agent trust: one table for both.
#include "trusted_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "descriptor.h"
#include "temporary_directory.h"

namespace persia::metrics {
namespace {

constexpr uid_t kOther = 4711;
constexpr gid_t kGroup = 4712;

struct Case {
  const char* name;
  uid_t owner;
  mode_t mode;
  std::optional<gid_t> group;  // that the user names
  const char* distrust;        // "": trusted
};

constexpr char kNeither[] = "is neither this user's alone";
constexpr char kForeign[] = "is another user's; if its group is to share it, set metrics_dir_group to 4712";

class TrustedDirectoryTest : public ::testing::TestWithParam<Case> {};

TEST_P(TrustedDirectoryTest, ByOwnerModeAndGroup) {
  const Case& given = GetParam();
  struct stat info {};
  info.st_uid = given.owner;
  info.st_gid = kGroup;
  info.st_mode = S_IFDIR | given.mode;
  const std::string why = DistrustOf(info, {.path = "/a/job", .group = given.group});
  if (*given.distrust == '\0') {
    EXPECT_EQ(why, "");
  } else {
    EXPECT_NE(why.find(given.distrust), std::string::npos) << why;
  }
}

const uid_t kUs = geteuid();
INSTANTIATE_TEST_SUITE_P(Each, TrustedDirectoryTest,
                         ::testing::Values(Case{"Ours", kUs, 0700, {}, ""}, Case{"OursThatAllRead", kUs, 0755, {}, ""},
                                           Case{"OursThatTheGroupWrites", kUs, 0770, {}, kNeither},
                                           Case{"OursThatAllWrite", kUs, 0777, {}, kNeither},
                                           Case{"OursSticky", kUs, 01777, {}, kNeither}, Case{"OursShared", kUs, 02770, {}, ""},
                                           Case{"OursSharedByTheNamedGroup", kUs, 02770, kGroup, ""},
                                           Case{"OursSharedByAnotherGroup", kUs, 02770, kGroup + 1, kNeither},
                                           Case{"OursSharedWithAll", kUs, 02777, kGroup, kNeither},
                                           Case{"Roots", 0, 02770, {}, ""},
                                           Case{"RootsThatItAloneWrites", 0, 0755, {}, kUs == 0 ? "" : kNeither},
                                           Case{"Foreign", kOther, 0700, {}, kNeither},
                                           Case{"ForeignOfTheNamedGroup", kOther, 0700, kGroup, kNeither},
                                           Case{"ForeignShared", kOther, 02770, {}, kForeign},
                                           Case{"ForeignSharedByTheNamedGroup", kOther, 02770, kGroup, ""},
                                           Case{"ForeignSharedByAnotherGroup", kOther, 02770, kGroup + 1, kNeither},
                                           Case{"ForeignSharedWithAll", kOther, 02777, kGroup, kNeither}),
                         [](const auto& info) { return std::string(info.param.name); });

// Opens `path` without making it; the error's text, or "".
std::string ErrorOf(const std::string& path) {
  std::string error;
  const Descriptor directory(OpenTrustedDirectory({.path = path, .create = false}, error));
  EXPECT_EQ(directory.valid(), error.empty());
  return error;
}

TEST(TrustedPath, LinksOnTheWayAreFollowedIfTheyAreOursOrRoots) {
  const TemporaryDirectory root;
  std::filesystem::create_directories(root / "real/job");
  std::filesystem::create_directory_symlink(root / "real", root / "link");
  EXPECT_EQ(ErrorOf(root / "link/job"), "");
  if (lchown((root / "link").c_str(), kOther, kOther) != 0) {
    ASSERT_NE(geteuid(), 0U);  // only root can give it away
    return;
  }
  EXPECT_NE(ErrorOf(root / "link/job").find("is a symbolic link of another user (4711)"), std::string::npos);
}

TEST(TrustedPath, ADirectoryThatIsClosedToThisUserNeedNotBeCreated) {
  const TemporaryDirectory root;
  std::filesystem::create_directories(root / "closed/job");
  std::filesystem::permissions(root / "closed", std::filesystem::perms::none);
  const uid_t user = geteuid();
  ASSERT_EQ(chmod(root.path().c_str(), 0755), 0);
  ASSERT_EQ(seteuid(user == 0 ? kOther : user), 0);  // root may open it
  const std::string error = ErrorOf(root / "closed/job");
  ASSERT_EQ(seteuid(user), 0);
  std::filesystem::permissions(root / "closed", std::filesystem::perms::owner_all);
  EXPECT_NE(error.find("Permission denied; make it accessible to this user, or set metrics_dir to"), std::string::npos)
      << error;
}

TEST(TrustedPath, MayBeRelativeAndHaveNoMoreThanTwoMissingDirectories) {
  const TemporaryDirectory root;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(root.path());
  std::string error;
  EXPECT_TRUE(Descriptor(OpenTrustedDirectory({.path = "parent/job"}, error)).valid()) << error;
  EXPECT_FALSE(Descriptor(OpenTrustedDirectory({.path = "a/b/job"}, error)).valid());
  EXPECT_NE(error.find("cannot open a: No such file or directory"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists("a"));
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace persia::metrics

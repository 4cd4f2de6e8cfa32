#include "gpu/nvml_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::HasSubstr;

class FindNvmlTest : public ::testing::Test {
 protected:
  void Put(const std::string& name, const std::string& content = "") const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  [[nodiscard]] std::string Find(const std::string& search_path = "") const {
    return FindNvml(root_.path(), [&](const char*) { return search_path.empty() ? nullptr : search_path.c_str(); });
  }

  const TemporaryDirectory root_;
};

TEST_F(FindNvmlTest, AHostWithoutADriverHasNone) {
  Put("etc/ld.so.cache", std::string("libnvidia-ml.so.1x\0libnvidia-ml.so\0libc.so.6\0", 46));
  Put("usr/lib/libnvidia-ml.so");
  EXPECT_EQ(Find(root_ / "usr/lib"), "");
}

TEST_F(FindNvmlTest, TheLinkersPathThenItsCacheThenTheFoldersOfPackages) {
  Put("usr/lib/wsl/lib/libnvidia-ml.so.1");
  EXPECT_EQ(Find(), root_ / "usr/lib/wsl/lib/libnvidia-ml.so.1");
  Put("usr/local/nvidia/lib64/libnvidia-ml.so.1");
  EXPECT_EQ(Find(), root_ / "usr/local/nvidia/lib64/libnvidia-ml.so.1");
  Put("etc/ld.so.cache", std::string("libc.so.6\0libnvidia-ml.so.1\0", 28));
  EXPECT_EQ(Find(), "libnvidia-ml.so.1");
  Put("mine/libnvidia-ml.so.1");
  EXPECT_EQ(Find("/nowhere::" + (root_ / "mine") + ":/lib"), root_ / "mine/libnvidia-ml.so.1");
}

TEST_F(FindNvmlTest, AFolderOfThatNameIsNoLibrary) {
  std::filesystem::create_directories(root_ / "usr/lib/libnvidia-ml.so.1");
  EXPECT_EQ(Find(), "");
}

TEST_F(FindNvmlTest, AFileThatIsNoLibraryIsAnError) {
  Put("libnvidia-ml.so.1", "hello");
  NvmlLibrary library;
  const Status loaded = library.Load(root_ / "libnvidia-ml.so.1");
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error(), HasSubstr("cannot load " + (root_ / "libnvidia-ml.so.1")));
}

TEST_F(FindNvmlTest, ALibraryOfAnotherKindIsAnError) {
  NvmlLibrary library;
  const Status loaded = library.Load("libc.so.6");
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error(), HasSubstr("lacks nvmlInit"));
}

// The numbers of NVIDIA's nvml.h.
TEST(NvmlErrorTextTest, SaysWhatTheDriverLacks) {
  EXPECT_THAT(NvmlErrorText(4), HasSubstr("no permission to use the driver"));
  EXPECT_THAT(NvmlErrorText(9), HasSubstr("is not loaded"));
  EXPECT_THAT(NvmlErrorText(15), HasSubstr("fallen off the bus"));
  EXPECT_THAT(NvmlErrorText(16), HasSubstr("must be reset"));
  EXPECT_THAT(NvmlErrorText(17), HasSubstr("the operating system blocks the driver's devices"));
  EXPECT_THAT(NvmlErrorText(18), HasSubstr("version is not that of the loaded driver"));
  EXPECT_EQ(NvmlErrorText(4711), "NVML error 4711");
}

}  // namespace
}  // namespace persia::agent

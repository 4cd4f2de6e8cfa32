#include "files/small_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class WatchedFileTest : public ::testing::Test {
 protected:
  void Write(const std::string& text, const std::string& name = "token") const {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << text;
  }
  std::string Line() {
    const Result<std::string> line = file_.ReadLine();
    return line.ok() ? line.value() : "error: " + line.error();
  }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path();
  const std::string path_ = directory_ + "/token";
  WatchedFile file_{"token file", path_};
};

TEST_F(WatchedFileTest, ReadsAgainWhatWasWrittenOver) {
  Write("  first\n");
  EXPECT_EQ(Line(), "first");
  EXPECT_EQ(Line(), "first");
  Write("second-one\r\n");
  EXPECT_EQ(Line(), "second-one");
  Write("\xEF\xBB\xBFwith-a-byte-order-mark\r\n");
  EXPECT_EQ(Line(), "with-a-byte-order-mark");
}

// As a mounted secret is replaced: same size, and perhaps within one tick of the file system's clock.
TEST_F(WatchedFileTest, ReadsAgainWhatWasRenamedIntoPlace) {
  Write("first");
  EXPECT_EQ(Line(), "first");
  Write("other", "draft");
  std::filesystem::last_write_time(directory_ + "/draft", std::filesystem::last_write_time(path_));
  std::filesystem::rename(directory_ + "/draft", path_);
  EXPECT_EQ(Line(), "other");
}

TEST_F(WatchedFileTest, AFileThatVanishesOrIsEmptyIsAnErrorUntilItIsBack) {
  const std::string name = "error: token file \"" + path_ + "\": ";
  EXPECT_EQ(Line(), name + "cannot be read: No such file or directory");
  Write("first");
  EXPECT_EQ(Line(), "first");
  Write("");
  EXPECT_EQ(Line(), name + "is empty");
  Write("\n \n");
  EXPECT_EQ(Line(), name + "is empty");
  std::filesystem::remove(path_);
  EXPECT_EQ(Line(), name + "cannot be read: No such file or directory");
  std::filesystem::create_directory(path_);
  EXPECT_EQ(Line(), name + "is a directory");
  std::filesystem::remove(path_);
  Write("back");
  EXPECT_EQ(Line(), "back");
}

TEST_F(WatchedFileTest, ErrorsDoNotQuoteWhatIsInTheFile) {
  Write("hunter2\nhunter3\n");
  EXPECT_THAT(Line(), HasSubstr("more than one line"));
  EXPECT_THAT(Line(), Not(HasSubstr("hunter")));
  Write(std::string(2 << 20, 's'));
  EXPECT_THAT(Line(), HasSubstr("larger than 1 MiB"));
}

}  // namespace
}  // namespace persia::agent

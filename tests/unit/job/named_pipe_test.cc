#include "job/named_pipe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NamedPipeTest : public ::testing::Test {
 protected:
  void Open(size_t max_line_bytes = 1 << 20) {
    auto opened = NamedPipe::Open({.path = path_, .padding = 64, .max_line_bytes = max_line_bytes});
    ASSERT_TRUE(opened.ok()) << opened.error();
    pipe_ = std::move(opened).value();
  }
  [[nodiscard]] std::string Refusal() const {
    const auto opened = NamedPipe::Open({.path = path_});
    return opened.ok() ? "" : opened.error();
  }
  [[nodiscard]] int Writer() const { return open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK); }
  // By a writer that closes the pipe then.
  void Write(const std::string& bytes) const {
    const int writer = Writer();
    ASSERT_EQ(write(writer, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(writer);
  }
  NamedPipe::OnLine keep_ = [this](std::string_view line) {
    lines_.push_back(line.data() == nullptr ? "(skipped)" : std::string(line));
  };

  const TemporaryDirectory temporary_;
  const std::string path_ = temporary_ / "fifo";
  std::unique_ptr<NamedPipe> pipe_;
  std::vector<std::string> lines_;
};

TEST_F(NamedPipeTest, LinesArePassedWhole) {
  Open();
  EXPECT_FALSE(pipe_->Read(keep_));
  Write("one\ntw");
  EXPECT_TRUE(pipe_->Read(keep_));
  EXPECT_THAT(lines_, ElementsAre("one"));
  Write("o\n\nthree\n");
  EXPECT_TRUE(pipe_->Read(keep_));
  EXPECT_THAT(lines_, ElementsAre("one", "two", "three"));
  EXPECT_FALSE(pipe_->Read(keep_)) << "a writer that closes the pipe does not end it";
}

TEST_F(NamedPipeTest, AWriterThatClosesDoesNotEndPoll) {
  Open();
  Write("one\n");
  pollfd wait{.fd = pipe_->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&wait, 1, 0), 1);
  pipe_->Read(keep_);
  EXPECT_EQ(poll(&wait, 1, 0), 0) << "events " << wait.revents;
}

TEST_F(NamedPipeTest, ATooLongLineIsSkipped) {
  Open(100);
  Write(std::string(60'000, 'x'));
  Write(std::string(60'000, 'x'));
  Write("x\nfine\n" + std::string(101, 'y') + "\n" + std::string(100, 'z') + "\n");
  pipe_->Drain(keep_);
  EXPECT_THAT(lines_, ElementsAre("(skipped)", "fine", "(skipped)", std::string(100, 'z')));
}

TEST_F(NamedPipeTest, APipeThatWasCreatedHereIsRemoved) {
  Open();
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  pipe_.reset();
  EXPECT_NE(stat(path_.c_str(), &info), 0);
}

TEST_F(NamedPipeTest, AGroupThatIsNamedMayWrite) {
  const auto pipe = NamedPipe::Open({.path = path_, .group = getegid()});
  ASSERT_TRUE(pipe.ok()) << pipe.error();
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0620U);
  EXPECT_EQ(info.st_gid, getegid());
}

TEST_F(NamedPipeTest, OfAnotherUserIsRefusedUnlessItsGroupIsNamed) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0666), 0);
  if (chown(path_.c_str(), 4711, 4712) != 0) {
    ASSERT_NE(geteuid(), 0U);  // only root can give it away
    return;
  }
  const OwnedFd reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_THAT(Refusal(), HasSubstr("belongs to another user (4711, group 4712)"));
  EXPECT_FALSE(NamedPipe::HasReader(path_));
  EXPECT_TRUE(NamedPipe::HasReader(path_, 4712));
  EXPECT_FALSE(NamedPipe::Open({.path = path_, .group = 4713}).ok());
  EXPECT_TRUE(NamedPipe::Open({.path = path_, .group = 4712}).ok());
}

TEST_F(NamedPipeTest, APipeThatIsKeptStaysAndTheNextMayRemoveIt) {
  Open();
  EXPECT_TRUE(pipe_->Keep());
  pipe_.reset();
  struct stat info {};
  EXPECT_EQ(stat(path_.c_str(), &info), 0);
  auto next = NamedPipe::Open({.path = path_, .remove = true});
  ASSERT_TRUE(next.ok());
  next.value().reset();
  EXPECT_NE(stat(path_.c_str(), &info), 0);
}

TEST_F(NamedPipeTest, APipeHasAReaderWhileItIsOpen) {
  EXPECT_FALSE(NamedPipe::HasReader(path_));
  Open();
  EXPECT_TRUE(NamedPipe::HasReader(path_));
  pipe_->Keep();
  pipe_.reset();
  EXPECT_FALSE(NamedPipe::HasReader(path_));
  std::ofstream(temporary_ / "file") << "text";
  EXPECT_FALSE(NamedPipe::HasReader(temporary_ / "file"));
}

TEST_F(NamedPipeTest, OfMissingDirectoriesTheClientsOwnIsCreated) {
  EXPECT_FALSE(NamedPipe::Open({.path = temporary_ / "missing/fifo"}).ok());
  const std::string path = std::string(kClientDirectory) + "/fifo-" + std::to_string(getpid());
  const bool was_there = access(kClientDirectory, F_OK) == 0;
  EXPECT_TRUE(NamedPipe::Open({.path = path}).ok());
  if (was_there) return;
  struct stat info {};
  ASSERT_EQ(stat(kClientDirectory, &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 01777U) << "the next job's user may be another";
  rmdir(kClientDirectory);
}

TEST_F(NamedPipeTest, AnExistingPipeIsUsedAndStays) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  Open();
  Write("one\n");
  pipe_->Read(keep_);
  EXPECT_THAT(lines_, ElementsAre("one"));
  pipe_.reset();
  struct stat info {};
  EXPECT_EQ(stat(path_.c_str(), &info), 0);
}

TEST_F(NamedPipeTest, AnythingElseIsRefusedAndStays) {
  std::ofstream(path_) << "precious";
  EXPECT_THAT(Refusal(), HasSubstr("is not a named pipe; remove it"));
  std::string content;
  std::getline(std::ifstream(path_), content);
  EXPECT_EQ(content, "precious");
  unlink(path_.c_str());
  ASSERT_EQ(symlink("/dev/null", path_.c_str()), 0);
  EXPECT_THAT(Refusal(), HasSubstr("is a symbolic link, which is not followed"));
  const auto nowhere = NamedPipe::Open({.path = temporary_ / "no/such/place"});
  EXPECT_THAT(nowhere.error(), HasSubstr("cannot be created: No such file or directory"));
}

}  // namespace
}  // namespace persia::agent

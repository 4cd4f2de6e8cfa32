#include "files/state_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "files/durable_file.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StateFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_ = open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
  }
  void TearDown() override { close(fd_); }

  StateFile File(std::function<void(std::string_view)> after_step = {}) {
    return StateFile({.directory_fd = fd_,
                      .directory = directory_.string(),
                      .name = "agent.state",
                      .magic = {'T', 'E', 'S', 'T', 'S', 'T', 'A', '\n'},
                      .version = 3,
                      .after_step = std::move(after_step)});
  }
  // The payload; "(none)" if there is none, "(error)" for an error.
  std::string Read() {
    auto read = File().Read(set_aside_);
    if (!read.ok()) {
      return "(error)";
    }
    return read.value().value_or("(none)");
  }
  std::string Bytes(const std::string& name = "agent.state") {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Put(const std::string& bytes) { std::ofstream(directory_ / "agent.state", std::ios::binary) << bytes; }

  const TemporaryDirectory temporary_;
  const fs::path directory_ = temporary_.path();
  int fd_ = -1;
  std::string set_aside_;
};

TEST_F(StateFileTest, WhatWasWrittenIsRead) {
  EXPECT_EQ(Read(), "(none)");
  const std::string payload("a\0b", 3);
  ASSERT_TRUE(File().Write("former").ok());
  ASSERT_TRUE(File().Write(payload).ok());
  EXPECT_EQ(Read(), payload);
  EXPECT_EQ(set_aside_, "");
  ASSERT_TRUE(File().Write("").ok());
  EXPECT_EQ(Read(), "");
  ASSERT_TRUE(File().Remove().ok());
  EXPECT_TRUE(File().Remove().ok()) << "there is none any more";
  EXPECT_EQ(Read(), "(none)");
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(StateFileTest, ModeDoesNotDependOnTheUmask) {
  const mode_t former = umask(0777);
  EXPECT_TRUE(File().Write("x").ok());
  umask(former);
  EXPECT_EQ(fs::status(directory_ / "agent.state").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

struct Damage {
  const char* name;
  std::function<std::string(std::string)> apply;
  const char* why;
};

TEST_F(StateFileTest, AnUnreadableFileIsSetAside) {
  const Damage damages[] = {
      {"another magic", [](std::string s) { return "X" + s.substr(1); }, "does not begin"},
      {"empty", [](const std::string&) { return std::string(); }, "does not begin"},
      {"another version", [](std::string s) { return s.replace(8, 1, "\x04"); }, "version 4, this agent reads version 3"},
      {"header cut", [](const std::string& s) { return s.substr(0, 20); }, "20 bytes"},
      {"payload cut", [](const std::string& s) { return s.substr(0, s.size() - 1); }, "does not match its header"},
      {"payload longer", [](const std::string& s) { return s + "x"; }, "does not match its header"},
      {"a bit turned", [](std::string s) { return s.back() ^= 1, s; }, "checksum"},
      {"the checksum turned", [](std::string s) { return s[12] ^= 1, s; }, "checksum"},
  };
  int n = 0;
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    ASSERT_TRUE(File().Write("payload").ok());
    const std::string broken = damage.apply(Bytes());
    Put(broken);
    EXPECT_EQ(Read(), "(none)");
    const std::string kept = "agent.state.broken-" + std::to_string(++n);
    EXPECT_THAT(set_aside_, HasSubstr(damage.why));
    EXPECT_THAT(set_aside_, HasSubstr((directory_ / kept).string()));
    EXPECT_EQ(Bytes(kept), broken) << "nothing is lost";
    EXPECT_EQ(Read(), "(none)");
    EXPECT_EQ(set_aside_, "") << "said once";
  }
}

TEST_F(StateFileTest, AStateAboveAGibibyteIsNotWritten) {
  ASSERT_TRUE(File().Write("former").ok());
  const std::string s(kMaxStateBytes / 16, 'x');
  const auto written = ReplaceDurable({.directory_fd = fd_, .directory = directory_.string(), .name = "agent.state"}, 0600,
                                      {s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, "x"}, {});
  EXPECT_THAT(written.error(), HasSubstr("1073741825 bytes are more than the maximum of 1 GiB"));
  EXPECT_EQ(Read(), "former");
}

// A process that ends after each step leaves the former content or the new one, and the next writer is not in its way.
TEST_F(StateFileTest, AWriterThatIsKilledAtAnyStepLeavesAWholeFile) {
  for (const char* last : {"draft made", "draft written", "draft on disk", "renamed"}) {
    SCOPED_TRACE(last);
    ASSERT_TRUE(File().Write("former").ok());
    const pid_t pid = fork();
    if (pid == 0) {
      static_cast<void>(File([last](std::string_view step) {
                          if (step == last) {
                            raise(SIGKILL);
                          }
                        }).Write("new"));
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the step was not come to";
    EXPECT_EQ(Read(), std::string_view(last) == "renamed" ? "new" : "former");
    ASSERT_TRUE(File().Write("next").ok());
    EXPECT_EQ(Read(), "next");
    EXPECT_FALSE(fs::exists(directory_ / "agent.state.draft"));
  }
}

TEST_F(StateFileTest, AnErrorLeavesTheFormerContentAndNamesTheFile) {
  ASSERT_TRUE(File().Write("former").ok());
  fs::create_directories(directory_ / "agent.state.draft/in/the/way");
  const Status status = File().Write("new");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), HasSubstr((directory_ / "agent.state").string()));
  EXPECT_EQ(Read(), "former");
}

}  // namespace
}  // namespace persia::agent

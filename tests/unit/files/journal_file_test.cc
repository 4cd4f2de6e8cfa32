#include "files/journal_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../lib/small_filesystem.h"
#include "files/journal.h"
#include "files/journal_writer.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

constexpr JournalFormat kFileFormat{.magic = {'T', 'E', 'S', 'T', 'J', 'R', 'N', '\n'}, .version = 1};

std::string Records(const std::string& payload) {
  std::string records;
  AddRecord(records, 1, payload);
  return records;
}

class JournalFileTest : public ::testing::Test {
 protected:
  using AfterStep = std::function<void(std::string_view step)>;

  static std::shared_ptr<DiskJournalFile> FileIn(const std::string& directory, AfterStep after_step = {}) {
    const OwnedFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return std::make_shared<DiskJournalFile>(
        DiskJournalFile::Options{fd.get(), directory, "agent.state", 0600, std::move(after_step)});
  }
  // An unthreaded writer.
  static JournalWriter::Options Writer(std::shared_ptr<JournalFile> file) {
    return {.file = std::move(file), .format = kFileFormat, .threaded = false};
  }
  // The payloads of the records, separated by spaces; a problem of the file.
  static std::string ReadIn(const std::string& directory) {
    std::string text;
    const auto content = ReadJournal(*FileIn(directory), kFileFormat, true, text);
    if (!content.ok()) return content.error();
    for (const JournalRecord& record : content.value().records) text += (text.empty() ? "" : " ") + std::string(record.payload);
    return text;
  }
  std::string Read() { return ReadIn(temporary_.path()); }

  const TemporaryDirectory temporary_;
  const std::string path_ = temporary_ / "agent.state";
};

// If a process ends after any step, its file is read without a problem, and the next writer can write.
TEST_F(JournalFileTest, AWriterThatIsKilledAtAnyStepLeavesTheOldOrTheNew) {
  const std::pair<const char*, const char*> steps[] = {
      {"draft made", "old"}, {"draft written", "old"}, {"draft on disk", "old"},
      {"renamed", "new"},    {"appended", "new more"}, {"append on disk", "new more"},
  };
  for (const auto& [last, left] : steps) {
    SCOPED_TRACE(last);
    {
      JournalWriter writer(Writer(FileIn(temporary_.path())));
      writer.Replace(Records("old"));
    }
    const pid_t pid = fork();
    if (pid == 0) {
      JournalWriter writer(Writer(FileIn(temporary_.path(), [last = last](std::string_view step) {
        if (step == last) raise(SIGKILL);
      })));
      writer.Replace(Records("new"));
      writer.Append(Records("more"));
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the step was not reached";
    EXPECT_EQ(Read(), left);
    JournalWriter writer(Writer(FileIn(temporary_.path())));
    writer.Replace(Records("next"));
    EXPECT_EQ(writer.stats().error, std::nullopt);
    EXPECT_EQ(Read(), "next");
    EXPECT_FALSE(fs::exists(path_ + ".draft"));
  }
}

TEST_F(JournalFileTest, ModeDoesNotDependOnTheUmask) {
  const mode_t former = umask(0777);
  EXPECT_TRUE(FileIn(temporary_.path())->Replace("x").ok());
  umask(former);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// Bytes written to a file without its name would be lost without an error.
TEST_F(JournalFileTest, AnAppendToAFileThatHasLostItsNameIsAnError) {
  const auto file = FileIn(temporary_.path());
  ASSERT_TRUE(file->Replace("x").ok());
  fs::rename(path_, path_ + ".away");
  Status status = file->Append("y");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), HasSubstr(path_ + ": No such file"));
  std::ofstream(path_, std::ios::binary) << "another";
  status = file->Append("y");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), HasSubstr("another file has taken its place"));
  EXPECT_TRUE(file->Replace("x").ok());
  EXPECT_TRUE(file->Append("y").ok());
  EXPECT_EQ(fs::file_size(path_), 2U);
  EXPECT_EQ(fs::file_size(path_ + ".away"), 1U);
}

TEST_F(JournalFileTest, AFileNeverGrowsBeyondWhatIsRead) {
  const auto file = FileIn(temporary_.path());
  ASSERT_TRUE(file->Replace("x").ok());
  fs::resize_file(path_, kMaxStateBytes - 1);
  const Status status = file->Append("yz");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), HasSubstr("1 GiB"));
}

TEST_F(JournalFileTest, AStateAboveAGibibyteIsNotWritten) {
  const auto file = FileIn(temporary_.path());
  ASSERT_TRUE(file->Replace(JournalCheckpoint(kFileFormat, Records("former"))).ok());
  EXPECT_THAT(file->Replace(std::string(kMaxStateBytes + 1, 'x')).error(),
              HasSubstr("1073741825 bytes are more than the maximum of 1 GiB"));
  EXPECT_EQ(Read(), "former");
}

TEST_F(JournalFileTest, AnErrorLeavesTheFormerContentAndNamesTheFile) {
  const auto file = FileIn(temporary_.path());
  ASSERT_TRUE(file->Replace(JournalCheckpoint(kFileFormat, Records("former"))).ok());
  fs::create_directories(path_ + ".draft/in/the/way");
  EXPECT_THAT(file->Replace(JournalCheckpoint(kFileFormat, Records("new"))).error(), HasSubstr(path_));
  EXPECT_EQ(Read(), "former");
}

TEST_F(JournalFileTest, ARemovedFileIsGone) {
  const auto file = FileIn(temporary_.path());
  ASSERT_TRUE(file->Replace("x").ok());
  EXPECT_TRUE(file->Remove().ok());
  EXPECT_TRUE(file->Remove().ok()) << "there is none any more";
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
}

TEST_F(JournalFileTest, WithoutADirectoryEachOperationSaysWhy) {
  DiskJournalFile file({.directory_fd = -1, .directory = "/none", .name = "agent.state"});
  std::string text;
  EXPECT_THAT(file.Read(text).error(), HasSubstr("/none/agent.state: Bad file descriptor"));
  EXPECT_FALSE(file.Replace("x").ok());
  EXPECT_FALSE(file.Append("x").ok());
  EXPECT_FALSE(file.Remove().ok());
  EXPECT_FALSE(file.SetAside("x", text));
}

// The disk takes a part of an append, of any length.
TEST_F(JournalFileTest, AnAppendThatIsCutByTheDiskCostsOnlyItself) {
  const size_t before = JournalCheckpoint(kFileFormat, Records("old")).size() + JournalBatch(0, Records("first")).size();
  const size_t after = before + JournalBatch(0, Records("second") + Records("third")).size();
  const auto exit_in_child = [&](size_t limit) {
    signal(SIGXFSZ, SIG_IGN);
    auto now = std::chrono::steady_clock::time_point(1h);
    JournalWriter::Options options = Writer(FileIn(temporary_.path()));
    options.now = [&] { return now; };
    JournalWriter writer(options);
    writer.Replace(Records("old"));
    writer.Append(Records("first"));
    const rlimit full{limit, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &full);
    writer.Append(Records("second") + Records("third"));
    const rlimit free{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &free);
    EXPECT_EQ(fs::file_size(path_), limit);
    EXPECT_EQ(writer.written(), 2U);
    EXPECT_THAT(writer.stats().error.value_or(""), HasSubstr("File too large"));
    const std::string read = Read();
    EXPECT_TRUE(read == "old first" || (limit + 17 >= after && read == "old first second")) << read;
    now += 1s;
    EXPECT_TRUE(writer.WantsCheckpoint());
    writer.Replace(Records("new"));
    EXPECT_EQ(Read(), "new");
    writer.Append(Records("more"));
    EXPECT_EQ(Read(), "new more");
    _exit(HasFailure() ? 1 : 0);
  };
  for (size_t limit = before; limit < after; ++limit) {
    EXPECT_EXIT(exit_in_child(limit), ExitedWithCode(0), "") << limit;
  }
}

TEST_F(JournalFileTest, AFullDiskCostsNothingThatWasWritten) {
  const auto exit_in_child = [&] {
    metrics::tests::MountSmallFilesystem(temporary_.path(), "size=1m");
    auto now = std::chrono::steady_clock::time_point(1h);
    JournalWriter::Options options = Writer(FileIn(temporary_.path()));
    options.now = [&] { return now; };
    JournalWriter writer(options);
    writer.Replace(Records("old"));
    metrics::tests::FillUp(temporary_.path());
    std::string expected = "old";
    for (int i = 0; i < 1000 && writer.stats().errors == 0; ++i) {
      writer.Append(Records(std::to_string(i) + std::string(100, 'x')));
      if (writer.stats().errors == 0) expected += " " + std::to_string(i) + std::string(100, 'x');
    }
    EXPECT_THAT(writer.stats().error.value_or(""), HasSubstr("No space left on device"));
    EXPECT_EQ(Read(), expected);
    now += 1s;
    writer.Replace(Records("new"));
    EXPECT_EQ(writer.stats().errors, 2U);
    EXPECT_EQ(Read(), expected) << "the checkpoint had no space either";
    EXPECT_FALSE(fs::exists(path_ + ".draft"));
    fs::remove(temporary_ / "filler");
    now += 2s;
    EXPECT_TRUE(writer.WantsCheckpoint());
    writer.Replace(Records("new"));
    EXPECT_EQ(writer.stats().error, std::nullopt);
    EXPECT_EQ(Read(), "new");
    _exit(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(exit_in_child(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace persia::agent

// Benchmark AI's emit, in each of its modes.
#include "persia/metrics/emit.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "emit_pipe.h"
#include "small_filesystem.h"
#include "temporary_directory.h"
#include "worker.h"

namespace persia::metrics::benchmarkai {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EmitTest : public metrics::tests::WorkerTest {
 protected:
  // Runs in a child, since the mode is read once.
  void InMode(const char* mode, const std::function<void()>& body) {
    const Outcome outcome = RunBareWorker([&] {
      setenv("BENCHMARK_AI", mode, 1);
      setenv("BENCHMARK_AI_FIFO_FILEPATH", fifo_.c_str(), 1);
      setenv("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "0.2", 1);
      setenv("BENCHMARK_AI_FIFO_WAIT_TIME_STEP", "0.01", 1);
      dup2(STDERR_FILENO, STDOUT_FILENO);
      alarm(60);
      body();
    });
    EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
    output_ = outcome.error_output;
  }
  void MakeFifo() const { ASSERT_EQ(mkfifo(fifo_.c_str(), 0600), 0); }
  // The other end, which may come before a writer.
  [[nodiscard]] int OpenReader() const { return open(fifo_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); }

  const TemporaryDirectory temporary_;
  const std::string fifo_ = temporary_ / "fifo";
  std::string output_;
};

TEST_F(EmitTest, PrintsALineOfJson) {
  InMode("stdout", [] {
    EXPECT_TRUE(Emit({{"alexnet.batchsize16.latency", 12.5}}).ok());
    EXPECT_TRUE(Emit({{"a", 1}, {"b", std::nan("")}, {"c", -std::numeric_limits<double>::infinity()}}).ok());
  });
  EXPECT_EQ(output_, "{\"alexnet.batchsize16.latency\": 12.5}\n{\"a\": 1.0, \"b\": NaN, \"c\": -Infinity}\n");
}

TEST_F(EmitTest, AnEmptyMapAndAnUnknownModeAreErrors) {
  InMode("stdout", [] { EXPECT_EQ(Emit({}).status, EmitStatus::kEmptyMap); });
  EXPECT_EQ(output_, "");
  InMode("carrier-pigeon", [] {
    const EmitResult result = Emit({{"a", 1}});
    EXPECT_EQ(result.status, EmitStatus::kUnknownMode);
    EXPECT_THAT(result.error, HasSubstr("\"carrier-pigeon\""));
  });
}

TEST_F(EmitTest, WritesIntoAPipeAndNotToStdout) {
  MakeFifo();
  const int reader = OpenReader();
  InMode("fifo", [] {
    EXPECT_TRUE(Emit({{"a", 1}}).ok());
    EXPECT_TRUE(Emit({{"b", 2}}).ok());
  });
  char text[100];
  const ssize_t size = read(reader, text, sizeof text);
  close(reader);
  EXPECT_EQ(std::string(text, static_cast<size_t>(size)), "{\"a\": 1.0}\n{\"b\": 2.0}\n");
  EXPECT_EQ(output_, "");
}

TEST_F(EmitTest, WhatIsPrintedToClosedDescriptorsDoesNotGoIntoThePipe) {
  MakeFifo();
  const int reader = OpenReader();
  InMode("fifo", [] {
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(standard);
    const bool emitted = Emit({{"a", 1}}).ok();
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      if (write(standard, "printed", 7) >= 0) _exit(2);
    }
    if (!emitted) _exit(3);
  });
  char text[100];
  EXPECT_EQ(read(reader, text, sizeof text), 11);
  close(reader);
}

TEST_F(EmitTest, WaitsForThePipeToAppear) {
  InMode("fifo", [this] {
    setenv("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "30", 1);
    std::thread daemon([this] {
      usleep(20'000);
      MakeFifo();
      const int reader = open(fifo_.c_str(), O_RDONLY | O_CLOEXEC);
      char text[100];
      EXPECT_EQ(read(reader, text, sizeof text), 11);
      close(reader);
    });
    EXPECT_TRUE(Emit({{"a", 1}}).ok());
    daemon.join();
  });
}

TEST_F(EmitTest, GivesUpWhereNoPipeComesOrNobodyReadsIt) {
  InMode("fifo", [this] {
    const EmitResult missing = Emit({{"a", 1}});
    EXPECT_EQ(missing.status, EmitStatus::kFifoNotCreatedInTime);
    EXPECT_THAT(missing.error, HasSubstr(fifo_));
    MakeFifo();
    EXPECT_EQ(Emit({{"a", 1}}).status, EmitStatus::kFifoNotReadInTime);
  });
}

// Its owner could read what is emitted.
TEST_F(EmitTest, AnotherUsersPipeIsRefusedUnlessItsGroupIsNamed) {
  MakeFifo();
  const int reader = OpenReader();
  if (chown(fifo_.c_str(), 4711, 4712) != 0) {
    ASSERT_NE(geteuid(), 0U);  // only root can give it away
    close(reader);
    return;
  }
  InMode("fifo", [this] {
    const EmitResult refused = Emit({{"a", 1}});
    EXPECT_EQ(refused.status, EmitStatus::kFifoCannotBeWritten);
    EXPECT_THAT(refused.error, HasSubstr("\"" + fifo_ + "\" belongs to another user (4711, group 4712); set"));
    for (const char* group : {"", "4713", "4712x", "-1"}) {
      setenv("PERSIA_METRICS_DIR_GROUP", group, 1);
      EXPECT_FALSE(Emit({{"a", 1}}).ok()) << group;
    }
    setenv("PERSIA_METRICS_DIR_GROUP", "4712", 1);
    EXPECT_TRUE(Emit({{"b", 2}}).ok());
  });
  char text[100];
  const ssize_t size = read(reader, text, sizeof text);
  close(reader);
  EXPECT_EQ(std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0))), "{\"b\": 2.0}\n");
}

TEST_F(EmitTest, WhatIsNoPipeIsRefused) {
  std::ofstream(fifo_) << "precious";
  InMode("fifo", [] { EXPECT_EQ(Emit({{"a", 1}}).status, EmitStatus::kFifoCannotBeWritten); });
  std::string content;
  std::getline(std::ifstream(fifo_), content);
  EXPECT_EQ(content, "precious");
}

// SIGPIPE would end the process.
TEST_F(EmitTest, AReaderThatGoesIsAnErrorUntilThereIsAnother) {
  MakeFifo();
  InMode("fifo", [this] {
    int reader = OpenReader();
    EXPECT_TRUE(Emit({{"a", 1}}).ok());
    close(reader);
    setenv("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "3600", 1);
    for (int call = 0; call < 2; ++call) {  // neither waits
      const EmitResult gone = Emit({{"b", 2}});
      EXPECT_EQ(gone.status, EmitStatus::kFifoCannotBeWritten);
      EXPECT_THAT(gone.error, HasSubstr("its reader has closed it"));
    }
    reader = OpenReader();
    EXPECT_TRUE(Emit({{"c", 3}}).ok());
    char text[100];
    EXPECT_EQ(read(reader, text, sizeof text), 22);  // with the line that the first reader has not read
    close(reader);
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  });
}

// As an agent does it that is started again.
TEST_F(EmitTest, APipeThatWasMadeAnewIsFound) {
  MakeFifo();
  InMode("fifo", [this] {
    int reader = OpenReader();
    EXPECT_TRUE(Emit({{"a", 1}}).ok());
    close(reader);
    unlink(fifo_.c_str());
    MakeFifo();
    reader = OpenReader();
    const EmitResult found = Emit({{"b", 2}});
    EXPECT_TRUE(found.ok()) << found.error;
    char text[100];
    EXPECT_EQ(read(reader, text, sizeof text), 11);
    close(reader);
  });
}

// The two default paths: Benchmark AI's, and the one that it had at first.
class DefaultPathTest : public EmitTest {
 protected:
  // With an own, empty /tmp.
  void WithoutPath(const std::function<void()>& body) {
    InMode("fifo", [&] {
      metrics::tests::MountSmallFilesystem("/tmp", "size=1m");
      ASSERT_EQ(mkdir("/tmp/benchmark-ai", 0700), 0);
      unsetenv("BENCHMARK_AI_FIFO_FILEPATH");
      body();
    });
  }
  static int MakeReader(const char* path) {
    EXPECT_EQ(mkfifo(path, 0600), 0);
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  static std::string Read(int reader) {
    char text[100];
    return {text, static_cast<size_t>(std::max<ssize_t>(read(reader, text, sizeof text), 0))};
  }
  static constexpr char kPath[] = "/tmp/benchmark-ai/fifo";
  static constexpr char kOlderPath[] = "/tmp/benchmark-ai-fifo";
};

TEST_F(DefaultPathTest, IsTheOneOfBenchmarkAi) {
  WithoutPath([] {
    const int reader = MakeReader(kPath);
    EXPECT_EQ(Emit({{"a", 1}}).error, "");
    EXPECT_EQ(Read(reader), "{\"a\": 1.0}\n");
  });
}

TEST_F(DefaultPathTest, OrTheOlderOneIfAReaderIsThere) {
  WithoutPath([] {
    EXPECT_EQ(mkfifo(kPath, 0600), 0);
    const int reader = MakeReader(kOlderPath);
    EXPECT_EQ(Emit({{"a", 1}}).error, "");
    EXPECT_EQ(Read(reader), "{\"a\": 1.0}\n");
  });
  WithoutPath([] {
    const int older = MakeReader(kOlderPath);
    const int reader = MakeReader(kPath);
    EXPECT_EQ(Emit({{"a", 1}}).error, "");
    EXPECT_EQ(Read(reader), "{\"a\": 1.0}\n");
    EXPECT_EQ(Read(older), "");
  });
}

TEST_F(DefaultPathTest, AnythingElseAtTheOlderOneIsIgnored) {
  WithoutPath([] {
    std::ofstream(kOlderPath) << "precious";
    EXPECT_THAT(Emit({{"a", 1}}).error, HasSubstr("\"/tmp/benchmark-ai/fifo\" did not appear"));
    EXPECT_EQ(std::filesystem::file_size(kOlderPath), 8U);
    unlink(kOlderPath);
    EXPECT_EQ(mkfifo(kOlderPath, 0600), 0);
    const EmitResult unread = Emit({{"a", 1}});
    EXPECT_EQ(unread.status, EmitStatus::kFifoNotReadInTime);
    EXPECT_THAT(unread.error, HasSubstr("\"/tmp/benchmark-ai-fifo\""));
  });
}

TEST_F(EmitTest, ANameThatFitsIntoNoLineIsAnErrorAndTheOthersAreWritten) {
  MakeFifo();
  const int reader = OpenReader();
  InMode("fifo", [] {
    const std::string long_name(PIPE_BUF, 'x');
    const EmitResult result = Emit({{"a", 1}, {long_name, 2}});
    EXPECT_EQ(result.status, EmitStatus::kNameTooLong);
    EXPECT_THAT(result.error, HasSubstr("\"xxx"));
  });
  char text[100];
  EXPECT_EQ(read(reader, text, sizeof text), 11);
  close(reader);
}

TEST_F(EmitTest, ToTheSegmentTheyAreStreams) {
  const auto segment = SegmentOf([] {
    setenv("BENCHMARK_AI", "segment", 1);
    EXPECT_TRUE(Emit({{"alexnet.latency", 2}, {"alexnet.loss", 0.5}}).ok());
    EXPECT_TRUE(Emit({{"alexnet.latency", 3}}).ok());
  });
  EXPECT_EQ(segment.series.at("benchmarkai/alexnet.latency").value, 3);
  EXPECT_EQ(segment.series.at("benchmarkai/alexnet.latency").fraction, 5);
  EXPECT_EQ(segment.series.at("benchmarkai/alexnet.loss").value, 0.5);
}

TEST(EmitLines, ALargeMapIsSplitAndNothingIsLost) {
  std::vector<std::string> given;
  for (int i = 0; i < 1000; ++i) given.push_back("\"metric." + std::string(static_cast<size_t>(i % 100), 'x') + "\": 0.25");
  std::string too_long;
  const std::vector<std::string> lines = EmitLines(given, PIPE_BUF, &too_long);
  EXPECT_GT(lines.size(), 5U);
  size_t entries = 0;
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), static_cast<size_t>(PIPE_BUF));
    EXPECT_TRUE(line.starts_with("{\"") && line.ends_with("}\n"));
    for (size_t at = 0; (at = line.find(": 0.25", at)) != std::string::npos; ++at) ++entries;
  }
  EXPECT_EQ(entries, given.size());
  EXPECT_EQ(too_long, "");
}

TEST(EmitLines, ANameThatFitsIntoNoLineIsLeftOutAlone) {
  const std::string longest(PIPE_BUF - 3, 'y');  // {...}\n
  const std::string longer(PIPE_BUF - 2, 'x');
  std::string too_long;
  const auto lines = EmitLines(std::vector<std::string>{"a", longer, longest, "b"}, PIPE_BUF, &too_long);
  EXPECT_THAT(lines, ElementsAre("{a}\n", "{" + longest + "}\n", "{b}\n"));
  EXPECT_EQ(too_long, longer);
}

}  // namespace
}  // namespace persia::metrics::benchmarkai

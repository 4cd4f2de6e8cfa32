#include "job/emit_receiver.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "captured_log.h"
#include "persia/metrics/emit.h"
#include "temporary_directory.h"
#include "worker.h"

namespace persia::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class EmitReceiverTest : public metrics::tests::WorkerTest {
 protected:
  // The values that a receiver records of these bytes. Runs in a child, which is the agent here.
  metrics::tests::SegmentView Received(const std::string& bytes, const std::function<void(const EmitReceiver&)>& look = {}) {
    return SegmentOf([&] {
      EmitReceiver receiver(
          {.path = path_, .max_line_bytes = 1000, .warn = [this](const std::string& message, std::string_view line) {
             warnings_.push_back(message + " | " + std::string(line));
           }});
      ASSERT_TRUE(receiver.Start().ok());
      const int writer = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      for (size_t at = 0; at < bytes.size();) {
        const ssize_t size = write(writer, bytes.data() + at, bytes.size() - at);
        ASSERT_GT(size, 0);
        at += static_cast<size_t>(size);
      }
      close(writer);
      receiver.Stop();
      if (look) {
        look(receiver);
      }
    });
  }

  const TemporaryDirectory temporary_;
  const std::string path_ = temporary_ / "fifo";
  std::vector<std::string> warnings_;
};

TEST_F(EmitReceiverTest, ValuesBecomeStreamsOfTheirGroup) {
  const auto segment =
      Received("{\"a.latency\": 1.5}\n{\"a.latency\": 2, \"labels\": {\"gpu\": \"1\"}}\n{\"a.latency\": [3, 4]}");
  EXPECT_EQ(segment.series.at("benchmarkai/a.latency").value, 4);
  EXPECT_EQ(segment.series.at("benchmarkai/a.latency").fraction, 8.5);
  EXPECT_EQ(segment.series.at(R"(benchmarkai/a.latency{gpu="1"})").value, 2);
}

TEST_F(EmitReceiverTest, OtherLabelsAreOtherStreams) {
  const auto segment = Received(R"({"a": 1, "labels": {"gpu": "1"}}
{"a": 2, "labels": {"gpu": "2"}}
{"a": 3, "labels": {"cpu": "1"}}
{"a": 4, "labels": {"gpu": "1"}}
)");
  EXPECT_EQ(segment.series.size(), 3U);
  EXPECT_EQ(segment.series.at(R"(benchmarkai/a{gpu="1"})").fraction, 5);
  EXPECT_EQ(segment.series.at(R"(benchmarkai/a{gpu="2"})").fraction, 2);
  EXPECT_EQ(segment.series.at(R"(benchmarkai/a{cpu="1"})").fraction, 3);
}

TEST_F(EmitReceiverTest, BadLinesAreCountedAndTheFirstOfEachKindIsQuoted) {
  Received("{\"a\": 1}\nbad\nworse\n{\"a\": \"x\", \"b\": 2}\n{}\n" + std::string(5000, 'x') + "\n{\"a\": 2}\n",
           [this](const EmitReceiver& receiver) {
             EXPECT_EQ(receiver.counts().good, 2U);
             EXPECT_EQ(receiver.counts().bad, 5U);
             EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("is not a JSON object"), HasSubstr("| bad")),
                                                AllOf(HasSubstr("neither a number"), HasSubstr(R"(| {"a": "x", "b": 2})")),
                                                HasSubstr("has no values"), HasSubstr("is longer than 1000 bytes")));
           });
}

TEST_F(EmitReceiverTest, APathThatCannotBeCreatedIsAnError) {
  EmitReceiver receiver({.path = temporary_ / "no/such/place"});
  const Status status = receiver.Start();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), HasSubstr("no/such/place"));
}

TEST(EmitEnvironment, HasWhatTheJobDoesNotSetItself) {
  const auto environment = [](const char* mode, const char* path) {
    mode == nullptr ? unsetenv("BENCHMARK_AI") : setenv("BENCHMARK_AI", mode, 1);
    path == nullptr ? unsetenv("BENCHMARK_AI_FIFO_FILEPATH") : setenv("BENCHMARK_AI_FIFO_FILEPATH", path, 1);
    auto variables = EmitEnvironment("/agents/fifo");
    unsetenv("BENCHMARK_AI");
    unsetenv("BENCHMARK_AI_FIFO_FILEPATH");
    return variables;
  };
  const auto mode = Pair("BENCHMARK_AI", "fifo");
  const auto path = Pair("BENCHMARK_AI_FIFO_FILEPATH", "/agents/fifo");
  EXPECT_THAT(environment(nullptr, nullptr), ElementsAre(mode, path));
  EXPECT_THAT(environment("", ""), ElementsAre(mode, path));
  EXPECT_THAT(environment("fifo", nullptr), ElementsAre(path));
  EXPECT_THAT(environment("fifo", ""), ElementsAre(path));
  EXPECT_THAT(environment("fifo", "/agents/fifo"), IsEmpty());
  EXPECT_THAT(environment("stdout", nullptr), IsEmpty());
  EXPECT_THAT(environment("segment", nullptr), IsEmpty());
  EXPECT_THAT(environment(nullptr, "/jobs/fifo"), ElementsAre(mode, path));
  const CapturedLog log;
  EXPECT_THAT(environment("fifo", "/jobs/fifo"), IsEmpty());
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("the agent reads /agents/fifo")));
}

}  // namespace
}  // namespace persia::agent

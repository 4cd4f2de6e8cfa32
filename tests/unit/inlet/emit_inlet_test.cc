#include "inlet/emit_inlet.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "persia/metrics/emit.h"
#include "temporary_directory.h"
#include "worker.h"

namespace persia::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EmitInletTest : public metrics::testing::WorkerTest {
 protected:
  // What an inlet makes of these bytes. Runs in a child, which is the agent here.
  metrics::testing::SegmentView Taken(const std::string& bytes, const std::function<void(const EmitInlet&)>& look = {}) {
    return SegmentOf([&] {
      EmitInlet inlet(
          {.path = path_, .max_line_bytes = 1000, .warn = [this](const std::string& message, std::string_view line) {
             warnings_.push_back(message + " | " + std::string(line));
           }});
      ASSERT_TRUE(inlet.Start().ok());
      const int writer = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      for (size_t at = 0; at < bytes.size();) {
        const ssize_t size = write(writer, bytes.data() + at, bytes.size() - at);
        ASSERT_GT(size, 0);
        at += static_cast<size_t>(size);
      }
      close(writer);
      inlet.Stop();
      if (look) {
        look(inlet);
      }
    });
  }

  const TemporaryDirectory temporary_;
  const std::string path_ = temporary_ / "fifo";
  std::vector<std::string> warnings_;
};

TEST_F(EmitInletTest, ValuesBecomeStreamsOfTheirGroup) {
  const auto segment = Taken("{\"a.latency\": 1.5}\n{\"a.latency\": 2, \"labels\": {\"gpu\": \"1\"}}\n{\"a.latency\": [3, 4]}");
  EXPECT_EQ(segment.series.at("benchmarkai/a.latency").value, 4);
  EXPECT_EQ(segment.series.at("benchmarkai/a.latency").fraction, 8.5);
  EXPECT_EQ(segment.series.at(R"(benchmarkai/a.latency{gpu="1"})").value, 2);
}

TEST_F(EmitInletTest, OtherLabelsAreOtherStreams) {
  const auto segment = Taken(R"({"a": 1, "labels": {"gpu": "1"}}
{"a": 2, "labels": {"gpu": "2"}}
{"a": 3, "labels": {"cpu": "1"}}
{"a": 4, "labels": {"gpu": "1"}}
)");
  EXPECT_EQ(segment.series.size(), 3U);
  EXPECT_EQ(segment.series.at(R"(benchmarkai/a{gpu="1"})").fraction, 5);
  EXPECT_EQ(segment.series.at(R"(benchmarkai/a{gpu="2"})").fraction, 2);
  EXPECT_EQ(segment.series.at(R"(benchmarkai/a{cpu="1"})").fraction, 3);
}

TEST_F(EmitInletTest, BadLinesAreCountedAndTheFirstOfEachKindIsQuoted) {
  Taken("{\"a\": 1}\nbad\nworse\n{\"a\": \"x\", \"b\": 2}\n{}\n" + std::string(5000, 'x') + "\n{\"a\": 2}\n",
        [this](const EmitInlet& inlet) {
          EXPECT_EQ(inlet.counts().good, 2U);
          EXPECT_EQ(inlet.counts().bad, 5U);
          EXPECT_EQ(inlet.counts().long_, 1U);
          EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("is not a JSON object"), HasSubstr("| bad")),
                                             AllOf(HasSubstr("neither a number"), HasSubstr(R"(| {"a": "x", "b": 2})")),
                                             HasSubstr("has no values"), HasSubstr("is longer than 1000 bytes")));
        });
}

TEST_F(EmitInletTest, APlaceThatCannotBeHadIsAnError) {
  EmitInlet inlet({.path = temporary_ / "no/such/place"});
  const Status status = inlet.Start();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), HasSubstr("no/such/place"));
}

}  // namespace
}  // namespace persia::agent

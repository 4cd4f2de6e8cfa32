// How a target starts: without enough threads, and with snapshots that come before the first is written.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "captured_log.h"
#include "no_threads.h"
#include "push/snapshots.h"
#include "remote/receiver.h"
#include "remote/remote_write.h"
#include "remote/series_plan.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RemoteWriteStartTest : public ::testing::Test {
 protected:
  RemoteWriteStartTest() : fd_(open(temporary_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    options_.endpoint.name = "db";
    options_.directory_fd = fd_;
    options_.directory = temporary_.path();
    options_.file_name = "agent.remote";
  }
  ~RemoteWriteStartTest() override { close(fd_); }

  const TemporaryDirectory temporary_;
  const int fd_;
  RemoteWrite::Options options_;
};

TEST_F(RemoteWriteStartTest, OpenFailsWithoutThreads) {
  Receiver receiver;
  options_.endpoint.url = receiver.url();
  {
    const NoThreads none;
    const auto target = RemoteWrite::Open(options_);
    ASSERT_FALSE(target.ok());
    EXPECT_THAT(target.error(), HasSubstr("remote_write db: cannot start a thread: "));
  }
  EXPECT_TRUE(RemoteWrite::Open(options_).ok());
}

TEST_F(RemoteWriteStartTest, OneSenderIsEnough) {
  Receiver receiver;
  options_.endpoint.url = receiver.url();
  options_.max_shards = 3;
  options_.series_per_shard = 2;
  std::optional<NoThreads> none;
  CapturedLog log;
  options_.before_thread = [&none](size_t number) {
    if (number == 2) none.emplace();  // the writing thread and the first sender have started
  };
  auto opened = RemoteWrite::Open(options_);
  none.reset();
  ASSERT_TRUE(opened.ok()) << opened.error();
  EXPECT_THAT(log.Messages(), ElementsAre(HasSubstr("1 of 3 senders")));
  std::vector<Sample> samples;
  for (int i = 0; i < 20; ++i) samples.push_back({"m" + std::to_string(100 + i), MetricType::kGauge, 1});
  auto snapshot = std::make_shared<Snapshot>(Snap({{"dlrm", {}}}, samples));
  snapshot->collected_at = std::chrono::system_clock::now();
  ASSERT_TRUE(opened.value()->Finish(snapshot, std::chrono::minutes(10), RemoteWrite::Ending::kGoesOn).ok());
  EXPECT_EQ(receiver.samples(), 20U) << "of all shards";
  EXPECT_EQ(opened.value()->stats().shards, 1U) << "those that a sender works on";
}

// A database limits the requests that it takes at a time.
TEST_F(RemoteWriteStartTest, StartsAsManySendersAsItMay) {
  Receiver receiver;
  options_.endpoint.url = receiver.url();
  options_.max_shards = 3;
  options_.metadata_interval = seconds(0);
  std::vector<size_t> threads;
  options_.before_thread = [&threads](size_t number) { threads.push_back(number); };
  const auto opened = RemoteWrite::Open(options_);
  ASSERT_TRUE(opened.ok()) << opened.error();
  EXPECT_THAT(threads, ElementsAre(0U, 1U, 2U, 3U)) << "the writing thread is the first";
  EXPECT_LE(opened.value()->stats().shards, 1U) << "no series needs the others";
}

TEST_F(RemoteWriteStartTest, SnapshotsDroppedBeforeTheFirstIsWrittenAreCounted) {
  options_.endpoint.url = "http://127.0.0.1:1/";
  options_.relabel.push_back({.action = RelabelAction::kLabelDrop, .regex = "feat"});
  std::promise<void> writes;
  std::promise<void> goes_on;
  options_.after_step = [&](std::string_view step) {
    if (step != "file created") return;
    writes.set_value();  // the first snapshot
    goes_on.get_future().wait();
  };
  auto opened = RemoteWrite::Open(options_);
  ASSERT_TRUE(opened.ok()) << opened.error();
  auto snapshot = std::make_shared<Snapshot>(Snap({{"dlrm", {}}}, {{"a", MetricType::kGauge, 1, 0, {{"feat", "x"}}},
                                                                   {"a", MetricType::kGauge, 1, 0, {{"feat", "y"}}},
                                                                   {"b", MetricType::kGauge, std::bit_cast<double>(kAbsent)}}));
  snapshot->collected_at = std::chrono::system_clock::now();
  opened.value()->Offer(snapshot);
  writes.get_future().wait();
  for (int i = 0; i < 4; ++i) opened.value()->Offer(snapshot);
  EXPECT_EQ(opened.value()->stats().dropped_samples.at("behind"), 2U * 2) << "two wait";
  goes_on.set_value();
}

TEST_F(RemoteWriteStartTest, SamplesOfASnapshotAreItsLines) {
  Layout layout;
  layout.identities = {{"dlrm", {}}};
  layout.families.push_back(
      {.name = "h", .type = MetricType::kHistogram, .help = "", .unit = "", .bounds = {1, 2}, .series = {}});
  layout.families.back().series.push_back({.identity = 0, .first_value = 0, .labels = {}});
  layout.families.push_back({.name = "s", .type = MetricType::kSummary, .help = "", .unit = "", .bounds = {0.5}, .series = {}});
  layout.families.back().series.push_back({.identity = 0, .first_value = 4, .labels = {}});
  layout.value_count = 7;
  Snapshot snapshot;
  snapshot.layout = std::make_shared<Layout>(layout);
  snapshot.values.assign(layout.value_count, 1);
  EXPECT_EQ(RemoteWrite::SamplesOf(snapshot), SeriesPlan(layout, {}).series().size());
}

}  // namespace
}  // namespace persia::agent

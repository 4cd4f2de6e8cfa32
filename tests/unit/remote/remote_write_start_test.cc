// How a target starts: without threads, and with snapshots that come before the first is written.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "no_threads.h"
#include "push/snapshots.h"
#include "remote/receiver.h"
#include "remote/remote_write.h"
#include "remote/series_plan.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

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

TEST_F(RemoteWriteStartTest, SnapshotsDroppedBeforeTheFirstIsWrittenAreCounted) {
  options_.endpoint.url = "http://127.0.0.1:1/";
  options_.relabel.push_back({.action = RelabelAction::kLabelDrop, .regex = "feat"});
  std::promise<void> writes;
  std::promise<void> goes_on;
  bool has_begun = false;
  options_.after_step = [&](std::string_view step) {
    if (step != "draft made" || std::exchange(has_begun, true)) return;
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

// A writer with a queue and a file of active series in a temporary directory, with small verbs.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "captured_log.h"
#include "push/snapshots.h"
#include "remote/decoded.h"
#include "remote/snapshot_writer.h"
#include "temporary_directory.h"

namespace persia::agent {

inline constexpr auto kGauge = MetricType::kGauge;

class SnapshotWriterFixture : public ::testing::Test {
 protected:
  void SetUp() override { fd_ = open(temporary_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }
  void TearDown() override { close(fd_); }

  void StartAgent(std::function<void(std::string_view)> after_step = {}) {
    writer_.reset();
    queue_ = DiskQueue::Open({.directory_fd = fd_,
                              .directory = temporary_.path(),
                              .name = "queue",
                              .max_age = std::chrono::hours(24 * 365 * 200),
                              .now_ms = now_ms_,
                              .min_backlog_bytes = 0,
                              .free_bytes = [this] { return free_bytes_; },
                              .after_step = after_step})
                 .value();
    active_ = std::make_unique<ActiveSeries>(DiskJournalFile::Options{
        .directory_fd = fd_, .directory = temporary_.path(), .name = "series", .after_step = after_step});
    options_.queue = queue_.get();
    options_.active = active_.get();
    writer_ = std::make_unique<SnapshotWriter>(options_);
  }
  // Writes these gauges, collected at this time.
  void Write(const std::vector<Sample>& samples, int64_t at_ms) {
    auto snapshot = std::make_shared<Snapshot>(Snap({{"dlrm", {}}}, samples));
    if (last_ != nullptr && SameLayout(*last_->layout, *snapshot->layout)) snapshot->layout = last_->layout;
    snapshot->collected_at = std::chrono::system_clock::time_point(std::chrono::milliseconds(at_ms));
    last_ = snapshot;
    writer_->Write(last_);
  }
  static int64_t Now() { return std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1); }
  static bool SameLayout(const Layout& a, const Layout& b) {
    return a.families.size() == b.families.size() &&
           std::equal(a.families.begin(), a.families.end(), b.families.begin(),
                      [](const auto& x, const auto& y) { return x.name == y.name && x.series.size() == y.series.size(); });
  }
  // Sends all requests in the queue, and returns the series of each.
  std::vector<std::vector<std::string>> Requests() {
    std::vector<std::vector<std::string>> requests;
    while (queue_->stats().pending_records > 0) {
      const auto request = queue_->Next();
      requests.push_back(LinesOfBody(request->body));
      EXPECT_EQ(requests.back().size(), request->record.samples);
      for (const std::string& line : requests.back())
        EXPECT_EQ(request->record.is_native, line.find(" schema ") != line.npos || line.find(" stale histogram ") != line.npos)
            << line;
      queue_->Finish();
    }
    return requests;
  }
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    for (auto& request : Requests()) lines.insert(lines.end(), request.begin(), request.end());
    return lines;
  }

  const TemporaryDirectory temporary_;
  int fd_ = -1;
  std::function<int64_t()> now_ms_ = Now;  // set before StartAgent
  uint64_t free_bytes_ = 1 << 30;
  SnapshotWriter::Options options_;
  CapturedLog log_;
  std::shared_ptr<Snapshot> last_;
  std::unique_ptr<DiskQueue> queue_;
  std::unique_ptr<ActiveSeries> active_;
  std::unique_ptr<SnapshotWriter> writer_;
};

}  // namespace persia::agent

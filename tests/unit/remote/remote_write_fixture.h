// A fixture with one remote write target, its temporary directory, and snapshots to send.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "captured_log.h"
#include "push/snapshots.h"
#include "remote/remote_write.h"
#include "temporary_directory.h"

namespace persia::agent {

// The series of Next(), as Receiver names it.
inline constexpr char kWrittenSeries[] = "m100{job=dlrm}";

class RemoteWriteFixture : public ::testing::Test {
 protected:
  void SetUp() override { fd_ = open(temporary_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }
  void TearDown() override {
    target_.reset();
    close(fd_);
  }

  void StartAgent(const std::string& url, std::chrono::milliseconds min_backoff = std::chrono::milliseconds(1),
                  std::chrono::milliseconds max_backoff = std::chrono::milliseconds(20)) {
    target_.reset();
    options_.endpoint.name = "db";
    options_.endpoint.url = url;
    options_.directory_fd = fd_;
    options_.directory = temporary_.path();
    options_.file_name = "agent.remote";
    options_.endpoint.min_backoff = min_backoff;
    options_.endpoint.max_backoff = max_backoff;
    auto target = RemoteWrite::Open(options_);
    ASSERT_TRUE(target.ok()) << target.error();
    target_ = std::move(target).value();
  }
  // Gauges of one layout, a second after the last one.
  std::shared_ptr<const Snapshot> Next(size_t series = 1) {
    if (layout_ == nullptr || layout_->families.size() != series) {
      std::vector<Sample> samples;
      for (size_t i = 0; i < series; ++i) samples.push_back({"m" + std::to_string(100 + i), MetricType::kGauge, 0});
      layout_ = Snap({{"dlrm", {}}}, samples).layout;
    }
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = layout_;
    snapshot->values.assign(series, ++count_);
    snapshot->collected_at = begin_ + std::chrono::seconds(count_);
    return snapshot;
  }
  // The same with one gauge, and one native histogram after it.
  std::shared_ptr<const Snapshot> NextWithHistogram() {
    auto snapshot = std::make_shared<Snapshot>(*Next());
    auto layout = std::make_shared<Layout>(*snapshot->layout);
    FamilyLayout family{.name = "n", .type = MetricType::kHistogram, .help = "", .unit = "", .bounds = {2}, .series = {}};
    family.native = NativeBuckets{.schema = 0, .first = 1, .buckets = 2, .max_buckets = 0, .classic = false, .cuts = {2}};
    family.series.push_back({.identity = 0, .first_value = 1, .labels = {}});
    layout->families.push_back(std::move(family));
    layout->value_count = 5;
    snapshot->layout = std::move(layout);
    snapshot->values.insert(snapshot->values.end(), {3, 0, 1, 2});
    return snapshot;
  }
  static std::string At(int count) {
    const auto at = std::chrono::time_point_cast<std::chrono::milliseconds>(begin_ + std::chrono::seconds(count));
    return std::to_string(count) + " @" + std::to_string(at.time_since_epoch().count());
  }

  static inline const auto begin_ =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()) - std::chrono::seconds(500);
  const TemporaryDirectory temporary_;
  int fd_ = -1;
  CapturedLog log_;
  RemoteWrite::Options options_;
  std::shared_ptr<const Layout> layout_;
  int count_ = 0;
  std::unique_ptr<RemoteWrite> target_;
};

}  // namespace persia::agent

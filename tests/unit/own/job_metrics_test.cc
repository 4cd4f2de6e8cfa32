#include "own/health_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <bit>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::Pair;
using Value = std::optional<double>;

constexpr char kFree[] = "persia_agent_metrics_dir_free_bytes";
constexpr char kSize[] = "persia_agent_metrics_dir_size_bytes";
constexpr char kThroughput[] = "persia_job_throughput";

// The values by the names of their families.
std::map<std::string, Value> ByName(const Snapshot& snapshot) {
  std::map<std::string, Value> values;
  for (const auto& family : snapshot.layout->families) {
    const double value = snapshot.values.at(family.series.at(0).first_value);
    values[family.name] = std::bit_cast<uint64_t>(value) == kAbsent ? std::nullopt : Value(value);
  }
  EXPECT_EQ(values.size(), snapshot.values.size());
  return values;
}

TEST(JobMetrics, EachValueHasItsFamily) {
  JobMetrics metrics({"dlrm", {{"role", "agent"}}}, "/proc");  // a filesystem without blocks
  EXPECT_THAT(ByName(*metrics.Collect({.hangs = true,
                                       .hang_after = seconds(90),
                                       .push_interval = milliseconds(2500),
                                       .unchanged = seconds(91),
                                       .throughput = {{"my_app_steps", 2.5}}})),
              ElementsAre(Pair(kFree, Value(0)), Pair(kSize, Value(0)), Pair("persia_agent_push_interval_seconds", Value(2.5)),
                          Pair("persia_job_hang_after_seconds", Value(90)), Pair("persia_job_hung", Value(1)),
                          Pair(kThroughput, Value(2.5)), Pair("persia_job_unchanged_seconds", Value(91))));
}

TEST(JobMetrics, WhatIsNotKnownIsAbsent) {
  JobMetrics metrics({"dlrm", {{"role", "agent"}}}, "/no/such/directory");
  EXPECT_THAT(
      ByName(*metrics.Collect({.push_interval = seconds(10)})),
      ElementsAre(Pair(kFree, std::nullopt), Pair(kSize, std::nullopt), Pair("persia_agent_push_interval_seconds", Value(10)),
                  Pair("persia_job_hang_after_seconds", std::nullopt), Pair("persia_job_hung", Value(0)),
                  Pair("persia_job_unchanged_seconds", std::nullopt)));
}

TEST(JobMetrics, TheSpaceIsThatOfTheFilesystemWithTheSegments) {
  struct statvfs shm {};
  ASSERT_EQ(statvfs("/dev/shm", &shm), 0);
  JobMetrics metrics({"dlrm", {{"role", "agent"}}}, "/dev/shm");
  const auto values = ByName(*metrics.Collect({}));
  const double size = static_cast<double>(shm.f_blocks) * static_cast<double>(shm.f_frsize);
  EXPECT_EQ(values.at(kSize), size);
  EXPECT_GT(values.at(kFree), 0);
  EXPECT_LE(values.at(kFree), size);
}

TEST(JobMetrics, TheProgressCounterGivesTheLayoutAndStays) {
  JobMetrics metrics({"dlrm", {{"role", "agent"}}}, "/dev/shm");
  const auto without = metrics.Collect({})->layout;
  EXPECT_EQ(metrics.Collect({})->layout, without);
  const auto with = metrics.Collect({.throughput = {{"my_app_steps", 1}}});
  EXPECT_NE(with->layout, without);
  const auto gone = metrics.Collect({});
  EXPECT_EQ(gone->layout, with->layout) << "a new layout costs a new plan";
  EXPECT_EQ(ByName(*gone).at(kThroughput), std::nullopt);
  const auto other = metrics.Collect({.throughput = {{"my_app_samples", 1}}});
  EXPECT_THAT(other->layout->families.at(5).series.at(0).labels, ElementsAre(Pair("counter", "my_app_samples")));
}

}  // namespace
}  // namespace persia::agent

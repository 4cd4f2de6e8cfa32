// Samples of 0 where counts began.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "remote/snapshot_writer_fixture.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kCounter = MetricType::kCounter;

class ZeroSamplesTest : public SnapshotWriterFixture {
 protected:
  ZeroSamplesTest() {
    now_ms_ = [] { return int64_t{10'000}; };
  }
  // A snapshot with one counter.
  void Count(double value, int64_t created_ms, int64_t at_ms) {
    last_ = nullptr;  // a new layout each time: one may differ in `created_ms` alone
    Write({Counter(value, created_ms)}, at_ms);
  }
  static Sample Counter(double value, int64_t created_ms) {
    return {.name = "c", .type = kCounter, .value = value, .created_ms = created_ms};
  }
};

TEST_F(ZeroSamplesTest, ACountThatBeganSinceTheFormerSnapshotBeginsAtZero) {
  StartAgent();
  Write({{"a", kGauge, 1}}, 10'000);
  Lines();
  Count(7, 12'345, 15'000);
  EXPECT_THAT(Requests(), ElementsAre(ElementsAre("c{job=dlrm} 0 @12345"), ElementsAre("c{job=dlrm} 7 @15000"),
                                      ElementsAre("a{job=dlrm} stale @15000")));
  Count(9, 12'345, 20'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 9 @20000")) << "once";
  StartAgent();
  Count(11, 12'345, 25'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 11 @25000")) << "nor by the next agent";
  Count(3, 26'000, 30'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 0 @26000", "c{job=dlrm} 3 @30000")) << "a new run";
}

TEST_F(ZeroSamplesTest, TheFirstSnapshotOfAllHasZeros) {
  StartAgent();
  Count(7, 9'000, 10'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 0 @9000", "c{job=dlrm} 7 @10000"));
}

TEST_F(ZeroSamplesTest, NoZeroIsNotLaterThanTheSamplesBefore) {
  StartAgent();
  Write({{"a", kGauge, 1}}, 10'000);
  Count(7, 10'000, 15'000);
  EXPECT_THAT(Lines(),
              ElementsAre("a{job=dlrm} 1 @10000", "c{job=dlrm} 0 @10001", "c{job=dlrm} 7 @15000", "a{job=dlrm} stale @15000"))
      << "it was registered after the read at 10000";
  Write({{"a", kGauge, 1}}, 20'000);
  Lines();
  Count(8, 19'999, 25'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 8 @25000", "a{job=dlrm} stale @25000"))
      << "it was hidden for a while: a zero would count all of it again";
}

TEST_F(ZeroSamplesTest, ThereIsNoZeroWithoutNeed) {
  StartAgent();
  Count(0, 9'000, 10'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 0 @10000")) << "the sample is 0 itself";
  Count(1, 0, 11'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 1 @11000")) << "unknown";
  Count(1, 12'000, 12'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 1 @12000")) << "no time before the sample";
  Count(1, 50'000, 13'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 1 @13000")) << "its clock is ahead";
}

TEST_F(ZeroSamplesTest, AnOldCountGetsNone) {
  options_.max_zero_age_ms = 1000;
  StartAgent();
  Count(7, 8'999, 10'000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 7 @10000"));
}

TEST_F(ZeroSamplesTest, HistogramsAndSummariesHaveZerosOfTheirCounts) {
  auto layout = std::make_shared<Layout>();
  layout->identities = {{"dlrm", {}}};
  const auto add = [&](const char* name, MetricType type) {
    layout->families.push_back({.name = name, .type = type, .help = "", .unit = "", .bounds = {0.5, 1}, .series = {}});
    layout->families.back().series.push_back(
        {.identity = 0, .first_value = layout->value_count, .labels = {}, .created_ms = 9'000});
    layout->value_count += 4;
  };
  add("h", MetricType::kHistogram);
  add("s", MetricType::kSummary);
  StartAgent();
  writer_->Write(std::make_shared<Snapshot>(
      Snapshot{layout, {0.75, 0, 1, 0, 3, 2, 1, 2}, std::chrono::system_clock::time_point(std::chrono::seconds(10))}));
  const auto requests = Requests();
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_THAT(requests[0],
              ElementsAre("h_bucket{job=dlrm,le=1} 0 @9000", "h_bucket{job=dlrm,le=+Inf} 0 @9000", "h_sum{job=dlrm} 0 @9000",
                          "h_count{job=dlrm} 0 @9000", "s_sum{job=dlrm} 0 @9000", "s_count{job=dlrm} 0 @9000"));
  EXPECT_THAT(requests[1], SizeIs(9));
}

TEST_F(ZeroSamplesTest, ZerosAreBeforeTheSamplesOfTheirSeries) {
  options_.max_samples = 3;
  StartAgent();
  std::vector<Sample> samples;
  for (int i = 10; i < 60; ++i) {
    Sample sample = Counter(1, 9'000);
    sample.name += std::to_string(i);
    samples.push_back(sample);
  }
  Write(samples, 10'000);
  std::map<std::string, std::vector<std::string>> values;
  for (const std::string& line : Lines()) values[line.substr(0, line.find(' '))].push_back(line.substr(line.find(' ') + 1));
  EXPECT_THAT(values, SizeIs(50));
  for (const auto& [series, sent] : values) EXPECT_THAT(sent, ElementsAre("0 @9000", "1 @10000")) << series;
}

}  // namespace
}  // namespace persia::agent

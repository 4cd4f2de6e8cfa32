// Native histograms by remote write: their samples, zeros and stale markers, and the classic form for other targets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "remote/snapshot_writer_fixture.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class NativeHistogramsTest : public SnapshotWriterFixture {
 protected:
  NativeHistogramsTest() {
    now_ms_ = [] { return int64_t{10'000}; };
    options_.sends_native = true;
  }
  // A histogram with these counts: of the zero bucket, up to 1, and of the buckets up to 2, 4 and above.
  void Observe(const std::vector<double>& counts, double sum, int64_t at_ms, int64_t created_ms = 0) {
    auto layout = std::make_shared<Layout>();
    layout->identities.push_back({"dlrm", {}});
    layout->value_count = 5;
    FamilyLayout family{.name = "x", .type = MetricType::kHistogram, .help = "", .unit = "", .bounds = {2}, .series = {}};
    family.native = NativeBuckets{.schema = 0, .first = 1, .buckets = 3, .max_buckets = 0, .classic = classic_, .cuts = {2}};
    family.series.push_back({.identity = 0, .first_value = 0, .labels = {}, .created_ms = created_ms});
    layout->families.push_back(std::move(family));
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = std::move(layout);
    snapshot->values = {sum};
    snapshot->values.insert(snapshot->values.end(), counts.begin(), counts.end());
    snapshot->collected_at = std::chrono::system_clock::time_point(std::chrono::milliseconds(at_ms));
    writer_->Write(snapshot);
  }

  bool classic_ = false;
};

TEST_F(NativeHistogramsTest, OneSeriesHasAllBuckets) {
  StartAgent();
  Observe({1, 2, 0, 4}, 30.5, 10'000);
  EXPECT_THAT(Lines(), ElementsAre("x{job=dlrm} schema 0 count 7 sum 30.5 zeros 1 up to 1 1:2 2:0 3:4 @10000"));
  EXPECT_EQ(writer_->series(), 1U);
}

TEST_F(NativeHistogramsTest, ATargetThatTakesNoneGetsTheClassicForm) {
  options_.sends_native = false;
  StartAgent();
  Observe({1, 2, 0, 4}, 30.5, 10'000);
  EXPECT_THAT(Lines(), ElementsAre("x_bucket{job=dlrm,le=2} 3 @10000", "x_bucket{job=dlrm,le=+Inf} 7 @10000",
                                   "x_sum{job=dlrm} 30.5 @10000", "x_count{job=dlrm} 7 @10000"));
}

TEST_F(NativeHistogramsTest, BothAreSentWhereAsked) {
  classic_ = true;
  StartAgent();
  Observe({1, 2, 0, 4}, 30.5, 10'000);
  EXPECT_THAT(Lines(), UnorderedElementsAre("x{job=dlrm} schema 0 count 7 sum 30.5 zeros 1 up to 1 1:2 2:0 3:4 @10000",
                                            "x_bucket{job=dlrm,le=2} 3 @10000", "x_bucket{job=dlrm,le=+Inf} 7 @10000",
                                            "x_sum{job=dlrm} 30.5 @10000", "x_count{job=dlrm} 7 @10000"));
}

TEST_F(NativeHistogramsTest, ACountThatBeganSinceTheFormerSnapshotBeginsEmpty) {
  StartAgent();
  Observe({0, 1, 0, 0}, 2, 10'000, 9'000);
  EXPECT_THAT(Lines(), ElementsAre("x{job=dlrm} schema 0 count 0 sum 0 zeros 0 up to 1 @9000",
                                   "x{job=dlrm} schema 0 count 1 sum 2 zeros 0 up to 1 1:1 @10000"));
}

TEST_F(NativeHistogramsTest, AnEndedSeriesGetsAStaleHistogram) {
  StartAgent();
  Observe({0, 1, 0, 0}, 2, 10'000);
  Lines();
  Write({{"a", kGauge, 1}}, 20'000);
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} 1 @20000", "x{job=dlrm} stale histogram @20000"));
  Observe({0, 1, 0, 0}, 2, 30'000);
  Lines();
  StartAgent();
  Write({{"a", kGauge, 1}}, 40'000);
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} 1 @40000", "x{job=dlrm} stale histogram @40000")) << "by the next agent, too";
}

TEST_F(NativeHistogramsTest, AnAbsentOneIsNotSent) {
  StartAgent();
  Observe({0, 1, 0, 0}, 2, 10'000);
  Lines();
  Observe({0, 1, 0, 0}, kAbsentValue, 20'000);
  EXPECT_THAT(Lines(), ElementsAre("x{job=dlrm} stale histogram @20000"));
}

// A rule changed the stream's type: in the database it is one series, and a marker would be a second sample of that time.
TEST_F(NativeHistogramsTest, AGaugeThatBecomesAHistogramHasNoMarker) {
  StartAgent();
  Write({{"x", kGauge, 1}}, 10'000);
  Lines();
  Observe({0, 1, 0, 0}, 2, 20'000);
  EXPECT_THAT(Lines(), ElementsAre("x{job=dlrm} schema 0 count 1 sum 2 zeros 0 up to 1 1:1 @20000"));
  Write({{"x", kGauge, 1}}, 30'000);
  EXPECT_THAT(Lines(), ElementsAre("x{job=dlrm} 1 @30000"));
  Write({{"y", kGauge, 1}}, 40'000);
  EXPECT_THAT(Lines(), ElementsAre("y{job=dlrm} 1 @40000", "x{job=dlrm} stale @40000"));
}

}  // namespace
}  // namespace persia::agent

// The data that a stream keeps of its values.
#include "persia/metrics/stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "segment_format.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint32_t kBuckets = segment::kStreamBuckets;

class StreamTest : public WorkerTest {
 protected:
  // The number of the bucket in a view, where the counts of negative values and of zeros come first.
  static size_t At(uint32_t bucket) { return 2 + bucket; }
};

TEST_F(StreamTest, KeepsTheLastValueTheSumsAndTheCounts) {
  const auto segment = SegmentOf([] {
    Stream stream("my_app", "latency", {.help = "Help.", .unit = "ms"});
    for (const double value : {1.5, -2.0, 0.0, -0.0, 4.0, -0.25, 1.5}) stream.Add(value);
    Stream("my_app", "no_value");
  });
  EXPECT_FALSE(segment.series.at("my_app/no_value").set);
  const SeriesView& series = segment.series.at("my_app/latency");
  EXPECT_EQ(series.value, 1.5);
  EXPECT_EQ(series.fraction, 7);
  EXPECT_EQ(series.negative, -2.25);
  EXPECT_EQ(series.buckets.at(0), 2U) << "negative ones";
  EXPECT_EQ(series.buckets.at(1), 2U) << "zeros";
  EXPECT_EQ(series.buckets.at(At(internal::StreamBucketOf(1.5))), 2U);
  EXPECT_EQ(series.buckets.at(At(internal::StreamBucketOf(4))), 1U);
  EXPECT_EQ(series.Count(), 7U);
  EXPECT_EQ(series.help, "Help.");
  EXPECT_EQ(series.unit, "ms");
}

TEST_F(StreamTest, ANanIsTheLastValueAndNothingElse) {
  const auto segment = SegmentOf([] {
    Stream stream("my_app", "loss");
    stream.Add(2);
    stream.Add(std::nan(""));
  });
  const SeriesView& series = segment.series.at("my_app/loss");
  EXPECT_TRUE(std::isnan(series.value));
  EXPECT_EQ(series.fraction, 2);
  EXPECT_EQ(series.Count(), 1U);
}

TEST_F(StreamTest, ThreadsAddUp) {
  const auto segment = SegmentOf([] {
    Stream stream("my_app", "latency");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([stream]() mutable {
        for (int n = 0; n < 1000; ++n) stream.Add(3);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const SeriesView& series = segment.series.at("my_app/latency");
  EXPECT_EQ(series.fraction, 12000);
  EXPECT_EQ(series.buckets.at(At(internal::StreamBucketOf(3))), 4000U);
}

TEST(StreamBucket, BoundsAreInclusiveUpperBounds) {
  for (int k = segment::kStreamLeast; k <= segment::kStreamMost; ++k) {
    // As Prometheus has them: an exact power of two times one of four fractions.
    const int octave = k >= 0 ? k / 4 : -((3 - k) / 4);
    const double bound = std::ldexp(std::exp2((k - 4 * octave) / 4.0), octave);
    const auto index = static_cast<uint32_t>(k - segment::kStreamLeast);
    EXPECT_EQ(internal::StreamBucketOf(bound), index) << k;
    EXPECT_EQ(internal::StreamBucketOf(std::nextafter(bound, kInfinity)), index + 1) << k;
    EXPECT_EQ(internal::StreamBucketOf(std::nextafter(bound, 0)), index) << k;
  }
}

TEST(StreamBucket, WhatIsTooSmallOrTooLargeHasABucketToo) {
  for (const double small : {std::numeric_limits<double>::denorm_min(), 1e-300, 0x1p-21, 0x1p-20}) {
    EXPECT_EQ(internal::StreamBucketOf(small), 0U) << small;
  }
  for (const double large : {std::nextafter(0x1p20, kInfinity), 0x1p21, std::numeric_limits<double>::max(), kInfinity}) {
    EXPECT_EQ(internal::StreamBucketOf(large), kBuckets - 1) << large;
  }
}

}  // namespace
}  // namespace persia::metrics::tests

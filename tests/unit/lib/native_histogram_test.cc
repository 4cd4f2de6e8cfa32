// The bounds and values of native histograms.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "persia/metrics/family.h"
#include "persia/metrics/instruments.h"
#include "segment_format.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using segment::Drop;

class NativeHistogramTest : public WorkerTest {};

TEST_F(NativeHistogramTest, HasTheBoundsOfASchema) {
  const auto segment = SegmentOf([] {
    Histogram histogram("g", "h", NativeBuckets{.factor = 2, .max_buckets = 7, .zero_threshold = 1, .most = 8});
    for (const double value : {-3.0, 0.0, 1.0, 1.5, 2.0, 8.0, 9.0, internal::kInfinity}) histogram.Observe(value);
    histogram.Observe(std::nan(""));
    Family<Histogram> family("g", "f", NativeBuckets());
    family.With({{"a", "b"}}).Observe(1);
    Histogram("g", "fine", NativeBuckets{.factor = 1.0001, .zero_threshold = 1, .most = 2}).Observe(1);
    Histogram("g", "limited", NativeBuckets{.factor = 1.0001}).Observe(1);
  });
  const SeriesView& series = segment.series.at("g/h");
  EXPECT_EQ(series.kind, static_cast<int>(segment::Kind::kNativeHistogram));
  EXPECT_EQ(series.bounds, (std::vector<double>{1, 2, 4, 8}));
  EXPECT_EQ(series.buckets, (std::vector<uint64_t>{3, 2, 0, 1, 2}));
  EXPECT_EQ(segment.series.at("g/f{a=\"b\"}").bounds.size(), 321U) << "schema 3, 2^-20 to 2^20";
  EXPECT_EQ(segment.series.at("g/f{a=\"b\"}").bounds.front(), 0x1p-20);
  EXPECT_EQ(segment.series.at("g/f{a=\"b\"}").bounds.back(), 0x1p20);
  EXPECT_EQ(segment.series.at("g/fine").bounds.size(), 257U) << "schema 8, the finest";
  EXPECT_EQ(segment.series.at("g/limited").bounds.size(), 321U) << "schema 4 would need 641";
  EXPECT_EQ(segment.DroppedFor(Drop::kBadValue), 1U);
}

TEST_F(NativeHistogramTest, WithBadOptionsIsRefused) {
  const auto segment = SegmentOf([] {
    for (const double factor : {1.0, 0.0, -2.0, std::nan("")})
      Histogram("g", "factor", NativeBuckets{.factor = factor}).Observe(1);
    Histogram("g", "zero", NativeBuckets{.zero_threshold = 0}).Observe(1);
    Histogram("g", "order", NativeBuckets{.zero_threshold = 8, .most = 8}).Observe(1);
    Histogram("g", "infinite", NativeBuckets{.most = internal::kInfinity}).Observe(1);
    Histogram first("g", "h", NativeBuckets{.max_buckets = 10});
    Histogram second("g", "h", NativeBuckets{.max_buckets = 20});
    Histogram third("g", "h", LinearBounds(1, 1, 3));
    for (Histogram* histogram : {&first, &second, &third}) histogram->Observe(1);
  });
  EXPECT_EQ(segment.series.size(), 6U) << "and the losses of five";
  EXPECT_EQ(segment.series.at("g/h").Count(), 1U);
  EXPECT_EQ(segment.DroppedFor(Drop::kBadBounds), 7U);
  EXPECT_EQ(segment.DroppedFor(Drop::kTypeConflict), 2U);
}

}  // namespace
}  // namespace persia::metrics::tests

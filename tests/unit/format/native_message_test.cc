// Native histograms in an exposition, read by protobuf's own code.
#include "format/protobuf_wire.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/group_renderer.h"
#include "format/scrape_renderer.h"
#include "metric_family.pb.h"
#include "test_seed.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

NativeBuckets Buckets(uint32_t buckets, uint32_t max_buckets = 0) {
  return {.schema = 2, .first = -3, .buckets = buckets, .max_buckets = max_buckets, .classic = false, .cuts = {1, buckets}};
}

// A series with this sum and these counts: of the zero bucket, then of each bucket.
Snapshot OneSeries(NativeBuckets native, double sum, const std::vector<double>& counts) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back({"dlrm", {}});
  layout->value_count = counts.size() + 1;
  FamilyLayout family{.name = "x", .type = MetricType::kHistogram, .help = "", .unit = "", .bounds = {0.5, 2}, .series = {}};
  family.native = std::move(native);
  family.series.push_back({.identity = 0, .first_value = 0, .labels = {}, .created_ms = 1'500});
  layout->families.push_back(std::move(family));
  Snapshot snapshot{std::move(layout), {sum}, {}};
  snapshot.values.insert(snapshot.values.end(), counts.begin(), counts.end());
  return snapshot;
}

persia_test::Histogram HistogramIn(const std::string& body) {
  google::protobuf::io::ArrayInputStream stream(body.data(), static_cast<int>(body.size()));
  persia_test::MetricFamily family;
  EXPECT_TRUE(google::protobuf::util::ParseDelimitedFromZeroCopyStream(&family, &stream, nullptr));
  EXPECT_EQ(family.type(), persia_test::HISTOGRAM);
  EXPECT_THAT(family.metric(), SizeIs(1));
  const persia_test::Histogram& histogram = family.metric(0).histogram();
  EXPECT_EQ(histogram.unknown_fields().field_count(), 0);
  EXPECT_EQ(histogram.created_timestamp().seconds(), 1);
  return histogram;
}

persia_test::Histogram Scraped(const Snapshot& snapshot) {
  std::string body;
  ProtobufRenderer().Render(snapshot, body);
  return HistogramIn(body);
}

persia_test::Histogram Pushed(const Snapshot& snapshot) {
  std::string body;
  GroupRenderer(ExpositionFormat::kProtobuf).Render(snapshot, 0, body);
  return HistogramIn(body);
}

std::string Text(const Snapshot& snapshot) {
  std::string body;
  TextRenderer().Render(snapshot, body);
  return body;
}

// The counts of the populated buckets, by index.
std::map<int64_t, int64_t> CountsByIndex(const persia_test::Histogram& histogram) {
  std::map<int64_t, int64_t> counts;
  int64_t index = 0;
  int64_t count = 0;
  int next = 0;
  for (const persia_test::BucketSpan& span : histogram.positive_span()) {
    EXPECT_TRUE(next == 0 || span.offset() > 0) << "a span that touches the one before";
    index += span.offset();
    for (uint32_t i = 0; i < span.length(); ++i, ++index) {
      count += histogram.positive_delta(next++);
      EXPECT_GE(count, 0);
      if (count > 0) counts[index] = count;
    }
  }
  EXPECT_EQ(next, histogram.positive_delta_size());
  return counts;
}

TEST(NativeMessageTest, AScrapeHasTheBucketsAsSpansAndDeltas) {
  const auto histogram = Scraped(OneSeries(Buckets(8), 12.5, {2, 0, 5, 3, 0, 0, 1, 0, 4}));
  EXPECT_EQ(histogram.sample_count(), 15U);
  EXPECT_EQ(histogram.sample_sum(), 12.5);
  EXPECT_EQ(histogram.schema(), 2);
  EXPECT_EQ(histogram.zero_threshold(), 0.5);
  EXPECT_EQ(histogram.zero_count(), 2U);
  EXPECT_THAT(histogram.positive_span(), SizeIs(1)) << "a gap of two buckets is shorter as zeros";
  EXPECT_EQ(histogram.positive_span(0).offset(), -2);
  EXPECT_THAT(histogram.positive_delta(), ElementsAre(5, -2, -3, 0, 1, -1, 4));
  EXPECT_THAT(CountsByIndex(histogram), ElementsAre(Pair(-2, 5), Pair(-1, 3), Pair(2, 1), Pair(4, 4)));
}

TEST(NativeMessageTest, AWiderGapBeginsASpan) {
  const auto histogram = Scraped(OneSeries(Buckets(8), 1, {0, 1, 0, 0, 0, 1, 0, 0, 0}));
  ASSERT_THAT(histogram.positive_span(), SizeIs(2));
  EXPECT_EQ(histogram.positive_span(1).offset(), 3);
  EXPECT_THAT(CountsByIndex(histogram), ElementsAre(Pair(-3, 1), Pair(1, 1)));
}

// Its zero threshold shows that it is native.
TEST(NativeMessageTest, WithoutObservationsItHasNoSpans) {
  const auto histogram = Scraped(OneSeries(Buckets(3), 0, {0, 0, 0, 0}));
  EXPECT_TRUE(histogram.has_zero_threshold() && histogram.has_schema() && histogram.has_zero_count());
  EXPECT_THAT(histogram.positive_span(), IsEmpty());
  EXPECT_THAT(histogram.positive_delta(), IsEmpty());
}

// A reader that takes no native histograms would lose the distribution.
TEST(NativeMessageTest, TheClassicBucketsAreBesideThem) {
  const Snapshot snapshot = OneSeries(Buckets(4), 1, {2, 1, 0, 5, 7});
  for (const auto& histogram : {Scraped(snapshot), Pushed(snapshot)}) {
    std::vector<std::pair<double, uint64_t>> classic;
    for (const auto& bucket : histogram.bucket()) classic.emplace_back(bucket.upper_bound(), bucket.cumulative_count());
    EXPECT_THAT(classic, ElementsAre(Pair(0.5, 2U), Pair(2, 8U), Pair(HUGE_VAL, 15U)));
    EXPECT_THAT(CountsByIndex(histogram), ElementsAre(Pair(-3, 1), Pair(-1, 5), Pair(0, 7)));
  }
}

TEST(NativeMessageTest, TextHasTheClassicForm) {
  EXPECT_EQ(Text(OneSeries(Buckets(4), 3.5, {2, 1, 0, 5, 7})),
            "# TYPE x histogram\n"
            "x_bucket{job=\"dlrm\",le=\"0.5\"} 2\n"
            "x_bucket{job=\"dlrm\",le=\"2\"} 8\n"
            "x_bucket{job=\"dlrm\",le=\"+Inf\"} 15\n"
            "x_sum{job=\"dlrm\"} 3.5\n"
            "x_count{job=\"dlrm\"} 15\n");
}

TEST(NativeMessageTest, BeyondTheLimitPairsOfBucketsAreMerged) {
  // Buckets -3 to 4 of schema 2 are -1 to 2 of schema 1, and 0 to 1 of schema 0.
  const std::vector<double> counts = {9, 1, 2, 3, 4, 5, 6, 7, 8};
  const auto at_limit = [&](uint32_t limit) { return Scraped(OneSeries(Buckets(8, limit), 1, counts)); };
  EXPECT_EQ(at_limit(8).schema(), 2);
  EXPECT_EQ(at_limit(7).schema(), 1);
  EXPECT_THAT(CountsByIndex(at_limit(7)), ElementsAre(Pair(-1, 3), Pair(0, 7), Pair(1, 11), Pair(2, 15)));
  EXPECT_EQ(at_limit(2).schema(), 0);
  EXPECT_THAT(CountsByIndex(at_limit(2)), ElementsAre(Pair(0, 10), Pair(1, 26)));
  EXPECT_EQ(at_limit(1).schema(), -4) << "the last one";
  EXPECT_THAT(CountsByIndex(at_limit(1)), ElementsAre(Pair(0, 10), Pair(1, 26)));
  EXPECT_EQ(at_limit(2).zero_count(), 9U);
}

// Against a computation of each bucket's bounds.
TEST(NativeMessageTest, RandomCountsAreKeptAtEachSchema) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 300; ++round) {
    NativeBuckets native{.schema = static_cast<int>(random() % 13) - 4,
                         .first = static_cast<int>(random() % 400) - 200,
                         .buckets = static_cast<uint32_t>(1 + random() % NativeBuckets::kMaxBuckets),
                         .max_buckets = static_cast<uint32_t>(random() % 40),
                         .classic = false,
                         .cuts = {1}};
    std::vector<double> counts(native.buckets + 1);
    for (double& count : counts) {
      if (random() % 4 == 0) count = static_cast<double>(random() >> (random() % 60 + 4));
    }
    const auto histogram = Scraped(OneSeries(native, 1, counts));
    std::map<int64_t, int64_t> expected;
    const int lowered = native.schema - histogram.schema();
    ASSERT_GE(lowered, 0);
    for (uint32_t i = 0; i < native.buckets; ++i) {
      if (counts[i + 1] == 0) continue;
      const double index = native.first + static_cast<int>(i);
      expected[static_cast<int64_t>(std::ceil(std::ldexp(index, -lowered)))] += static_cast<int64_t>(counts[i + 1]);
    }
    EXPECT_EQ(CountsByIndex(histogram), expected);
    const bool within = native.max_buckets == 0 || expected.size() <= native.max_buckets || histogram.schema() == -4;
    EXPECT_TRUE(within) << expected.size();
  }
}

TEST(NativeMessageTest, ThereIsRoomForTheLongestNumbers) {
  constexpr NativeFields kFields{.schema = 5, .zero_threshold = 6, .zero_count = 7, .span = 12, .delta = 13};
  for (const uint32_t buckets : {1U, 2U, 4U, 5U, 161U, NativeBuckets::kMaxBuckets}) {
    for (const uint32_t step : {1U, 2U, 4U}) {
      const NativeBuckets native{
          .schema = 8, .first = -280'000, .buckets = buckets, .max_buckets = 0, .classic = false, .cuts = {}};
      std::vector<double> counts(buckets + 1);
      for (uint32_t i = 0; i < counts.size(); i += step) counts[i] = 0x1p70;
      std::vector<char> bytes(2 * MaxNativeBytes(buckets));
      const char* const end = PutNativeFields(bytes.data(), kFields, native, counts.data());
      EXPECT_LE(end - bytes.data(), static_cast<ptrdiff_t>(MaxNativeBytes(buckets))) << buckets << " by " << step;
    }
  }
}

TEST(NativeMessageTest, TheSchemaOnlyFallsWhileCountsGrow) {
  std::mt19937_64 random(TestSeed());
  std::vector<double> counts(163);
  int schema = 2;
  for (int i = 0; i < 2000; ++i) {
    ++counts[random() % counts.size()];
    const int now = Scraped(OneSeries(Buckets(162, 50), 1, counts)).schema();
    ASSERT_LE(now, schema);
    schema = now;
  }
  EXPECT_EQ(schema, 0);
}

}  // namespace
}  // namespace persia::agent

// The exposed values of a stream, by the naming's rules, while processes start and end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ledger/retired_test.h"
#include "merge/stream_totals.h"
#include "model/bounds.h"
#include "persia/metrics/internal/bucket_search.h"
#include "test_seed.h"

namespace persia::agent::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Pair;

// Exposes all metrics alike, in a way that a test sets.
class FixedNaming : public Naming {
 public:
  [[nodiscard]] std::shared_ptr<const Exposed> Expose(const SourceMetric& metric) const override {
    Exposed exposed = exposed_as;
    exposed.name = PlainName(metric);
    return std::make_shared<const Exposed>(exposed);
  }
  Exposed exposed_as;
};

class StreamMergeTest : public RetiredTest {
 protected:
  StreamMergeTest() {
    naming_ = fixed_naming_;
    hide_ended_ = false;  // keeps the series of instances without processes
    StartAgent();
  }
  // Takes effect at the next collection, as after a reload.
  void Show(Exposed exposed) {
    fixed_naming_->exposed_as = std::move(exposed);
    source().SetNaming(fixed_naming_);
  }
  // Starts a process that recorded these values, in this order.
  std::unique_ptr<Worker> StartWith(const std::vector<double>& values) {
    auto process = Start();
    std::map<uint32_t, uint64_t> buckets;
    double positive = 0;
    double negative = 0;
    uint64_t negatives = 0;
    uint64_t zeros = 0;
    for (const double value : values) {
      if (value > 0) {
        ++buckets[metrics::internal::StreamBucketOf(value)];
        positive += value;
      } else if (value < 0) {
        ++negatives;
        negative += value;
      } else {
        ++zeros;
      }
    }
    slot_ = process->segment.Stream("my_app", "latency", {}, values.back(), buckets, positive, negative, negatives, zeros);
    process->Put();
    return process;
  }
  std::string Latency() { return Shown("my_app_latency"); }

  const std::shared_ptr<FixedNaming> fixed_naming_ = std::make_shared<FixedNaming>();
  uint32_t slot_ = 0;  // of the stream, in the process started last
};

TEST_F(StreamMergeTest, WithoutARuleItIsItsLastValue) {
  const auto first = StartWith({1, 2, 5});
  EXPECT_EQ(Latency(), "5");
  const auto second = StartWith({7, 3});
  EXPECT_EQ(Latency(), "3") << "the most recently changed";
}

TEST_F(StreamMergeTest, ACounterIsTheSumOfWhatIsPositive) {
  Show({.type = MetricType::kCounter});
  const auto first = StartWith({1, 2.5, -4});
  const auto second = StartWith({1, 0});
  EXPECT_EQ(Latency(), "4.5");
}

TEST_F(StreamMergeTest, ACounterOfTheSameNameIsNotAddedToIt) {
  Show({.type = MetricType::kCounter});
  const auto first = StartWith({1, 2.5});
  const auto second = Start();
  second->segment.Counter("my_app", "latency", {}, 5);
  second->Put();
  EXPECT_EQ(Latency(), "5");
  EXPECT_THAT(Diagnosed(),
              ElementsAre(HasSubstr("metric (my_app, latency) is left out as a stream's counter: under the name "
                                    "my_app_latency the newest definition, metric (my_app, latency), is a counter")));
}

TEST_F(StreamMergeTest, AHistogramHasItsExactCounts) {
  Show({.type = MetricType::kHistogram, .bounds = {1, 4, 16}});
  const auto first = StartWith({-2, 0, 0.5, 1, 1.5});
  const auto second = StartWith({4, 4.5, 17, 1e9});
  EXPECT_EQ(Latency(), "1000000026.5: 4 2 1 2");
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(StreamMergeTest, BoundsSnapToTheStreamsBoundariesAndThatIsReportedOnce) {
  Show({.type = MetricType::kHistogram, .bounds = {1, 3}});
  const auto process = StartWith({1, 2.8, 3});
  Collect();
  const auto bounds = Collect()->layout->families[0].bounds;
  ASSERT_EQ(bounds.size(), 2U);
  EXPECT_EQ(bounds[0], 1);
  EXPECT_EQ(bounds[1], StreamBound(6));  // 2.83
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("instead of 1, 3")));
  EXPECT_EQ(Latency(), "6.8: 1 1 1");
}

TEST_F(StreamMergeTest, AScaleIsOfValuesAndBounds) {
  Show({.type = MetricType::kHistogram, .bounds = {0.001, 1.024}, .scale = 0.001});
  const auto process = StartWith({1, 1000, 1024, 2000});
  EXPECT_EQ(Latency(), "4.025: 1 2 1");
  Show({.scale = 0.001});
  EXPECT_EQ(Latency(), "2");
  Show({.type = MetricType::kCounter, .scale = 0.001});
  EXPECT_EQ(Latency(), "4.025");
}

TEST_F(StreamMergeTest, ANativeHistogramHasTheStreamsBuckets) {
  Show({.type = MetricType::kHistogram, .bounds = {1, 4}, .native = true, .max_buckets = 100});
  const auto first = StartWith({-2, 0, 0x1p-30, 0x1p-20, 1, 1});
  const auto second = StartWith({1.01, 0x1p20, 1e9});
  const auto snapshot = Collect();
  const FamilyLayout& family = snapshot->layout->families[0];
  ASSERT_TRUE(family.native);
  EXPECT_EQ(family.native->schema, 2);
  EXPECT_EQ(family.native->ZeroThreshold(), 0x1p-20);
  EXPECT_EQ(family.native->max_buckets, 100U);
  ASSERT_EQ(family.ValuesPerSeries(), 163U);
  const double* values = snapshot->values.data() + family.series.at(0).first_value;
  std::map<int, double> counts;  // by the index of the bucket
  for (uint32_t i = 0; i < family.native->buckets; ++i) {
    if (values[2 + i] > 0) counts[family.native->first + static_cast<int>(i)] = values[2 + i];
  }
  EXPECT_EQ(values[1], 4) << "the zero bucket";
  EXPECT_THAT(counts, ElementsAre(Pair(0, 2), Pair(1, 1), Pair(80, 1), Pair(81, 1)));
  ClassicBuffer buffer;
  const double* classic = family.BucketCounts(values, buffer);
  EXPECT_THAT(std::vector<double>(classic, classic + 3), ElementsAre(6, 1, 2));
}

// Its classic bounds are exact; native buckets cannot be scaled, and move by a whole number of buckets.
TEST_F(StreamMergeTest, AScaleMovesNativeBuckets) {
  Show({.type = MetricType::kHistogram, .bounds = {1.024}, .native = true, .scale = 0.001});
  const auto process = StartWith({1024});
  const auto snapshot = Collect();
  const FamilyLayout& family = snapshot->layout->families[0];
  EXPECT_THAT(family.bounds, ElementsAre(1.024));
  ASSERT_TRUE(family.native);
  EXPECT_EQ(family.native->first, -79 - 40) << "0.001 is 2^(-39.9 / 4)";
  const double* values = snapshot->values.data() + family.series.at(0).first_value;
  EXPECT_EQ(values[0], 1.024);
  EXPECT_EQ(values[1 + 40 - family.native->first], 0);
  EXPECT_EQ(values[2 + 0 - family.native->first], 1) << "1 is the bound nearest to 1.024";
}

TEST_F(StreamMergeTest, AClassicAndANativeHistogramOfAProgramAreNotMixed) {
  const auto first = Start();
  first->segment.Histogram("my_app", "sizes", {}, std::array{1.0, 2.0}, 4.75, std::vector<uint64_t>{1, 0, 2});
  first->Put();
  const auto second = Start();
  const uint32_t family =
      second->segment.Family(metrics::segment::Kind::kNativeHistogram, "my_app", "sizes", std::array{1.0, 2.0, 4.0});
  const uint32_t slot = second->segment.Series(family);
  second->segment.SetDouble(slot, 9);
  second->segment.Set(slot + 2, 6);
  second->Put();
  const auto snapshot = Collect();
  const FamilyLayout& layout = snapshot->layout->families[0];
  ASSERT_TRUE(layout.native);
  EXPECT_EQ(layout.native->schema, 0);
  EXPECT_EQ(layout.native->first, 1);
  const double* values = snapshot->values.data() + layout.series.at(0).first_value;
  EXPECT_THAT(std::vector<double>(values, values + 5), ElementsAre(9, 0, 6, 0, 0));
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("is left out as a histogram with 2 bounds")));
}

// Their classic bounds may be equal.
TEST_F(StreamMergeTest, ANativeHistogramThatIsLeftOutIsReportedWithItsRange) {
  for (const std::vector<double>& bounds : {std::vector<double>{1, 2, 4}, std::vector<double>{1, 2, 4, 8}}) {
    const auto process = Start();
    process->segment.Series(process->segment.Family(metrics::segment::Kind::kNativeHistogram, "my_app", "sizes", bounds));
    process->Put();
  }
  Collect();
  EXPECT_THAT(Diagnosed(), ElementsAre(AllOf(HasSubstr("left out as a histogram, native with schema 0 from 1 to 4, and with"),
                                             HasSubstr("is a histogram, native with schema 0 from 1 to 8, and with"))));
}

TEST_F(StreamMergeTest, AnEndedProcessLeavesItsNativeHistogram) {
  for (int i = 0; i < 2; ++i) {
    const auto process = Start();
    const uint32_t family =
        process->segment.Family(metrics::segment::Kind::kNativeHistogram, "my_app", "sizes", std::array{1.0, 2.0, 4.0});
    const uint32_t slot = process->segment.Series(family);
    process->segment.SetDouble(slot, 9);
    process->segment.Set(slot + 2, 6);
    process->Put();
    Collect();
    process->End();
    Collect();
    StartAgent();
  }
  const auto snapshot = Collect();
  const FamilyLayout& layout = snapshot->layout->families.at(0);
  ASSERT_TRUE(layout.native);
  const double* values = snapshot->values.data() + layout.series.at(0).first_value;
  EXPECT_THAT(std::vector<double>(values, values + 5), ElementsAre(18, 0, 12, 0, 0));
}

TEST_F(StreamMergeTest, ASummaryHasSumCountAndQuantiles) {
  Show({.type = MetricType::kSummary, .quantiles = {0.5, 1}});
  const auto process = StartWith({1, 1, 1, 8});
  const auto snapshot = Collect();
  const FamilyLayout& family = snapshot->layout->families[0];
  EXPECT_EQ(family.type, MetricType::kSummary);
  const double* values = snapshot->values.data() + family.series.at(0).first_value;
  EXPECT_EQ(values[0], 11);
  EXPECT_EQ(values[1], 4);
  EXPECT_NEAR(values[2], 1, 0.19);
  EXPECT_EQ(values[3], 8);
}

TEST_F(StreamMergeTest, TheExposedTypeMayChangeAtRunTime) {
  const auto process = StartWith({1, 2, 5});
  EXPECT_EQ(Latency(), "5");
  Show({.type = MetricType::kCounter});
  EXPECT_EQ(Latency(), "8");
  Show({.drop = true});
  EXPECT_EQ(Latency(), "");
  Show({});
  EXPECT_EQ(Latency(), "5");
}

TEST_F(StreamMergeTest, TheCountsOfAnEndedProcessStayAndItsLastValueDoesNot) {
  Show({.type = MetricType::kHistogram, .bounds = {1, 4}});
  StartWith({1, -3, 5})->End();
  const auto living = StartWith({2});
  EXPECT_EQ(Latency(), "5: 2 1 1");
  EXPECT_THAT(Files(), ElementsAre("1.seg"));
  StartAgent();
  EXPECT_EQ(Latency(), "5: 2 1 1") << "the state outlives the agent";
  living->End();
  EXPECT_EQ(Latency(), "5: 2 1 1");
  Show({});
  EXPECT_EQ(Latency(), "2");
  passed_ += 301s;
  EXPECT_EQ(Latency(), "absent");
  Show({.type = MetricType::kCounter});
  EXPECT_EQ(Latency(), "8");
  StartAgent();
  EXPECT_EQ(Latency(), "8");
}

TEST_F(StreamMergeTest, SumsOfProcessesOneAfterAnotherAddUpExactly) {
  Show({.type = MetricType::kCounter});
  for (int i = 0; i < 10; ++i) {
    StartWith({0.1})->End();
    Collect();
  }
  EXPECT_EQ(Latency(), "1");
}

TEST_F(StreamMergeTest, ATimeToLiveHidesIdleSeriesUntilTheNextValue) {
  Show({.ttl = 60s});
  const auto process = StartWith({3});
  EXPECT_EQ(Latency(), "3");
  passed_ += 59s;
  EXPECT_EQ(Latency(), "3");
  passed_ += 2s;
  EXPECT_EQ(Latency(), "absent");
  source().SetIdentityLabels({{"team", "ads"}}, "7f");
  EXPECT_EQ(Latency(), "absent") << "a reload of labels does not bring it back";
  source().SetIdentityLabels({}, "");
  // The same value again.
  process->segment.Set(slot_ + metrics::segment::kStreamFirstBucket + metrics::internal::StreamBucketOf(3), 2);
  process->Put();
  EXPECT_EQ(Latency(), "3");
  Show({.type = MetricType::kCounter, .ttl = 60s});
  EXPECT_EQ(Latency(), "3") << "the sum, as it is there";
  passed_ += 61s;
  EXPECT_EQ(Latency(), "absent");
}

TEST_F(StreamMergeTest, EachSeriesExpiresByItself) {
  Show({.ttl = 60s});
  const std::map<std::string, std::string> idle = {{"my_app_delay", "absent"},
                                                   {"my_app_latency", "absent"},
                                                   {R"(my_app_latency{feat="a"})", "absent"},
                                                   {"my_app_latency@rep_1/worker", "absent"}};
  const auto first = Start();
  const auto second = Start();
  const auto other_instance = Start({.role = "worker", .replica = 1});
  // The counts differ, so that series that shared an age would reset it for each other.
  first->segment.Stream("my_app", "latency", {}, 1, {{100, 1}}, 1);
  first->segment.Stream("my_app", "delay", {}, 1, {{100, 2}}, 1);
  const uint32_t slot = second->segment.Stream("my_app", "latency", {{"feat", "a"}}, 1, {{100, 3}}, 1);
  other_instance->segment.Stream("my_app", "latency", {}, 1, {{100, 4}}, 1);
  for (Worker* process : {first.get(), second.get(), other_instance.get()}) process->Put();
  EXPECT_EQ(Shown("my_app_delay"), "1");
  passed_ += 61s;
  EXPECT_THAT(CollectFlat(), IsSupersetOf(idle));
  second->segment.Set(slot + metrics::segment::kStreamFirstBucket + 100, 5);
  second->Put();
  auto one_shown = idle;
  one_shown[R"(my_app_latency{feat="a"})"] = "1";
  EXPECT_THAT(CollectFlat(), IsSupersetOf(one_shown));
}

TEST_F(StreamMergeTest, TheTimeToLiveOfASeriesThatReturnsBeginsAnew) {
  Show({.ttl = 60s});
  const auto process = StartWith({3});
  EXPECT_EQ(Latency(), "3");
  passed_ += 61s;
  EXPECT_EQ(Latency(), "absent");
  Show({.drop = true});
  EXPECT_EQ(Latency(), "");
  Show({.ttl = 60s});
  EXPECT_EQ(Latency(), "3");
}

TEST(StreamQuantile, IsWithinItsBucketOfTheTrueOne) {
  std::mt19937_64 random(TestSeed());
  std::lognormal_distribution<double> distribution(0, 2);
  std::vector<double> values;
  StreamTotals totals;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(distribution(random));
    ++totals.buckets[metrics::internal::StreamBucketOf(values.back())];
  }
  std::sort(values.begin(), values.end());
  for (const double quantile : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const double real = values[static_cast<size_t>(quantile * 10'000)];
    EXPECT_NEAR(StreamQuantile(totals, quantile, 0) / real, 1, 0.2) << quantile;
  }
}

TEST(StreamQuantile, OfNegativeValuesZerosAndNone) {
  EXPECT_TRUE(std::isnan(StreamQuantile({}, 0.5, 0)));
  StreamTotals totals;
  totals.negatives = 2;
  totals.zeros = 2;
  totals.buckets[metrics::internal::StreamBucketOf(4)] = 4;
  EXPECT_EQ(StreamQuantile(totals, 0.1, -6), -3);
  EXPECT_EQ(StreamQuantile(totals, 0.4, -6), 0);
  EXPECT_EQ(StreamQuantile(totals, 1, -6), 4);
  StreamTotals outside;
  outside.buckets.front() = 1;
  EXPECT_EQ(StreamQuantile(outside, 0.5, 0), 0x1p-20);
  outside.buckets.back() = 9;
  EXPECT_EQ(StreamQuantile(outside, 0.9, 0), 0x1p20);
}

}  // namespace
}  // namespace persia::agent::testing

#include "web/range_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "web/history_fixture.h"

namespace persia::agent {
namespace {

using As = RangeQuery::As;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::NanSensitiveDoubleEq;
using ::testing::Pair;
using ::testing::Pointwise;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const double kNan = std::nan("");

MATCHER(SameDouble, "") {
  return std::isnan(std::get<1>(arg)) ? std::isnan(std::get<0>(arg)) : std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-9;
}

// One collection of a family each second from 0 on; `at` returns the family at a second.
std::vector<History::Entry> EachSecond(int many, const std::function<TestFamily(int)>& at) {
  std::vector<History::Entry> entries;
  for (int i = 0; i < many; ++i) {
    entries.push_back({i * 1000, MakeSnapshot({at(i)})});
  }
  return entries;
}

TestFamily Counter(std::vector<TestSeries> series) { return {"steps", MetricType::kCounter, {}, std::move(series)}; }

TEST(RangeQueryTest, AGaugeIsItsLastValue) {
  const auto entries = EachSecond(4, [](int i) { return TestFamily{"size", MetricType::kGauge, {}, {{{}, {i * 10.0}}}}; });
  const RangeResult result = Evaluate({.family = "size", .step_ms = 1000}, entries);
  ASSERT_TRUE(result.known);
  EXPECT_EQ(result.as, As::kValue);
  EXPECT_EQ(result.start_ms, 0);
  ASSERT_THAT(result.series, SizeIs(1));
  EXPECT_THAT(result.series[0].values, ElementsAre(0, 10, 20, 30));
  EXPECT_THAT(result.series[0].labels, ElementsAre(Pair("instance", "rep_0")));
}

TEST(RangeQueryTest, AbsentValuesAreGaps) {
  const auto entries = EachSecond(3, [](int i) {
    return TestFamily{"size", MetricType::kGauge, {}, {{{}, {i == 1 ? kAbsentValue : 5.0}}}};
  });
  const RangeResult result = Evaluate({.family = "size", .step_ms = 1000}, entries);
  EXPECT_THAT(result.series[0].values, Pointwise(SameDouble(), {5.0, kNan, 5.0}));
}

TEST(RangeQueryTest, NoValuesBeforeTheFirstAndLongAfterTheLastCollection) {
  const auto entries = EachSecond(3, [](int i) { return TestFamily{"size", MetricType::kGauge, {}, {{{}, {i + 1.0}}}}; });
  const RangeResult result = Evaluate({.family = "size", .start_ms = -2000, .end_ms = 7000, .step_ms = 1000}, entries);
  EXPECT_THAT(result.series[0].values, Pointwise(SameDouble(), {kNan, kNan, 1.0, 2.0, 3.0, 3.0, 3.0, kNan, kNan, kNan}))
      << "a value lasts for three collections";
}

TEST(RangeQueryTest, ACounterIsItsRateAcrossAReset) {
  // 2 a second; after four seconds another process begins at 0.
  const auto entries = EachSecond(9, [](int i) { return Counter({{{}, {i < 5 ? 100.0 + 2 * i : 2.0 * (i - 4)}}}); });
  const RangeResult result = Evaluate({.family = "steps", .step_ms = 1000}, entries);
  EXPECT_EQ(result.as, As::kRate);
  EXPECT_THAT(result.series[0].values, Pointwise(SameDouble(), {kNan, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0}));
}

TEST(RangeQueryTest, AWindowIsOfTheCollectionsBeforeIt) {
  std::vector<History::Entry> entries;
  for (const int at : {0, 100, 200, 300, 310, 320, 330, 340}) {
    const double value = at <= 300 ? at : 300 + 5 * (at - 300);  // 1 a second, then 5
    entries.push_back({at * 1000, MakeSnapshot({Counter({{{}, {value}}})})});
  }
  const RangeResult result = Evaluate({.family = "steps", .start_ms = 300'000, .end_ms = 340'000, .step_ms = 10'000}, entries);
  EXPECT_DOUBLE_EQ(result.series[0].values.front(), 1) << "older collections are further apart";
  EXPECT_DOUBLE_EQ(result.series[0].values.back(), 5);
}

TEST(RangeQueryTest, ACounterContinuesAfterAGap) {
  const auto entries = EachSecond(8, [](int i) { return Counter({{{}, {i == 3 ? kAbsentValue : 2.0 * i}}}); });
  const RangeResult result = Evaluate({.family = "steps", .step_ms = 1000}, entries);
  EXPECT_THAT(result.series[0].values, Pointwise(SameDouble(), {kNan, 2.0, 2.0, kNan, 2.0, 2.0, 2.0, 2.0}));
}

TEST(RangeQueryTest, TheLastPointIsTheEndOfTheSpan) {
  const auto entries = EachSecond(8, [](int i) { return TestFamily{"size", MetricType::kGauge, {}, {{{}, {i + 0.0}}}}; });
  const RangeResult result = Evaluate({.family = "size", .start_ms = 500, .end_ms = 7000, .step_ms = 3000}, entries);
  EXPECT_EQ(result.start_ms, 1000);
  EXPECT_THAT(result.series[0].values, ElementsAre(1, 4, 7));
}

TEST(RangeQueryTest, ALongerStepIsOneWindow) {
  const auto entries = EachSecond(11, [](int i) { return Counter({{{}, {i < 6 ? 0.0 : 10.0}}}); });
  const RangeResult result = Evaluate({.family = "steps", .step_ms = 5000}, entries);
  EXPECT_THAT(result.series[0].values, Pointwise(SameDouble(), {kNan, 0.0, 2.0}));
}

TEST(RangeQueryTest, ANewSeriesCountsFromItsFirstValue) {
  const auto entries = EachSecond(6, [](int i) {
    std::vector<TestSeries> series = {{{{"feat", "a"}}, {1.0 * i}}};
    if (i >= 3) {
      series.push_back({{{"feat", "b"}}, {1000.0 + 4 * i}});
    }
    return Counter(series);
  });
  const RangeResult result = Evaluate({.family = "steps", .step_ms = 1000}, entries);
  ASSERT_THAT(result.series, SizeIs(2));
  EXPECT_THAT(result.series[1].labels, ElementsAre(Pair("feat", "b"), Pair("instance", "rep_0")));
  EXPECT_THAT(result.series[1].values, Pointwise(SameDouble(), {kNan, kNan, kNan, kNan, 4.0, 4.0}));
}

TEST(RangeQueryTest, AnEndedSeriesHasValuesUntilItsEnd) {
  const auto entries = EachSecond(8, [](int i) {
    std::vector<TestSeries> series = {{{{"feat", "a"}}, {1.0 * i}}};
    if (i < 3) {
      series.insert(series.begin(), {{{"feat", "0"}}, {2.0 * i}});
    }
    return Counter(series);
  });
  const RangeResult result = Evaluate({.family = "steps", .step_ms = 1000}, entries);
  ASSERT_THAT(result.series, SizeIs(2));
  EXPECT_THAT(result.series[0].values, Pointwise(SameDouble(), {kNan, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}));
  EXPECT_THAT(result.series[1].values, Pointwise(SameDouble(), {kNan, 2.0, 2.0, kNan, kNan, kNan, kNan, kNan}));
}

TestFamily Latency(int i) {
  // Each second 10 in the lowest bucket, 10 in the next; sum 15 ms each.
  return {"latency", MetricType::kHistogram, {1, 2}, {{{}, {15.0 * i, 10.0 * i, 10.0 * i, 0}}}};
}

TEST(RangeQueryTest, AHistogramIsItsMeanAndTheBoundsOfItsQuantiles) {
  const RangeResult result =
      Evaluate({.family = "latency", .quantiles = {0.25, 0.75}, .step_ms = 1000}, EachSecond(3, Latency));
  ASSERT_THAT(result.series, SizeIs(3));
  EXPECT_EQ(result.series[0].quantile, std::nullopt);
  EXPECT_THAT(result.series[0].values, Pointwise(SameDouble(), {kNan, 0.75, 0.75}));
  EXPECT_EQ(result.series[1].quantile, 0.25);
  EXPECT_THAT(result.series[1].values, Pointwise(SameDouble(), {kNan, 1.0, 1.0}));
  EXPECT_THAT(result.series[2].values, Pointwise(SameDouble(), {kNan, 2.0, 2.0}));
  EXPECT_THAT(result.series[2].above, IsEmpty());
}

TEST(RangeQueryTest, AQuantileAboveTheLastBoundIsMarked) {
  const auto entries = EachSecond(4, [](int i) {
    const double slow = i < 3 ? 0 : 100;
    return TestFamily{"latency", MetricType::kHistogram, {1, 2}, {{{}, {5.0 * i + 9 * slow, 0, 10.0 * i, slow}}}};
  });
  const RangeResult result = Evaluate({.family = "latency", .quantiles = {0.5}, .step_ms = 1000}, entries);
  EXPECT_THAT(result.series[1].values, Pointwise(SameDouble(), {kNan, 2.0, 2.0, 2.0}));
  EXPECT_THAT(result.series[1].above, ElementsAre(3));
}

TEST(RangeQueryTest, AHistogramHasAMeanAndARate) {
  const auto entries = EachSecond(3, Latency);
  EXPECT_THAT(Evaluate({.family = "latency", .as = As::kMean, .step_ms = 1000}, entries).series[0].values,
              Pointwise(SameDouble(), {kNan, 0.75, 0.75}));
  EXPECT_THAT(Evaluate({.family = "latency", .as = As::kRate, .step_ms = 1000}, entries).series[0].values,
              Pointwise(SameDouble(), {kNan, 20.0, 20.0}));
}

TEST(RangeQueryTest, WithoutObservationsThereIsNeitherMeanNorQuantile) {
  const auto entries = EachSecond(3, [](int) { return Latency(1); });
  EXPECT_THAT(Evaluate({.family = "latency", .as = As::kMean, .step_ms = 1000}, entries).series[0].values,
              Pointwise(SameDouble(), {kNan, kNan, kNan}));
  EXPECT_THAT(Evaluate({.family = "latency", .quantiles = {0.5}, .step_ms = 1000}, entries).series[0].values,
              Pointwise(SameDouble(), {kNan, kNan, kNan}));
}

TEST(RangeQueryTest, ASummaryHasItsOwnQuantiles) {
  const auto entries = EachSecond(2, [](int i) {
    return TestFamily{"loss", MetricType::kSummary, {0.5, 0.9}, {{{}, {1.0 * i, 2.0 * i, 3.0 + i, 4.0 + i}}}};
  });
  const RangeResult result = Evaluate({.family = "loss", .step_ms = 1000}, entries);
  ASSERT_THAT(result.series, SizeIs(2));
  EXPECT_EQ(result.series[1].quantile, 0.9);
  EXPECT_THAT(result.series[1].values, ElementsAre(4, 5));
}

TEST(RangeQueryTest, ASummaryWithoutQuantilesIsShownByItsMean) {
  const auto entries = EachSecond(3, [](int i) {
    return TestFamily{"loss", MetricType::kSummary, {}, {{{}, {6.0 * i, 2.0 * i}}}};
  });
  const RangeResult result = Evaluate({.family = "loss", .step_ms = 1000}, entries);
  EXPECT_EQ(result.as, As::kMean);
  ASSERT_THAT(result.series, SizeIs(1));
  EXPECT_EQ(result.series[0].values.back(), 3);
}

TEST(RangeQueryTest, KeepsMatchingSeriesUpToTheLimit) {
  const auto entries = EachSecond(2, [](int) {
    return TestFamily{"size", MetricType::kGauge, {}, {{{{"feat", "a"}}, {1}}, {{{"feat", "b"}}, {2}}, {{{"feat", "c"}}, {3}}}};
  });
  EXPECT_THAT(Evaluate({.family = "size", .match = {{"feat", "b"}}}, entries).series, SizeIs(1));
  EXPECT_THAT(Evaluate({.family = "size", .match = {{"feat", "b"}, {"instance", "rep_1"}}}, entries).series, IsEmpty());
  EXPECT_THAT(Evaluate({.family = "size", .match = {{"job", "dlrm"}}}, entries).series, SizeIs(3));
  EXPECT_THAT(Evaluate({.family = "size", .match = {{"job", "other"}}}, entries).series, IsEmpty());
  const RangeResult few = Evaluate({.family = "size", .limit = 2}, entries);
  EXPECT_THAT(few.series, SizeIs(2));
  EXPECT_EQ(few.left_out, 1U);
}

TEST(RangeQueryTest, HistogramsOfOneNameWithSeveralBoundsAreAllShown) {
  std::vector<History::Entry> entries;
  for (int i = 0; i < 4; ++i) {
    const TestFamily trainers{"latency", MetricType::kHistogram, {1}, {{{{"role", "trainer"}}, {0, 10.0 * i, 0}}}};
    const TestFamily servers{"latency", MetricType::kHistogram, {2, 4}, {{{{"role", "server"}}, {0, 0, 10.0 * i, 0}}}};
    entries.push_back({i * 1000, MakeSnapshot({trainers, servers})});
  }
  const RangeResult result = Evaluate({.family = "latency", .quantiles = {0.5}, .step_ms = 1000}, entries);
  EXPECT_EQ(result.error, "");
  ASSERT_THAT(result.series, SizeIs(4));
  EXPECT_EQ(result.series[1].values.back(), 1);
  EXPECT_EQ(result.series[3].values.back(), 4);
  const RangeResult one = Evaluate({.family = "latency", .quantiles = {0.5}, .step_ms = 1000, .limit = 1}, entries);
  EXPECT_THAT(one.series, SizeIs(2));
  EXPECT_EQ(one.left_out, 1U);
}

TEST(RangeQueryTest, ALabelSetWhoseBoundsChangedIsShownOnce) {
  std::vector<History::Entry> entries;
  for (int i = 0; i < 6; ++i) {
    TestFamily narrow{"latency", MetricType::kHistogram, {1}, {{{{"role", "server"}}, {0, 10.0 * i, 0}}}};
    TestFamily wide{"latency", MetricType::kHistogram, {2, 4}, {{{{"role", "worker"}}, {0, 0, 20.0 * i, 0}}}};
    if (i < 3) {
      narrow.series.push_back({{{"role", "trainer"}}, {0, 30.0 * i, 0}});
    } else {
      wide.series.push_back({{{"role", "trainer"}}, {0, 0, 40.0 * i, 0}});
    }
    entries.push_back({i * 1000, MakeSnapshot({narrow, wide})});
  }
  const RangeResult result = Evaluate({.family = "latency", .as = As::kRate, .step_ms = 1000}, entries);
  std::vector<std::string> roles;
  for (const RangeSeries& series : result.series) roles.push_back(series.labels.back().second);
  ASSERT_THAT(roles, UnorderedElementsAre("server", "worker", "trainer"));
  EXPECT_EQ(result.left_out, 0U);
  const auto trainer = std::find(roles.begin(), roles.end(), "trainer") - roles.begin();
  EXPECT_THAT(result.series[static_cast<size_t>(trainer)].values,
              Pointwise(SameDouble(), {kNan, kNan, kNan, kNan, 40.0, 40.0}));
  EXPECT_THAT(Evaluate({.family = "latency", .as = As::kRate, .limit = 2}, entries).left_out, 1U);
}

TEST(RangeQueryTest, AFamilyWithOtherBoundsIsAnotherMetric) {
  const auto entries = EachSecond(4, [](int i) {
    TestFamily family = Latency(i);
    if (i < 2) {
      family.bounds = {1, 3};
    }
    return family;
  });
  EXPECT_THAT(Evaluate({.family = "latency", .as = As::kRate, .step_ms = 1000}, entries).series[0].values,
              Pointwise(SameDouble(), {kNan, kNan, kNan, 20.0}));
}

TEST(RangeQueryTest, UnsuitableQueriesAreErrors) {
  const auto counter = EachSecond(3, [](int i) { return Counter({{{}, {1.0 * i}}}); });
  EXPECT_FALSE(Evaluate({.family = "nothing"}, counter).known);
  EXPECT_FALSE(Evaluate({.family = "steps"}, {}).known);
  EXPECT_THAT(Evaluate({.family = "steps", .as = As::kQuantile}, counter).error, HasSubstr("neither mean nor quantiles"));
  EXPECT_THAT(Evaluate({.family = "latency", .as = As::kValue}, EachSecond(2, Latency)).error, HasSubstr("no single value"));
  EXPECT_THAT(Evaluate({.family = "steps", .start_ms = 2000, .end_ms = 1000}, counter).error, HasSubstr("before the start"));
  EXPECT_THAT(Evaluate({.family = "steps", .start_ms = 0, .end_ms = 2'000'000, .step_ms = 1000}, counter).error,
              HasSubstr("more than 2000 points"));
}

TEST(RangeQueryTest, TooManyNumbersAreRefusedBeforeTheWork) {
  std::vector<TestSeries> series;
  for (int i = 0; i < 101; ++i) {
    series.push_back({{{"n", std::to_string(i)}}, {0, 0, 0, 0}});
  }
  const auto entries = EachSecond(2, [&](int) { return TestFamily{"latency", MetricType::kHistogram, {1, 2}, series}; });
  RangeQuery query{.family = "latency", .quantiles = {0.9}, .start_ms = 0, .end_ms = 1'999'000, .step_ms = 1000, .limit = 100};
  EXPECT_EQ(Evaluate(query, entries).error, "") << "400,000";
  query.limit = 101;
  const RangeResult result = Evaluate(query, entries);
  EXPECT_THAT(result.error, HasSubstr("more than 400000 numbers"));
  EXPECT_THAT(result.series, IsEmpty());
}

TEST(QuantileBound, IsTheUpperBoundOfItsBucket) {
  const std::vector<double> bounds = {0.1, 0.5, 1};
  const std::vector<double> counts = {10, 20, 10, 10};
  EXPECT_EQ(QuantileBound(0.1, bounds, counts.data()), 0.1);
  EXPECT_EQ(QuantileBound(0.2, bounds, counts.data()), 0.1);
  EXPECT_EQ(QuantileBound(0.4, bounds, counts.data()), 0.5);
  EXPECT_EQ(QuantileBound(0.8, bounds, counts.data()), 1);
  EXPECT_EQ(QuantileBound(0.99, bounds, counts.data()), HUGE_VAL) << "above the last bound";
  EXPECT_EQ(QuantileBound(0.5, {1, 2, 4}, std::vector<double>{2, 0, 2, 0}.data()), 1) << "the end of its bucket";
  EXPECT_EQ(QuantileBound(0.1, {-1, 1}, std::vector<double>{5, 5, 0}.data()), -1);
  EXPECT_TRUE(std::isnan(QuantileBound(0.5, bounds, std::vector<double>{0, 0, 0, 0}.data())));
  EXPECT_TRUE(std::isnan(QuantileBound(0.5, {}, std::vector<double>{3}.data())));
}

}  // namespace
}  // namespace persia::agent

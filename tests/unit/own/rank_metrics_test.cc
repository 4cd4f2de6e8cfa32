#include "own/health_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

Identity Rank(int number) { return {"dlrm", {{"instance", "rep_" + std::to_string(number)}, {"role", "trainer"}}}; }

// Those that are exposed, as "family rank phase".
std::map<std::string, double> Shown(const Snapshot& snapshot) {
  std::map<std::string, double> values;
  for (const FamilyLayout& family : snapshot.layout->families) {
    for (const SeriesLayout& series : family.series) {
      const double value = snapshot.values.at(series.first_value);
      if (IsAbsent(value)) continue;
      const Identity& identity = snapshot.layout->identities.at(series.identity);
      values[family.name + " " + identity.labels[0].second + " " + std::string(series.labels.begin()->second)] = value;
    }
  }
  EXPECT_EQ(snapshot.values.size(), snapshot.layout->value_count);
  return values;
}

TEST(RankMetrics, WhatARankDoesAndTheVerdictsOnIt) {
  RankMetrics metrics;
  EXPECT_THAT(metrics.Collect({})->layout->families, IsEmpty());
  RankReport report;
  report.ranks = {{.identity = Rank(0), .seconds_per_step = {{"data", 0.25}, {"sync", 0.5}}}};
  report.present = {{Rank(0), "sync", seconds(7)}, {Rank(1), "data", seconds(8)}};
  report.stragglers = {{.verdict = {.identity = Rank(1), .phase = "data", .seconds_per_step = 0.125}, .since = {}}};
  AwaitedJudge::Verdict awaited{};
  awaited.identity = Rank(1);
  awaited.phase = "data";
  awaited.waited = seconds(7);
  report.awaited = {{awaited, {}}};
  EXPECT_THAT(
      Shown(*metrics.Collect(report)),
      ElementsAre(Pair("persia_hang rep_1 data", 7), Pair("persia_rank_in_phase_seconds rep_0 sync", 7),
                  Pair("persia_rank_in_phase_seconds rep_1 data", 8),
                  Pair("persia_rank_phase_seconds_per_step rep_0 data", 0.25),
                  Pair("persia_rank_phase_seconds_per_step rep_0 sync", 0.5), Pair("persia_straggler rep_1 data", 0.125)));
}

TEST(RankMetrics, AGaugeThatIsNan) {
  RankMetrics metrics;
  EXPECT_THAT(Shown(*metrics.Collect({}, {{{Rank(1), "my_app_loss"}, 2}})),
              ElementsAre(Pair("persia_gauge_nan_series rep_1 my_app_loss", 2)));
  EXPECT_THAT(metrics.Collect({})->layout->families, IsEmpty()) << "a rank that is gone leaves no group on a gateway";
}

TEST(RankMetrics, TheLayoutStaysUnlessThereIsSomethingNew) {
  RankMetrics metrics;
  RankReport report;
  report.present = {{Rank(0), "sync", seconds(7)}};
  static_cast<void>(metrics.Collect(report));
  report.present = {{Rank(0), "data", seconds(7)}};
  const auto both = metrics.Collect(report);
  report.present = {{Rank(0), "sync", seconds(1)}};
  const auto again = metrics.Collect(report);
  EXPECT_EQ(both->layout, again->layout);
  EXPECT_THAT(Shown(*again), ElementsAre(Pair("persia_rank_in_phase_seconds rep_0 sync", 1)));
}

TEST(RankMetrics, APhaseOfOneRankChangesTheLayoutForAll) {
  RankMetrics metrics;
  RankReport report;
  report.present = {{Rank(0), "sync", seconds(7)}, {Rank(1), "data", seconds(7)}};
  const auto first = metrics.Collect(report);
  report.present = {{Rank(0), "data", seconds(7)}, {Rank(1), "sync", seconds(7)}};
  EXPECT_EQ(metrics.Collect(report)->layout, first->layout);
  EXPECT_THAT(Shown(*first), ::testing::SizeIs(2)) << "the others have no value";
  for (int phase = 0; phase < 20; ++phase) {
    report.present = {{Rank(0), "phase_" + std::to_string(phase), seconds(7)}, {Rank(1), "data", seconds(7)}};
    static_cast<void>(metrics.Collect(report));
  }
  EXPECT_LT(metrics.Collect(report)->layout->value_count, 40U) << "ranks that name their phases by the step share none";
}

TEST(RankMetrics, ARankThatIsGoneHasNoSeries) {
  RankMetrics metrics;
  RankReport report;
  report.present = {{Rank(0), "sync", seconds(7)}, {Rank(1), "sync", seconds(7)}};
  static_cast<void>(metrics.Collect(report));
  report.present = {{Rank(1), "sync", seconds(7)}};
  const auto left = metrics.Collect(report);
  EXPECT_EQ(left->layout->value_count, 1U);
  EXPECT_EQ(left->layout->identities.size(), 1U);
  EXPECT_THAT(metrics.Collect({})->layout->families, IsEmpty());
}

}  // namespace
}  // namespace persia::agent

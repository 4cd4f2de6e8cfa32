#include "own/health_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;

Identity IdentityOf(const RankId& rank) {
  return {"dlrm", {{"instance", "rep_" + std::to_string(rank.replica)}, {"role", rank.role}}};
}

// By family, instance and bucket.
std::map<std::string, double> Values(const Snapshot& snapshot) {
  std::map<std::string, double> values;
  for (const FamilyLayout& family : snapshot.layout->families) {
    for (const auto& series : family.series) {
      const double value = snapshot.values.at(series.first_value);
      if (std::bit_cast<uint64_t>(value) == kAbsent) continue;
      std::string name = family.name;
      for (const auto& [label, text] : snapshot.layout->identities.at(series.identity).labels) name += " " + text;
      for (const auto& [label, text] : series.labels) name += " " + std::string(text);
      EXPECT_TRUE(values.emplace(name, value).second) << name;
    }
  }
  return values;
}

class GoodputMetricsTest : public ::testing::Test {
 protected:
  GoodputReport::Rank& Add(const std::string& role, int32_t replica, bool marks) {
    return report_.ranks.emplace_back(GoodputReport::Rank{.rank = {role, replica}, .marks = marks});
  }
  std::shared_ptr<const Snapshot> Collect() {
    return metrics_.Collect(
        report_, [this](const RankId& rank) { return rank == hidden_ ? std::nullopt : std::optional(IdentityOf(rank)); });
  }

  GoodputReport report_;
  RankId hidden_{"none", 0};
  GoodputMetrics metrics_{{"dlrm", {{"role", "agent"}}}};
};

TEST_F(GoodputMetricsTest, WithoutRanksThereAreNone) { EXPECT_THAT(Collect()->layout->families, IsEmpty()); }

TEST_F(GoodputMetricsTest, EachValueHasItsSeries) {
  auto& rank = Add("trainer", 1, true);
  for (size_t i = 0; i < kBuckets; ++i) rank.time[i] = seconds(i + 1);
  rank.redone_steps = 20;
  rank.restarts = 2;
  rank.repair = seconds(30);
  auto values = Values(*Collect());
  EXPECT_EQ(values.size(), 2 * kBuckets + 5);
  for (size_t i = 0; i < kBuckets; ++i) {
    const std::string bucket(Name(static_cast<Bucket>(i)));
    EXPECT_EQ(values.at("persia_rank_seconds_total rep_1 trainer " + bucket), static_cast<double>(i + 1));
    EXPECT_EQ(values.at("persia_goodput_seconds_total agent " + bucket), static_cast<double>(i + 1));
  }
  EXPECT_EQ(values.at("persia_rank_redone_steps_total rep_1 trainer"), 20);
  EXPECT_EQ(values.at("persia_rank_restarts_total rep_1 trainer"), 2);
  EXPECT_EQ(values.at("persia_rank_repair_seconds_total rep_1 trainer"), 30);
  EXPECT_EQ(values.at("persia_job_mean_time_to_repair_seconds agent"), 15);
  EXPECT_DOUBLE_EQ(values.at("persia_goodput_ratio agent"), 4.0 / 66);
}

TEST_F(GoodputMetricsTest, ARankThatIsNotExposedIsInTheTotals) {
  for (int32_t replica = 0; replica < 2; ++replica) Add("trainer", replica, true).time[0] = seconds(5);
  hidden_ = {"trainer", 1};
  const auto values = Values(*Collect());
  EXPECT_EQ(values.at("persia_goodput_seconds_total agent starting"), 10);
  EXPECT_TRUE(values.contains("persia_rank_seconds_total rep_0 trainer starting"));
  EXPECT_FALSE(values.contains("persia_rank_seconds_total rep_1 trainer starting"));
}

TEST_F(GoodputMetricsTest, ARankWithoutMarksHasFewBuckets) {
  Add("server", 0, false).time[static_cast<size_t>(Bucket::kUnmarked)] = seconds(7);
  const auto before = Collect();
  const auto values = Values(*before);
  EXPECT_EQ(values.size(), 11U);
  EXPECT_EQ(values.at("persia_rank_seconds_total rep_0 server unmarked"), 7);
  EXPECT_FALSE(values.contains("persia_goodput_ratio agent"));
  EXPECT_EQ(Collect()->layout, before->layout) << "the same ranks have the same layout";
  Add("trainer", 0, true);
  EXPECT_EQ(Values(*Collect()).size(), 4 + 3 + kBuckets + 3 + kBuckets);
}

}  // namespace
}  // namespace persia::agent

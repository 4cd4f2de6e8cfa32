#include "web/throughput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

class ThroughputTest : public ::testing::Test {
 protected:
  // A gauge of the processes in the newest collection, by rank.
  void SetOfProcesses(const std::string& name, const std::vector<double>& values, const std::string& process = "0") {
    auto snapshot = std::make_shared<Snapshot>(*history_.back().snapshot);
    auto layout = std::make_shared<Layout>(*snapshot->layout);
    FamilyLayout family{.name = name, .type = MetricType::kGauge, .help = "", .unit = "", .bounds = {}, .series = {}};
    for (size_t rank = 0; rank < values.size(); ++rank) {
      family.series.push_back({.identity = static_cast<uint32_t>(rank),
                               .first_value = layout->value_count++,
                               .labels = Labels{{"process", process}}});
    }
    layout->families.push_back(std::move(family));
    snapshot->values.insert(snapshot->values.end(), values.begin(), values.end());
    snapshot->layout = std::move(layout);
    history_.back().snapshot = std::move(snapshot);
  }
  // One collection: the counts of this counter, by rank.
  void Add(int64_t seconds, const std::vector<double>& counts) {
    auto layout = std::make_shared<Layout>();
    FamilyLayout family{.name = name_, .type = type_, .help = "", .unit = "", .bounds = {}, .series = {}};
    for (size_t rank = 0; rank < counts.size(); ++rank) {
      layout->identities.push_back({"dlrm", {{"instance", "rep_" + std::to_string(rank)}, {"role", role_}}});
      family.series.push_back({.identity = static_cast<uint32_t>(rank), .first_value = rank, .labels = {}});
    }
    layout->families.push_back(std::move(family));
    layout->value_count = counts.size();
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = std::move(layout);
    snapshot->values = counts;
    history_.push_back({seconds * 1000, std::move(snapshot)});
  }
  [[nodiscard]] std::optional<Throughput> Found() const { return ThroughputOf(history_); }

  std::string name_ = "my_app_steps_total";
  std::string role_ = "trainer";
  MetricType type_ = MetricType::kCounter;
  std::vector<History::Entry> history_;
};

TEST_F(ThroughputTest, StepsThatAreTrainedAgainAreNoProgress) {
  name_ = "persia_rank_redone_steps_total";
  Add(0, {0, 0});
  Add(30, {100, 0});
  EXPECT_FALSE(Found());
}

TEST_F(ThroughputTest, IsTheRateNowAndInTheLastTenMinutes) {
  double steps = 0;
  for (int64_t at = 0; at <= 1000; at += 10) {
    Add(at, {steps, steps});
    steps += at < 900 ? 100 : 50;
  }
  const auto found = Found();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "my_app_steps_total");
  EXPECT_DOUBLE_EQ(found->now, 10);
  EXPECT_NEAR(found->last_10m, 2 * (500.0 * 10 + 100 * 5) / 600, 0.01);
  EXPECT_FALSE(found->slowest);
}

TEST_F(ThroughputTest, ARankThatIsClearlySlowerIsNamed) {
  Add(0, {0, 0, 0, 0});
  Add(30, {300, 300, 75, 270});
  const auto found = Found();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_EQ(found->slowest->instance, "rep_2");
  EXPECT_DOUBLE_EQ(found->slowest->now, 2.5);
  EXPECT_DOUBLE_EQ(found->slowest->median, 10);
  const std::map<std::pair<std::string, std::string>, double> by_rank = {
      {{"trainer", "rep_0"}, 10}, {{"trainer", "rep_1"}, 10}, {{"trainer", "rep_2"}, 2.5}, {{"trainer", "rep_3"}, 9}};
  EXPECT_EQ(found->ranks, by_rank);
  history_.pop_back();
  Add(30, {300, 300, 241, 300});
  EXPECT_FALSE(Found()->slowest) << "a bit slower";
}

TEST_F(ThroughputTest, ARankThatDiedOrHangsIsNotTheSlowest) {
  Add(0, {0, 0, 0, 0, 0});
  Add(30, {300, 300, 75, 150, 30});
  EXPECT_EQ(Found()->slowest->instance, "rep_4");
  SetOfProcesses("persia_process_up", {1, 1, 0, 1, 1});
  SetOfProcesses("persia_process_hung", {0, 0, kAbsentValue, 0, 1});
  ASSERT_TRUE(Found()->slowest);
  EXPECT_EQ(Found()->slowest->instance, "rep_3");
  EXPECT_DOUBLE_EQ(Found()->slowest->median, 10) << "of the others";
}

TEST_F(ThroughputTest, OnlyTheMainProcessOfARankSaysWhetherItRuns) {
  Add(0, {0, 0, 0, 0});
  Add(30, {300, 300, 75, 30});
  SetOfProcesses("persia_process_up", {1, 1, 1, 0});
  SetOfProcesses("persia_process_up", {kAbsentValue, kAbsentValue, kAbsentValue, 1}, "1");
  SetOfProcesses("persia_process_hung", {0, 0, 1, 0}, "1");
  ASSERT_TRUE(Found()->slowest);
  EXPECT_EQ(Found()->slowest->instance, "rep_2") << "its data loader hangs; of rep_3, only the data loader lives";
}

TEST_F(ThroughputTest, OnlyACounterOfProgressIsTaken) {
  for (const char* name : {"steps", "batches_total", "train_tokens_total", "my_samples"}) {
    history_.clear();
    name_ = name;
    Add(0, {1});
    Add(10, {2});
    EXPECT_TRUE(Found()) << name;
  }
  for (const char* name : {"missteps_x_total", "total", "lookups_total"}) {
    history_.clear();
    name_ = name;
    Add(0, {1});
    Add(10, {2});
    EXPECT_FALSE(Found()) << name;
  }
  history_.clear();
  name_ = "steps";
  type_ = MetricType::kGauge;
  Add(0, {1});
  Add(10, {2});
  EXPECT_FALSE(Found());
  type_ = MetricType::kCounter;
  role_ = "agent";
  Add(20, {3});
  Add(30, {4});
  EXPECT_FALSE(Found());
}

TEST_F(ThroughputTest, ARankWithoutFormerValuesDoesNotCount) {
  Add(-10, {});
  Add(0, {100});
  EXPECT_FALSE(Found());
  Add(10, {200, 5000});
  EXPECT_DOUBLE_EQ(Found()->now, 10);
  Add(20, {0, 5000});
  EXPECT_DOUBLE_EQ(Found()->now, 0) << "a reset is no negative rate";
}

}  // namespace
}  // namespace persia::agent

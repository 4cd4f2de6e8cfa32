#include "web/throughput.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

constexpr char kSteps[] = "persia_progress_steps_total";
constexpr char kSamples[] = "persia_progress_samples_total";
constexpr char kPlanned[] = "persia_progress_planned_steps";
constexpr char kStep[] = "persia_phase_step";

class ProgressTest : public ::testing::Test {
 protected:
  // One collection: values by rank. Those of persia_process_* are of the ranks' main processes.
  void Add(int64_t seconds, const std::vector<std::pair<std::string, std::vector<double>>>& families) {
    auto layout = std::make_shared<Layout>();
    auto snapshot = std::make_shared<Snapshot>();
    for (size_t rank = 0; rank < 4; ++rank) {
      layout->identities.push_back({"dlrm", {{"instance", "rep_" + std::to_string(rank)}, {"role", "trainer"}}});
    }
    for (const auto& [name, values] : families) {
      const MetricType type = name.ends_with("_total") ? MetricType::kCounter : MetricType::kGauge;
      const Labels labels = name.starts_with("persia_process") ? Labels{{"process", "0"}} : Labels{};
      FamilyLayout family{.name = name, .type = type, .help = "", .unit = "", .bounds = {}, .series = {}};
      for (size_t rank = 0; rank < values.size(); ++rank) {
        family.series.push_back(
            {.identity = static_cast<uint32_t>(rank), .first_value = layout->value_count++, .labels = labels});
        snapshot->values.push_back(values[rank]);
      }
      layout->families.push_back(std::move(family));
    }
    snapshot->layout = std::move(layout);
    history_.push_back({seconds * 1000, std::move(snapshot)});
  }
  [[nodiscard]] Progress Found(bool is_over = false) const {
    const auto found = ProgressOf(history_, is_over);
    EXPECT_TRUE(found);
    return found.value_or(Progress{});
  }

  std::vector<History::Entry> history_;
};

TEST_F(ProgressTest, NothingIsKnownOfAJobThatCountsNothing) {
  EXPECT_FALSE(ProgressOf(history_));
  Add(0, {{"my_app_steps_total", {1}}});
  Add(10, {{"my_app_steps_total", {2}}});
  EXPECT_FALSE(ProgressOf(history_));
}

TEST_F(ProgressTest, StepsAreThoseOfTheMedianRankAndSamplesThoseOfAll) {
  Add(0, {{kSteps, {0, 0, 0}}, {kSamples, {0, 0, 0}}});
  Add(30, {{kSteps, {300, 60, 270}}, {kSamples, {3000, 600, 2700}}});
  const Progress progress = Found();
  EXPECT_EQ(progress.steps_per_second, 9);
  EXPECT_EQ(progress.samples_per_second, 210);
  EXPECT_EQ(progress.tokens_per_second, std::nullopt);
  EXPECT_EQ(progress.planned_steps, std::nullopt);
  EXPECT_EQ(progress.remaining_seconds, std::nullopt);
}

TEST_F(ProgressTest, TheJobEndsWithTheRankThatEndsLast) {
  Add(0, {{kSteps, {1000, 1000}}});
  Add(30, {{kSteps, {1300, 1060}}, {kStep, {500, 400}}, {kPlanned, {1000, 1000}}});
  const Progress progress = Found();
  EXPECT_EQ(progress.step, 400) << "its number, not the count, which has steps of an earlier process";
  EXPECT_EQ(progress.planned_steps, 1000);
  EXPECT_EQ(progress.remaining_seconds, 300);
}

TEST_F(ProgressTest, WithoutAStepNowThereIsNoEnd) {
  Add(0, {{kSteps, {100, 100}}, {kStep, {100, 100}}, {kPlanned, {1000, 1000}}});
  Add(30, {{kSteps, {400, 100}}, {kStep, {400, 100}}, {kPlanned, {1000, 1000}}});
  const Progress progress = Found();
  EXPECT_EQ(progress.step, 100);
  EXPECT_EQ(progress.remaining_seconds, std::nullopt);
}

TEST_F(ProgressTest, ARankThatHasEndedOrIsDoneDoesNotHoldTheJob) {
  Add(0, {{kSteps, {100, 100, 1000}}});
  Add(30, {{kSteps, {400, 100, 1000}},
           {kStep, {400, 100, 1000}},
           {kPlanned, {1000, 1000, 1000}},
           {"persia_process_up", {1, 0, 1}}});
  const Progress progress = Found();
  EXPECT_EQ(progress.remaining_seconds, 60);
  EXPECT_EQ(progress.step, 400);
  EXPECT_EQ(progress.steps_per_second, 10) << "the higher of two, without that of the rank that ended";
}

TEST_F(ProgressTest, OfAJobThatIsOverTheLastStepIsKnown) {
  Add(0, {{kSteps, {100, 100}}});
  Add(30, {{kSteps, {160, 150}}, {kStep, {160, 150}}, {kPlanned, {1000, 1000}}, {"persia_process_up", {0, 0}}});
  const Progress progress = Found();
  EXPECT_EQ(progress.step, 160);
  EXPECT_EQ(progress.planned_steps, 1000);
  EXPECT_EQ(progress.remaining_seconds, std::nullopt);
  EXPECT_EQ(progress.steps_per_second, std::nullopt) << "not over: all are replaced, for example";
}

TEST_F(ProgressTest, TheSpeedOfAJobThatIsOverIsThatOfTheJobToo) {
  Add(0, {{kSteps, {0, 0}}, {kSamples, {0, 0}}});
  Add(100, {{kSteps, {2000, 2100}}, {kSamples, {4000, 4200}}});
  Add(200, {{kSteps, {4000, 4100}},
            {kSamples, {8000, 8200}},
            {kStep, {4000, 4100}},
            {kPlanned, {9000, 9000}},
            {"persia_process_up", {0, 0}}});
  const Progress progress = Found(true);
  EXPECT_EQ(progress.steps_per_second, 20.5) << "of a rank, over its last ten minutes, not of both together";
  EXPECT_EQ(progress.samples_per_second, 81);
  EXPECT_EQ(progress.remaining_seconds, std::nullopt);
}

TEST_F(ProgressTest, AJobThatStandsStillDoesNothingPerSecond) {
  Add(0, {{kSteps, {100, 100}}});
  Add(30, {{kSteps, {160, 160}}, {kStep, {160, 160}}, {kPlanned, {1000, 1000}}});
  std::optional<Progress> progress = Found();
  std::optional<Throughput> throughput =
      Throughput{.name = kSteps, .now = 4, .last_10m = 4, .ranks = {{{"trainer", "rep_0"}, 2}}};
  EXPECT_TRUE(progress->remaining_seconds);
  StandStill(progress, throughput);
  EXPECT_EQ(progress->steps_per_second, 0);
  EXPECT_EQ(progress->samples_per_second, std::nullopt) << "it counts none";
  EXPECT_EQ(progress->remaining_seconds, std::nullopt);
  EXPECT_EQ(progress->step, 160);
  EXPECT_EQ(throughput->now, 0);
  EXPECT_EQ(throughput->last_10m, 4);
  EXPECT_EQ(throughput->ranks.begin()->second, 0);
}

TEST_F(ProgressTest, TheLastStepIsTheEnd) {
  Add(0, {{kSteps, {900}}});
  Add(30, {{kSteps, {1000}}, {kStep, {1000}}, {kPlanned, {1000}}});
  EXPECT_EQ(Found().remaining_seconds, 0);
  Add(60, {{kSteps, {1000}}, {kStep, {1001}}, {kPlanned, {1000}}});
  EXPECT_EQ(Found().remaining_seconds, 0);
}

TEST_F(ProgressTest, WithoutATotalTheStepIsThatOfTheRankBehindTheOthers) {
  Add(0, {{kStep, {12, 10, 11}}});
  EXPECT_EQ(Found().step, 10);
}

}  // namespace
}  // namespace persia::agent

#include "health/not_finite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "captured_log.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The gauge my_app_loss of ranks that number their steps.
class NotFiniteTest : public ::testing::Test {
 protected:
  static Identity IdentityOf(size_t rank) {
    return {"dlrm", {{"instance", "rep_" + std::to_string(rank)}, {"role", "trainer"}, {"team", "vision"}}};
  }
  // A collection with these values, one for each rank.
  void Look(const std::vector<double>& values, const std::string& group = "my_app", MetricType type = MetricType::kGauge) {
    auto layout = std::make_shared<Layout>();
    FamilyLayout& family = layout->families.emplace_back();
    family.name = "my_app_loss";
    family.type = type;
    family.group = group;
    Snapshot snapshot;
    for (size_t rank = 0; rank < values.size(); ++rank) {
      layout->identities.push_back(IdentityOf(rank));
      family.series.push_back({.identity = static_cast<uint32_t>(rank), .first_value = rank, .labels = {}});
      snapshot.values.push_back(values[rank]);
    }
    snapshot.layout = std::move(layout);
    now_ += seconds(1);
    step_ += 10;
    std::vector<Process> processes;
    for (size_t rank = 0; rank < values.size(); ++rank) {
      Process& process = processes.emplace_back();
      process.identity = {"dlrm", {{"instance", "rep_" + std::to_string(rank)}, {"role", "trainer"}}};
      process.step = step_;
    }
    judge_.Look(snapshot, processes, now_);
    for (const JobEvent& event : judge_.TakeEvents()) events_.push_back(event.name);
  }
  [[nodiscard]] const std::vector<NotFiniteValue>& Values() const { return judge_.report()->values; }

  CapturedLog log_;
  NotFiniteJudge judge_;
  NotFiniteJudge::TimePoint now_{seconds(1000)};
  double step_ = 0;
  std::vector<std::string> events_;
};

TEST_F(NotFiniteTest, AValueThatBecomesNanIsToldOnceWithItsRankAndStep) {
  Look({0.5, 0.5});
  EXPECT_THAT(Values(), IsEmpty());
  Look({0.5, kNan});
  Look({0.5, kNan});
  ASSERT_THAT(Values(), SizeIs(1));
  EXPECT_EQ(Values()[0].value, "NaN");
  EXPECT_EQ(Values()[0].since, NotFiniteJudge::TimePoint(seconds(1002))) << "the first collection with it";
  EXPECT_EQ(Values()[0].step, 20);
  EXPECT_THAT(events_, ElementsAre("value_not_finite"));
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("my_app_loss is NaN on trainer rep_1, since step 20")));
}

TEST_F(NotFiniteTest, SeriesThatAreNanAreCountedByRankAndGauge) {
  Look({0.5, kNan, kInfinity});
  EXPECT_THAT(judge_.nan_counts(), ElementsAre(Pair(Pair(IdentityOf(1), "my_app_loss"), 1)));
  Look({0.5, 0.5, kInfinity});
  EXPECT_THAT(judge_.nan_counts(), IsEmpty());
}

TEST_F(NotFiniteTest, OfManyRanksThereIsOneEvent) {
  Look({kNan, kNan, -kInfinity});
  Look({kNan, kNan, kInfinity});
  EXPECT_THAT(Values(), SizeIs(3));
  EXPECT_EQ(Values()[2].value, "+Inf") << "the newest value";
  EXPECT_THAT(events_, ElementsAre("value_not_finite"));
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("my_app_loss is NaN on trainer rep_0 and 2 others, since step 10")));
}

TEST_F(NotFiniteTest, ANumberAgainIsToldAndADisappearedSeriesIsNot) {
  Look({0.5, kNan});
  Look({0.5, 0.5});
  EXPECT_THAT(Values(), IsEmpty());
  EXPECT_THAT(events_, ElementsAre("value_not_finite", "value_finite"));
  Look({0.5, kNan});
  Look({0.5, kAbsentValue});
  EXPECT_THAT(Values(), IsEmpty());
  Look({0.5, kNan});
  Look({0.5});
  EXPECT_THAT(Values(), IsEmpty());
  EXPECT_THAT(events_, ElementsAre("value_not_finite", "value_finite", "value_not_finite", "value_not_finite"));
}

TEST_F(NotFiniteTest, OnlyGaugesOfProgramsAreJudged) {
  Look({kNan}, "");
  Look({kNan}, "my_app", MetricType::kCounter);
  Look({kAbsentValue});
  EXPECT_THAT(Values(), IsEmpty());
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(NotFiniteTest, BeyondTheMostTheRestIsCounted) {
  Look(std::vector<double>(NotFiniteReport::kMost + 7, kNan));
  EXPECT_THAT(Values(), SizeIs(NotFiniteReport::kMost));
  ASSERT_THAT(judge_.report()->families, SizeIs(1));
  EXPECT_EQ(judge_.report()->families[0].others, NotFiniteReport::kMost + 6);
}

}  // namespace
}  // namespace persia::agent

#include "model/combine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const Identity kTrainer{"job", {{"instance", "rep_0"}, {"role", "trainer"}}};
const Identity kServer{"job", {{"instance", "rep_0"}, {"role", "server"}}};

// Puts snapshots together, a series at a time; all values of a series count up from `value`.
class Part {
 public:
  explicit Part(Identity identity = kTrainer) { layout_.identities.push_back(std::move(identity)); }

  Part& Family(std::string name, MetricType type, std::vector<double> bounds = {}, std::string help = "") {
    layout_.families.push_back({.name = std::move(name),
                                .type = type,
                                .help = std::move(help),
                                .unit = "",
                                .bounds = std::move(bounds),
                                .series = {}});
    return *this;
  }
  Part& Series(double value, Labels labels = {}) {
    FamilyLayout& family = layout_.families.back();
    family.series.push_back({.identity = static_cast<uint32_t>(layout_.identities.size() - 1),
                             .first_value = layout_.value_count,
                             .labels = std::move(labels)});
    for (size_t i = 0; i < family.ValuesPerSeries(); ++i) values_.push_back(value + static_cast<double>(i));
    layout_.value_count = values_.size();
    return *this;
  }
  std::shared_ptr<const Snapshot> Done(int collected_at = 0) const {
    return With(std::make_shared<const Layout>(layout_), values_, collected_at);
  }
  static std::shared_ptr<const Snapshot> With(std::shared_ptr<const Layout> layout, std::vector<double> values,
                                              int collected_at = 0) {
    return std::make_shared<const Snapshot>(Snapshot{
        std::move(layout), std::move(values), std::chrono::system_clock::time_point(std::chrono::seconds(collected_at))});
  }

 private:
  Layout layout_;
  std::vector<double> values_;
};

class CombineTest : public ::testing::Test {
 protected:
  using Parts = std::vector<std::shared_ptr<const Snapshot>>;

  std::shared_ptr<const Snapshot> Combine(const Parts& parts) { return combiner_.Combine(parts); }

  static std::vector<std::string> Names(const Snapshot& snapshot) {
    std::vector<std::string> names;
    for (const auto& family : snapshot.layout->families) names.push_back(family.name);
    return names;
  }
  // The first value of each series of a family, with its labels.
  static std::vector<std::pair<Labels, double>> SeriesOf(const Snapshot& snapshot, const std::string& name) {
    std::vector<std::pair<Labels, double>> series;
    for (const auto& family : snapshot.layout->families) {
      if (family.name != name) continue;
      for (const auto& one : family.series) series.emplace_back(one.labels.ToList(), snapshot.values.at(one.first_value));
    }
    return series;
  }

  std::vector<std::string> reports_;
  SnapshotCombiner combiner_{[this](const std::string& message) { reports_.push_back(message); }};
};

TEST_F(CombineTest, NothingMakesAnEmptySnapshot) {
  const auto combined = Combine({nullptr});
  EXPECT_THAT(combined->layout->families, IsEmpty());
  EXPECT_THAT(combined->values, IsEmpty());
}

TEST_F(CombineTest, FamiliesAreSortedByName) {
  const auto combined =
      Combine({Part().Family("m", MetricType::kGauge).Series(1).Family("z", MetricType::kGauge).Series(2).Done(), nullptr,
               Part().Family("a", MetricType::kGauge).Series(3).Done()});
  EXPECT_THAT(Names(*combined), ElementsAre("a", "m", "z"));
  EXPECT_THAT(SeriesOf(*combined, "a"), ElementsAre(Pair(Labels{}, 3)));
  EXPECT_THAT(SeriesOf(*combined, "z"), ElementsAre(Pair(Labels{}, 2)));
}

TEST_F(CombineTest, FamiliesOfOneNameAreMerged) {
  const auto combined = Combine({Part().Family("x", MetricType::kCounter, {}, "").Series(1, {{"a", "1"}}).Done(),
                                 Part().Family("x", MetricType::kCounter, {}, "Helps.").Series(2, {{"a", "2"}}).Done()});
  EXPECT_THAT(Names(*combined), ElementsAre("x"));
  EXPECT_THAT(SeriesOf(*combined, "x"), ElementsAre(Pair(Labels{{"a", "1"}}, 1), Pair(Labels{{"a", "2"}}, 2)));
  EXPECT_EQ(combined->layout->families.front().help, "Helps.");
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(CombineTest, IdentitiesAreKeptOnce) {
  const auto combined = Combine({Part(kTrainer).Family("a", MetricType::kGauge).Series(1).Done(),
                                 Part(kServer).Family("b", MetricType::kGauge).Series(2).Done(),
                                 Part(kTrainer).Family("c", MetricType::kGauge).Series(3).Done()});
  const Layout& layout = *combined->layout;
  EXPECT_THAT(layout.identities, ElementsAre(kTrainer, kServer));
  EXPECT_EQ(layout.families[0].series[0].identity, 0U);
  EXPECT_EQ(layout.families[1].series[0].identity, 1U);
  EXPECT_EQ(layout.families[2].series[0].identity, 0U);
}

TEST_F(CombineTest, ManyValuedSeriesKeepTheirValuesTogether) {
  const auto combined =
      Combine({Part().Family("g", MetricType::kGauge).Series(7).Done(),
               Part().Family("h", MetricType::kHistogram, {1, 2}).Series(10).Series(20, {{"a", "b"}}).Done()});
  const SeriesLayout& second = combined->layout->families[1].series[1];
  EXPECT_THAT(
      std::vector<double>(combined->values.begin() + static_cast<ptrdiff_t>(second.first_value), combined->values.end()),
      ElementsAre(20, 21, 22, 23));
  EXPECT_EQ(combined->layout->value_count, combined->values.size());
}

TEST_F(CombineTest, AnotherTypeIsLeftOutAndReported) {
  const auto combined =
      Combine({Part().Family("x", MetricType::kCounter).Series(1).Done(),
               Part().Family("x", MetricType::kGauge).Series(2).Family("y", MetricType::kGauge).Series(3).Done()});
  EXPECT_THAT(SeriesOf(*combined, "x"), ElementsAre(Pair(Labels{}, 1)));
  EXPECT_THAT(SeriesOf(*combined, "y"), ElementsAre(Pair(Labels{}, 3)));
  EXPECT_THAT(reports_,
              ElementsAre(HasSubstr("\"x\" is left out, in part or whole: a gauge where another source has a counter")));
}

TEST_F(CombineTest, OtherBoundsAreLeftOutAndReported) {
  const auto combined = Combine({Part().Family("h", MetricType::kHistogram, {1, 2}).Series(1).Done(),
                                 Part(kServer).Family("h", MetricType::kHistogram, {1, 3}).Series(2).Done()});
  EXPECT_THAT(SeriesOf(*combined, "h"), SizeIs(1));
  EXPECT_THAT(reports_, ElementsAre(HasSubstr("other bounds")));
}

TEST_F(CombineTest, ALaterSourcesDuplicateIsLeftOut) {
  const auto combined = Combine({Part().Family("x", MetricType::kGauge).Series(1).Done(),
                                 Part().Family("x", MetricType::kGauge).Series(2).Series(3, {{"a", "b"}}).Done()});
  EXPECT_THAT(SeriesOf(*combined, "x"), ElementsAre(Pair(Labels{}, 1), Pair(Labels{{"a", "b"}}, 3)));
  EXPECT_THAT(reports_, ElementsAre(HasSubstr("the same series twice")));
}

TEST_F(CombineTest, OneSeriesOfTwoIdentitiesIsNoDuplicate) {
  const auto combined = Combine({Part(kTrainer).Family("x", MetricType::kGauge).Series(1).Done(),
                                 Part(kServer).Family("x", MetricType::kGauge).Series(2).Done()});
  EXPECT_THAT(SeriesOf(*combined, "x"), SizeIs(2));
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(CombineTest, ANameThatMeetsAHistogramsLinesIsLeftOut) {
  const auto combined = Combine({Part()
                                     .Family("x", MetricType::kHistogram, {1})
                                     .Series(1)
                                     .Family("x_count", MetricType::kHistogram, {1})
                                     .Series(1)
                                     .Family("x_count_sum", MetricType::kCounter)
                                     .Series(1)
                                     .Family("y", MetricType::kGauge)
                                     .Series(1)
                                     .Family("y_count", MetricType::kCounter)
                                     .Series(1)
                                     .Done(),
                                 Part().Family("x_bucket", MetricType::kGauge).Series(1).Done()});
  EXPECT_THAT(Names(*combined), ElementsAre("x", "x_count_sum", "y", "y_count"));
  EXPECT_THAT(reports_, ElementsAre(HasSubstr("\"x_bucket\""), HasSubstr("a line of the histogram \"x\"")));
}

TEST_F(CombineTest, ALabelOfTheIdentityIsRenamed) {
  const auto combined =
      Combine({Part().Family("x", MetricType::kGauge).Series(1, {{"job", "mine"}, {"role", "boss"}, {"zone", "a"}}).Done()});
  EXPECT_THAT(SeriesOf(*combined, "x"),
              ElementsAre(Pair(Labels{{"exported_job", "mine"}, {"exported_role", "boss"}, {"zone", "a"}}, 1)));
}

TEST_F(CombineTest, ARenamedLabelTakesNoOthersName) {
  const auto combined =
      Combine({Part().Family("x", MetricType::kGauge).Series(1, {{"exported_job", "theirs"}, {"job", "mine"}}).Done()});
  EXPECT_THAT(SeriesOf(*combined, "x"),
              ElementsAre(Pair(Labels{{"exported_exported_job", "mine"}, {"exported_job", "theirs"}}, 1)));
}

TEST_F(CombineTest, TheFormatsOwnLabelIsRenamedOnlyWhereItIsNeeded) {
  const Labels labels{{"le", "1"}, {"quantile", "2"}};
  const auto combined = Combine({Part()
                                     .Family("g", MetricType::kGauge)
                                     .Series(1, labels)
                                     .Family("h", MetricType::kHistogram, {1})
                                     .Series(2, labels)
                                     .Family("s", MetricType::kSummary, {0.5})
                                     .Series(3, labels)
                                     .Done()});
  EXPECT_THAT(SeriesOf(*combined, "g"), ElementsAre(Pair(labels, 1)));
  EXPECT_THAT(SeriesOf(*combined, "h"), ElementsAre(Pair(Labels{{"exported_le", "1"}, {"quantile", "2"}}, 2)));
  EXPECT_THAT(SeriesOf(*combined, "s"), ElementsAre(Pair(Labels{{"exported_quantile", "2"}, {"le", "1"}}, 3)));
}

TEST_F(CombineTest, AnEmptyLabelIsNoLabel) {
  const auto combined = Combine({Part().Family("x", MetricType::kGauge).Series(1).Series(2, {{"a", ""}}).Done()});
  EXPECT_THAT(SeriesOf(*combined, "x"), ElementsAre(Pair(Labels{}, 1)));
  EXPECT_THAT(reports_, ElementsAre(HasSubstr("the same series twice")));
}

TEST_F(CombineTest, TheLayoutIsTheSameWhileAllLayoutsAre) {
  const auto a = Part().Family("a", MetricType::kGauge).Series(1).Done(100);
  const auto b = Part().Family("b", MetricType::kGauge).Series(2).Done(50);
  const auto first = Combine({a, b});
  const auto second = Combine({Part::With(a->layout, {10}, 200), Part::With(b->layout, {20}, 150)});
  EXPECT_EQ(first->layout, second->layout);
  EXPECT_THAT(SeriesOf(*second, "a"), ElementsAre(Pair(Labels{}, 10)));
  EXPECT_THAT(SeriesOf(*second, "b"), ElementsAre(Pair(Labels{}, 20)));
  EXPECT_EQ(second->collected_at.time_since_epoch(), std::chrono::seconds(200));
}

TEST_F(CombineTest, AChangedLayoutIsSeen) {
  const auto a = Part().Family("a", MetricType::kGauge).Series(1).Done();
  const auto b = Part().Family("b", MetricType::kGauge).Series(2).Done();
  Combine({a, b});
  EXPECT_THAT(Names(*Combine({a, Part().Family("c", MetricType::kGauge).Series(3).Done()})), ElementsAre("a", "c"));
  EXPECT_THAT(Names(*Combine({a})), ElementsAre("a"));
  EXPECT_THAT(Names(*Combine({a, b})), ElementsAre("a", "b"));
}

TEST_F(CombineTest, WhatStaysLeftOutIsReportedOnce) {
  const auto counter = Part().Family("x", MetricType::kCounter).Series(1).Done();
  const auto clash = [] { return Part().Family("x", MetricType::kGauge).Series(2).Done(); };
  Combine({counter, clash()});
  Combine({counter, clash()});
  EXPECT_THAT(reports_, SizeIs(1));
  Combine({counter});
  Combine({counter, clash()});
  EXPECT_THAT(reports_, SizeIs(2));
}

}  // namespace
}  // namespace persia::agent

#include "model/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr Rows::Family kUp{"persia_up", MetricType::kGauge, "1 if it is there."};
constexpr Rows::Family kSteps{"persia_steps_total", MetricType::kCounter, "Steps."};

Identity Rank(int number) { return {"dlrm", {{"instance", "rep_" + std::to_string(number)}}}; }

// "family instance label values": value.
std::map<std::string, double> Shown(const Snapshot& snapshot) {
  std::map<std::string, double> values;
  for (const FamilyLayout& family : snapshot.layout->families) {
    for (const SeriesLayout& series : family.series) {
      std::string key = family.name + " " + snapshot.layout->identities.at(series.identity).labels[0].second;
      for (const auto& [name, value] : series.labels) key.append(" ").append(value);
      values[key] = snapshot.values.at(series.first_value);
    }
  }
  EXPECT_EQ(snapshot.values.size(), snapshot.layout->value_count);
  return values;
}

TEST(Rows, EachRowIsASeries) {
  Rows rows;
  rows.On(Rank(0));
  rows.Add(kUp, 1.0);
  rows.Add(kSteps, 7.0, {{"phase", "data"}});
  rows.On(Rank(1));
  rows.Add(kSteps, 8.0, Labels{{"phase", "sync"}});
  rows.Add(kUp, std::optional<double>());
  const auto snapshot = rows.Take();
  const auto& families = snapshot->layout->families;
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[0].name, "persia_steps_total");
  EXPECT_EQ(families[0].type, MetricType::kCounter);
  EXPECT_EQ(families[0].help, "Steps.");
  EXPECT_TRUE(IsAbsent(snapshot->values.back()));
  auto shown = Shown(*snapshot);
  EXPECT_EQ(shown.erase("persia_up rep_1"), 1U);
  EXPECT_THAT(shown, ElementsAre(Pair("persia_steps_total rep_0 data", 7), Pair("persia_steps_total rep_1 sync", 8),
                                 Pair("persia_up rep_0", 1)));
}

TEST(Rows, TheSameKeysHaveTheSameLayoutObject) {
  Rows rows;
  const auto add = [&](double by, const std::string& phase, int rank) {
    rows.On(Rank(0));
    rows.Add(kUp, by);
    rows.Add(kSteps, by, {{"phase", phase}});
    rows.On(Rank(rank));
    rows.Add(kUp, by + 1);
    return rows.Take();
  };
  const auto first = add(1, "data", 1);
  const auto second = add(2, "data", 1);
  EXPECT_EQ(second->layout, first->layout);
  EXPECT_THAT(Shown(*second),
              ElementsAre(Pair("persia_steps_total rep_0 data", 2), Pair("persia_up rep_0", 2), Pair("persia_up rep_1", 3)));
  const auto other_label = add(2, "sync", 1);
  EXPECT_NE(other_label->layout, first->layout);
  EXPECT_THAT(Shown(*other_label),
              ElementsAre(Pair("persia_steps_total rep_0 sync", 2), Pair("persia_up rep_0", 2), Pair("persia_up rep_1", 3)));
  const auto other_rank = add(2, "sync", 2);
  EXPECT_THAT(Shown(*other_rank),
              ElementsAre(Pair("persia_steps_total rep_0 sync", 2), Pair("persia_up rep_0", 2), Pair("persia_up rep_2", 3)));
  EXPECT_EQ(other_rank->layout->identities.size(), 2U) << "an identity without a row leaves no group on a gateway";
  EXPECT_THAT(Shown(*first),
              ElementsAre(Pair("persia_steps_total rep_0 data", 1), Pair("persia_up rep_0", 1), Pair("persia_up rep_1", 2)));
}

TEST(Rows, FewerAndMoreRows) {
  Rows rows;
  const auto add = [&](int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      rows.On(Rank(rank));
      rows.Add(kUp, static_cast<double>(rank));
    }
    return rows.Take();
  };
  EXPECT_THAT(add(0)->layout->families, IsEmpty());
  EXPECT_THAT(Shown(*add(2)), ElementsAre(Pair("persia_up rep_0", 0), Pair("persia_up rep_1", 1)));
  EXPECT_THAT(Shown(*add(1)), ElementsAre(Pair("persia_up rep_0", 0)));
  EXPECT_THAT(Shown(*add(3)), ElementsAre(Pair("persia_up rep_0", 0), Pair("persia_up rep_1", 1), Pair("persia_up rep_2", 2)));
  EXPECT_THAT(add(0)->layout->identities, IsEmpty());
}

}  // namespace
}  // namespace persia::agent

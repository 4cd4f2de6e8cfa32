#include "model/series_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(SeriesLabels, ReturnsTheLabelsInOrder) {
  const Labels list = {{"feat", "user_id"}, {"long", std::string(5000, 'x')}, {"none", ""}, {"nul", std::string("a\0b", 3)}};
  const SeriesLabels labels = list;
  EXPECT_EQ(labels.ToList(), list);
  EXPECT_EQ(labels.size(), 4U);
  EXPECT_FALSE(labels.empty());
  EXPECT_THAT(SeriesLabels(Labels{{"feat", "a"}, {"table", "b"}}), ElementsAre(Pair("feat", "a"), Pair("table", "b")));
}

TEST(SeriesLabels, WithoutLabelsIsEmpty) {
  EXPECT_THAT(SeriesLabels(), IsEmpty());
  EXPECT_THAT(SeriesLabels(Labels()), IsEmpty());
  EXPECT_EQ(SeriesLabels(), SeriesLabels(Labels()));
  EXPECT_EQ(SeriesLabels().bytes(), 0U);
  EXPECT_THAT(SeriesLabels().ToList(), IsEmpty());
}

TEST(SeriesLabels, AreEqualIfTheirTextsAre) {
  const SeriesLabels a = Labels{{"feat", "a"}};
  const SeriesLabels copy = a;
  EXPECT_EQ(copy, a);
  EXPECT_EQ(copy.begin()->first.data(), a.begin()->first.data()) << "shared";
  EXPECT_EQ(a, SeriesLabels(Labels{{"feat", "a"}}));
  EXPECT_NE(a, SeriesLabels());
  EXPECT_NE(SeriesLabels(), a);
  EXPECT_NE(a, SeriesLabels(Labels{{"feat", "b"}}));
  EXPECT_NE(a, SeriesLabels(Labels{{"feat", "aa"}}));
  EXPECT_NE(SeriesLabels(Labels{{"fe", "ata"}}), SeriesLabels(Labels{{"feat", "a"}})) << "the same letters";
}

}  // namespace
}  // namespace persia::agent

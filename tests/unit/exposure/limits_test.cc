// Limits of a segment: its records, and the number of names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "merge/merge_test.h"

namespace persia::agent::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST_F(MergeTest, ARecordThatExceedsALimitIsNamedOnce) {
  Process hostile(*this);
  Labels labels;
  for (int i = 10; i < 43; ++i) {
    labels.emplace_back("l" + std::to_string(i), "v");
  }
  hostile.segment.Counter("a", "good", {}, 1);
  hostile.segment.Counter("a", "bad", labels, 2);
  EXPECT_THAT(Merged({&hostile}), ElementsAre(Pair("a_good", "1")));
  EXPECT_EQ(source().stats().records_skipped, 1U);
  EXPECT_THAT(Diagnosed(),
              ElementsAre(AllOf(HasSubstr("limit: segment "),
                                HasSubstr(R"(a series of metric "a/bad" is left out: it has 33 labels; the limit is 32)"))));
  EXPECT_THAT(Merged({&hostile}), ElementsAre(Pair("a_good", "1")));
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(MergeTest, NamesBeyondTheirLimitAreLeftOutTheLatestFirst) {
  SegmentSourceOptions options;
  options.limits.families = 3;
  UseOptions(std::move(options));
  Process first(*this);
  Process second(*this);
  for (const char* name : {"d", "c", "without_series"}) {
    first.segment.Family(segment::Kind::kCounter, "", name);
  }
  first.segment.Series(0, {{"l", "1"}});
  first.segment.Series(0, {{"l", "2"}});
  first.segment.Series(1);
  second.segment.Counter("", "b", {}, 1);
  second.segment.Counter("", "a", {{"l", "1"}}, 1);
  second.segment.Counter("", "c", {}, 4);
  EXPECT_THAT(Merged({&first, &second}),
              ElementsAre(Pair("b", "1"), Pair("c", "4"), Pair("d{l=\"1\"}", "0"), Pair("d{l=\"2\"}", "0")));
  EXPECT_EQ(source().stats().left_out.family_limit, 1U);
  EXPECT_THAT(Diagnosed(),
              ElementsAre(HasSubstr("series of a and others are left out: there are more than 3 names of metrics")));
}

}  // namespace
}  // namespace persia::agent::testing

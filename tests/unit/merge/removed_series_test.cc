// Which series are exposed after processes have removed them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "merge/merge_test.h"

namespace persia::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class RemovedSeriesTest : public MergeTest {
 protected:
  Process a_{*this};
  Process b_{*this};
};

TEST_F(RemovedSeriesTest, ASeriesThatItsOnlyProcessRemovedIsNotExposed) {
  const double bounds[] = {1};
  const uint64_t buckets[] = {1, 2};
  const uint32_t slots[] = {a_.segment.Counter("a", "c", {}, 1), a_.segment.Gauge("a", "g", {}, 2),
                            a_.segment.Histogram("a", "h", {}, bounds, 3, buckets), a_.segment.Stream("a", "s", {}, 4)};
  const Flat all = Merged({&a_});
  EXPECT_EQ(all.size(), 4U);
  for (const uint32_t slot : slots) {
    a_.segment.SetRemoved(slot);
  }
  EXPECT_THAT(Merged({&a_}), IsEmpty());
  for (const uint32_t slot : slots) {
    a_.segment.SetRemoved(slot, false);
  }
  EXPECT_EQ(Merged({&a_}), all);
}

TEST_F(RemovedSeriesTest, OtherSeriesOfTheFamilyStay) {
  const uint32_t family = a_.segment.Family(segment::Kind::kCounter, "a", "c");
  const uint32_t first = a_.segment.Series(family, {{"i", "1"}});
  a_.segment.Set(a_.segment.Series(family, {{"i", "2"}}), 2);
  a_.segment.SetRemoved(first);
  EXPECT_THAT(Merged({&a_}), ElementsAre(Pair(R"(a_c{i="2"})", "2")));
}

TEST_F(RemovedSeriesTest, ACounterNeverFallsWhileAProcessHasTheSeries) {
  const double bounds[] = {1};
  const uint64_t buckets[] = {1, 2};
  const uint32_t of_a[] = {a_.segment.Counter("a", "c", {}, 10, 0.5), a_.segment.Histogram("a", "h", {}, bounds, 3, buckets)};
  const uint32_t of_b[] = {b_.segment.Counter("a", "c", {}, 5), b_.segment.Histogram("a", "h", {}, bounds, 2, buckets)};
  const auto all = ElementsAre(Pair("a_c", "15.5"), Pair("a_h", "5: 2 4"));
  EXPECT_THAT(Merged({&a_, &b_}), all);
  for (const uint32_t slot : of_a) a_.segment.SetRemoved(slot);
  EXPECT_THAT(Merged({&a_, &b_}), all);
  for (const uint32_t slot : of_b) b_.segment.SetRemoved(slot);
  EXPECT_THAT(Merged({&a_, &b_}), IsEmpty());
  for (const uint32_t slot : of_b) b_.segment.SetRemoved(slot, false);
  EXPECT_THAT(Merged({&a_, &b_}), all);
}

TEST_F(RemovedSeriesTest, ARemovedGaugeHasNoValue) {
  for (const GaugePolicy policy : {GaugePolicy::kLast, GaugePolicy::kSum, GaugePolicy::kMax, GaugePolicy::kAvg}) {
    Process a(*this, {.role = std::to_string(static_cast<int>(policy))});
    Process b(*this, {.role = std::to_string(static_cast<int>(policy))});
    a.segment.Gauge("a", "g", {}, 1, policy);
    const uint32_t slot = b.segment.Gauge("a", "g", {}, 2, policy);
    b.segment.SetRemoved(slot);  // a handle from before may still set its cell
    const std::string name = "a_g@rep_0/" + std::to_string(static_cast<int>(policy));
    EXPECT_EQ(Merged({&a, &b}).at(name), "1");
  }
}

TEST_F(RemovedSeriesTest, ARemovedSeriesDoesNotCountAgainstALimit) {
  UseOptions({.limits = {.series = 2}});
  const uint32_t family = a_.segment.Family(segment::Kind::kCounter, "a", "c");
  std::vector<uint32_t> slots;
  for (int i = 0; i < 4; ++i) {
    slots.push_back(a_.segment.Series(family, {{"i", std::to_string(i)}}));
  }
  a_.segment.SetRemoved(slots[0]);
  a_.segment.SetRemoved(slots[1]);
  EXPECT_THAT(Merged({&a_}), ElementsAre(Pair(R"(a_c{i="2"})", "0"), Pair(R"(a_c{i="3"})", "0")));
  EXPECT_EQ(source().stats().left_out.agent_limit, 0U);
}

// A label that Prometheus does not accept is changed; such series are placed last.
TEST_F(RemovedSeriesTest, ASeriesWithAChangedLabelCanBeRemoved) {
  const Labels labels{{"bad-name", "x"}};
  const uint32_t of_a = a_.segment.Counter("a", "c", labels, 1);
  const uint32_t of_b = b_.segment.Counter("a", "c", labels, 2);
  a_.segment.SetRemoved(of_a);
  EXPECT_THAT(Merged({&a_, &b_}), ElementsAre(Pair(R"(a_c{bad_name="x"})", "3")));
  b_.segment.SetRemoved(of_b);
  EXPECT_THAT(Merged({&a_, &b_}), IsEmpty());
}

}  // namespace
}  // namespace persia::agent::testing

// Merging the processes of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>

#include "merge/merge_test.h"

namespace persia::agent::testing {
namespace {

using segment::Kind;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Pair;

TEST_F(MergeTest, NoProcessesMakeAnEmptySnapshot) {
  const auto snapshot = Collect();
  ASSERT_NE(snapshot, nullptr);
  EXPECT_TRUE(snapshot->values.empty());
  EXPECT_TRUE(snapshot->layout->families.empty());
}

TEST_F(MergeTest, CountersOfDifferentIdentitiesStaySeparate) {
  Process a(*this, {.role = "trainer"});
  Process b(*this, {.role = "trainer", .replica = 1});
  Process c(*this, {.role = "server", .replica = 1});
  for (Process* process : {&a, &b, &c}) {
    process->segment.Counter("persia", "nan_count", {{"feat", "x"}}, process == &b ? 2 : 1);
  }
  EXPECT_THAT(Merged({&a, &b, &c}),
              ElementsAre(Pair(R"(nan_count{feat="x"}@rep_0/trainer)", "1"), Pair(R"(nan_count{feat="x"}@rep_1/server)", "1"),
                          Pair(R"(nan_count{feat="x"}@rep_1/trainer)", "2")));
}

TEST_F(MergeTest, WholePartsAddAsIntegersAndTheTotalIsRoundedOnce) {
  Process a(*this);
  Process b(*this);
  a.segment.Counter("a", "big", {}, (1ULL << 53) + 1);
  b.segment.Counter("a", "big", {}, 1, 0);
  a.segment.Counter("a", "mixed", {}, 1ULL << 53, 0.75);
  b.segment.Counter("a", "mixed", {}, 1, 0.5);
  EXPECT_THAT(Merged({&a, &b}), ElementsAre(Pair("a_big", "9007199254740994"), Pair("a_mixed", "9007199254740994")));
}

TEST_F(MergeTest, FractionsAddToTheSameTotalInAnyOrder) {
  // Ten times 0.1 is 1; plain addition gives less.
  std::vector<std::unique_ptr<Process>> processes;
  std::vector<Process*> pointers;
  for (int i = 0; i < 5; ++i) {
    auto& process = *processes.emplace_back(std::make_unique<Process>(*this));
    const uint32_t slot = process.segment.Counter("a", "c", {}, 0, 0.1);
    process.segment.SetDouble(slot + 1, 0.1, 3);
    pointers.push_back(&process);
  }
  EXPECT_THAT(Merged(pointers), ElementsAre(Pair("a_c", "1")));
}

TEST_F(MergeTest, HistogramsAdd) {
  const double bounds[] = {1, 2};
  const uint64_t first[] = {1, 2, 3};
  const uint64_t second[] = {10, 20, 30};
  Process a(*this);
  Process b(*this);
  a.segment.Histogram("a", "h", {}, bounds, 0.1, first);
  b.segment.Histogram("a", "h", {}, bounds, 0.2, second);
  EXPECT_THAT(Merged({&a, &b}), ElementsAre(Pair("a_h", "0.30000000000000004: 11 22 33")));
  EXPECT_THAT(Collect()->layout->families[0].bounds, ElementsAre(1, 2));
  EXPECT_EQ(Collect()->layout->families[0].type, MetricType::kHistogram);
}

TEST_F(MergeTest, AHistogramWithoutBoundsIsASummary) {
  const uint64_t count[] = {3};
  Process a(*this);
  Process b(*this);
  a.segment.Histogram("a", "s", {}, {}, 0.5, count);
  b.segment.Histogram("a", "s", {}, {}, -2, count);
  EXPECT_THAT(Merged({&a, &b}), ElementsAre(Pair("a_s", "-1.5: 6")));
  EXPECT_THAT(Collect()->layout->families[0].bounds, IsEmpty());
  EXPECT_EQ(Collect()->layout->families[0].type, MetricType::kSummary);
}

TEST_F(MergeTest, GaugesFollowTheirPolicy) {
  Process a(*this);
  Process b(*this);
  Process c(*this);  // sets no gauge
  const std::pair<const char*, GaugePolicy> policies[] = {{"last", GaugePolicy::kLast}, {"sum", GaugePolicy::kSum},
                                                          {"min", GaugePolicy::kMin},   {"max", GaugePolicy::kMax},
                                                          {"avg", GaugePolicy::kAvg},   {"each", GaugePolicy::kEach}};
  for (const auto& [name, policy] : policies) {
    a.segment.Gauge("g", name, {}, 1, policy);
    b.segment.Gauge("g", name, {}, 4, policy);
    c.segment.UnsetGauge("g", name, policy);
  }
  EXPECT_THAT(Merged({&a, &b, &c}),
              ElementsAre(Pair("g_avg", "2.5"), Pair(R"(g_each{process="0"})", "1"), Pair(R"(g_each{process="1"})", "4"),
                          Pair(R"(g_each{process="2"})", "absent"), Pair("g_last", "4"), Pair("g_max", "4"), Pair("g_min", "1"),
                          Pair("g_sum", "5")));
}

TEST_F(MergeTest, AnUnsetGaugeIsAbsent) {
  Process a(*this);
  a.segment.UnsetGauge("g", "sum", GaugePolicy::kSum);
  EXPECT_THAT(Merged({&a}), ElementsAre(Pair("g_sum", "absent")));
}

TEST_F(MergeTest, TheLastGaugeIsTheOneThatChangedLast) {
  Process older(*this);
  Process newer(*this);
  const uint32_t slot = older.segment.Gauge("g", "x", {}, 1);
  const uint32_t newer_slot = newer.segment.Gauge("g", "x", {}, 2);
  EXPECT_THAT(Merged({&older, &newer}), ElementsAre(Pair("g_x", "2")));  // a tie: the newer process
  older.segment.SetDouble(slot, 3);
  EXPECT_THAT(Merged({&older, &newer}), ElementsAre(Pair("g_x", "3")));
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair("g_x", "3")));
  newer.segment.SetDouble(newer_slot, 4);
  EXPECT_THAT(Merged({&older, &newer}), ElementsAre(Pair("g_x", "4")));
  older.segment.SetDouble(slot, 5);
  newer.segment.SetDouble(newer_slot, 6);
  EXPECT_THAT(Merged({&older, &newer}), ElementsAre(Pair("g_x", "6")));
}

TEST_F(MergeTest, EachProcessKeepsItsOrdinal) {
  Process a(*this);
  Process b(*this);
  a.segment.Gauge("g", "x", {}, 1, GaugePolicy::kEach);
  b.segment.Gauge("g", "x", {}, 2, GaugePolicy::kEach);
  b.Put();
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(g_x{process="0"})", "2")));
  a.Put();  // older, but its file appears later
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(g_x{process="0"})", "2"), Pair(R"(g_x{process="1"})", "1")));
}

TEST_F(MergeTest, NaNsOfAGaugeAreOrdinary) {
  Process a(*this);
  const uint32_t stale = a.segment.Gauge("g", "stale", {}, 0);
  a.segment.Set(stale, 0x7ff0'0000'0000'0002);  // Prometheus's stale marker
  const uint32_t absent = a.segment.Gauge("g", "absent", {}, 0);
  a.segment.Set(absent, kAbsent);
  a.Put();
  const auto snapshot = Collect();
  for (const double value : snapshot->values) {
    if (std::isnan(value)) {
      EXPECT_EQ(std::bit_cast<uint64_t>(value), 0x7ff8'0000'0000'0001U);
    }
  }
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair("g_absent", "nan"), Pair("g_stale", "nan")));
}

TEST_F(MergeTest, ANaNAffectsSumAndAverageButNotMinAndMax) {
  Process a(*this);
  Process b(*this);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<const char*, GaugePolicy> policies[] = {
      {"sum", GaugePolicy::kSum}, {"min", GaugePolicy::kMin}, {"max", GaugePolicy::kMax}, {"avg", GaugePolicy::kAvg}};
  for (const auto& [name, policy] : policies) {
    a.segment.Gauge("g", name, {}, nan, policy);
    b.segment.Gauge("g", name, {}, 1, policy);
  }
  a.segment.Gauge("g", "only", {}, nan, GaugePolicy::kMin);
  EXPECT_THAT(Merged({&a, &b}), ElementsAre(Pair("g_avg", "nan"), Pair("g_max", "1"), Pair("g_min", "1"), Pair("g_only", "nan"),
                                            Pair("g_sum", "nan")));
}

TEST_F(MergeTest, EventsBecomeThreeFamilies) {
  const double bounds[] = {1, 10};
  const uint64_t first[] = {1, 1, 0};
  const uint64_t second[] = {0, 0, 1};
  Process a(*this);
  Process b(*this);
  a.segment.Event("torchelastic", "epoch", 5'000, 3, 4.5, bounds, first);
  b.segment.Event("torchelastic", "epoch", 70'250, 2, 60, bounds, second);
  b.segment.Event("mine", "never", 0, 0, 0, bounds, {});
  EXPECT_THAT(Merged({&a, &b}),
              ElementsAre(Pair(R"(persia_event_interval_seconds{event="epoch",type="torchelastic"})", "64.5: 1 1 1"),
                          Pair(R"(persia_event_interval_seconds{event="never",type="mine"})", "0: 0 0 0"),
                          Pair(R"(persia_event_last_timestamp_seconds{event="epoch",type="torchelastic"})", "70.25"),
                          Pair(R"(persia_event_last_timestamp_seconds{event="never",type="mine"})", "absent"),
                          Pair(R"(persia_events_total{event="epoch",type="torchelastic"})", "5"),
                          Pair(R"(persia_events_total{event="never",type="mine"})", "0")));
}

TEST_F(MergeTest, DroppedCountsAreShownWithAllReasons) {
  Process a(*this);
  Process b(*this);
  a.segment.header().dropped[0] = 1;
  b.segment.header().dropped[0] = 2;
  b.segment.header().dropped[3] = 5;
  b.segment.header().dropped[12] = 1;  // a reason of a later version
  b.segment.header().dropped[15] = 1;  // another one
  EXPECT_THAT(Merged({&a, &b}), ElementsAre(Pair(R"(persia_metrics_dropped_total{reason="bad_value"})", "3"),
                                            Pair(R"(persia_metrics_dropped_total{reason="other"})", "2"),
                                            Pair(R"(persia_metrics_dropped_total{reason="type_conflict"})", "5")));
  const FamilyLayout family = Collect()->layout->families.at(0);
  EXPECT_EQ(family.type, MetricType::kCounter);
  std::vector<std::string> reasons;
  for (const SeriesLayout& series : family.series) {
    reasons.push_back(std::string(series.labels.begin()->second));
  }
  EXPECT_THAT(reasons, ElementsAre("bad_bounds", "bad_name", "bad_value", "descriptor_limit", "event_overrun",
                                   "event_truncated", "file_inaccessible", "file_size_limit", "filesystem_full", "other",
                                   "out_of_memory", "segment_full", "type_conflict"));
}

TEST_F(MergeTest, LabelsOfAProcessAreOnItsSeriesUnlessASeriesHasItsOwn) {
  Process a(*this, {.role = "worker", .labels = {{"cluster", "c1"}, {"zone", "z1"}}});
  a.segment.Counter("a", "plain", {}, 1);
  a.segment.Counter("a", "own", {{"zone", "mine"}}, 2);
  a.segment.Event("t", "e", 1000, 1, 0, {}, {});
  EXPECT_THAT(Merged({&a}),
              IsSupersetOf({Pair(R"(a_plain{cluster="c1",zone="z1"})", "1"), Pair(R"(a_own{cluster="c1",zone="mine"})", "2"),
                            Pair(R"(persia_events_total{cluster="c1",event="e",type="t",zone="z1"})", "1")}));
}

TEST_F(MergeTest, IdentityLabelsAreThoseOfTheGroupingKey) {
  Process a(*this, {.role = "tr\xff", .replica = 4});
  UseOptions({.ip_addr = "10.0.0.7"});
  a.Put();
  const auto snapshot = Collect();
  ASSERT_EQ(snapshot->layout->identities.size(), 1U);
  EXPECT_EQ(snapshot->layout->identities[0],
            (Identity{"dlrm", {{"instance", "rep_4"}, {"ip_addr", "10.0.0.7"}, {"role", "tr\xef\xbf\xbd"}}}));
}

TEST_F(MergeTest, HelpAndUnitAreThoseOfTheNewestProcess) {
  Process older(*this);
  Process newer(*this);
  older.segment.Series(older.segment.Family(Kind::kCounter, "a", "c", {}, GaugePolicy::kLast, {"Old.", "x"}));
  newer.segment.Series(newer.segment.Family(Kind::kCounter, "a", "c", {}, GaugePolicy::kLast, {"New \xff.", "seconds"}));
  newer.Put();
  older.Put();
  const FamilyLayout family = Collect()->layout->families.at(0);
  EXPECT_EQ(family.help, "New \xef\xbf\xbd.");
  EXPECT_EQ(family.unit, "seconds");
}

TEST_F(MergeTest, ACountBeginsWithTheFirstProcessThatHasIt) {
  Process first(*this);
  Process second(*this);
  const double bounds[] = {1};
  second.segment.Counter("a", "both", {}, 1);
  second.segment.Histogram("a", "of_the_second", {}, bounds, 0, {});
  second.segment.Gauge("a", "size", {}, 1);
  first.segment.Counter("a", "both", {}, 1);
  const auto ms = [](Process& process) { return static_cast<int64_t>(process.segment.header().birth_unix_ns / 1'000'000); };
  second.Put();
  first.Put();
  std::map<std::string, int64_t> created;
  for (const FamilyLayout& family : Collect()->layout->families) created[family.name] = family.series.at(0).created_ms;
  EXPECT_THAT(created, ElementsAre(Pair("a_both", ms(first)), Pair("a_of_the_second", ms(second)), Pair("a_size", 0),
                                   Pair("persia_metrics_dropped_total", ms(first))));
}

TEST_F(MergeTest, TheLayoutIsTheSameObjectUntilASeriesIsAdded) {
  Process a(*this);
  const uint32_t slot = a.segment.Counter("a", "c", {}, 1);
  a.Put();
  const auto first = Collect();
  a.segment.Set(slot, 2);
  a.Put();
  const auto second = Collect();
  EXPECT_EQ(first->layout, second->layout);
  EXPECT_NE(first->values, second->values);
  // A process with the same series does not change the layout.
  Process b(*this);
  b.segment.Counter("a", "c", {}, 5);
  b.Put();
  const auto third = Collect();
  EXPECT_EQ(third->layout, first->layout);
  EXPECT_THAT(Flatten(*third), ElementsAre(Pair("a_c", "7")));
  b.segment.Counter("a", "d", {}, 5);
  b.Put();
  EXPECT_NE(Collect()->layout, first->layout);
  EXPECT_THAT(Flatten(*first), ElementsAre(Pair("a_c", "1")));  // earlier snapshots do not change
}

TEST_F(MergeTest, TheLayoutIsAnotherObjectIfBoundsChange) {
  const double old_bounds[] = {1, 2};
  const double new_bounds[] = {1, 3};
  const uint64_t buckets[] = {1, 2, 3};
  Process older(*this);
  older.segment.Histogram("a", "h", {}, old_bounds, 1, buckets);
  older.Put();
  const auto first = Collect();
  Process newer(*this);
  newer.segment.Histogram("a", "h", {}, new_bounds, 1, buckets);
  newer.Put();
  const auto second = Collect();
  EXPECT_NE(second->layout, first->layout);
  EXPECT_THAT(second->layout->families.at(0).bounds, ElementsAre(1, 3));
}

TEST_F(MergeTest, TheLayoutIsSortedAndItsValuesAreInOrder) {
  Process a(*this, {.role = "b"});
  Process b(*this, {.role = "a"});
  const double bounds[] = {1, 2, 3};
  for (Process* process : {&a, &b}) {
    process->segment.Histogram("z", "h", {}, bounds, 0, {});
    process->segment.Counter("y", "c", {{"l", "2"}}, 0);
    process->segment.Series(1, {{"l", "1"}});
    process->Put();
  }
  const auto layout = Collect()->layout;
  size_t next = 0;
  std::string name;
  for (const FamilyLayout& family : layout->families) {
    EXPECT_LT(name, family.name);
    name = family.name;
    const SeriesLayout* former = nullptr;
    for (const SeriesLayout& series : family.series) {
      EXPECT_EQ(series.first_value, next);
      next += family.ValuesPerSeries();
      if (former != nullptr) {
        EXPECT_LT(std::pair(former->identity, former->labels.ToList()), std::pair(series.identity, series.labels.ToList()));
      }
      former = &series;
    }
  }
  EXPECT_EQ(layout->value_count, next);
  EXPECT_EQ(layout->identities.at(0).labels.back().second, "a");
}

}  // namespace
}  // namespace persia::agent::testing

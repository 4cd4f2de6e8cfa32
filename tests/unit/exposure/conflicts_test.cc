// Conflicts of names: of definitions, series and labels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "merge/merge_test.h"

namespace persia::agent::testing {
namespace {

using segment::Kind;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST_F(MergeTest, OfConflictingDefinitionsTheNewestWinsAndTheOthersAreReportedOnce) {
  const double old_bounds[] = {1};
  const double new_bounds[] = {1, 2};
  const uint64_t buckets[] = {1, 1, 1};
  Process older(*this);
  Process newer(*this);
  older.segment.Counter("a", "type", {}, 5);
  newer.segment.Gauge("a", "type", {}, 6);
  older.segment.Histogram("a", "bounds", {}, old_bounds, 1, std::span(buckets).first(2));
  newer.segment.Histogram("a", "bounds", {}, new_bounds, 2, buckets);
  older.segment.Counter("a", "fine", {}, 1);
  EXPECT_THAT(Merged({&older, &newer}), ElementsAre(Pair("a_bounds", "2: 1 1 1"), Pair("a_fine", "1"), Pair("a_type", "6")));
  EXPECT_THAT(Diagnosed(),
              UnorderedElementsAre("conflict: metric (a, type) is left out as a counter: under the name a_type the newest "
                                   "definition, metric (a, type), is a gauge; rename one of them",
                                   "conflict: metric (a, bounds) is left out as a histogram with 1 bounds (1): under the name "
                                   "a_bounds the newest definition, metric (a, bounds), is a histogram with 2 bounds (1, 2); "
                                   "rename one of them"));
  newer.segment.Counter("a", "another", {}, 1);  // a new plan
  EXPECT_THAT(Merged({&older, &newer}), Contains(Pair("a_another", "1")));
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(MergeTest, AMetricThatIsLeftOutIsInTheLayoutOnceWithItsInstances) {
  Process first(*this, {.role = "worker", .replica = 1});
  Process second(*this, {.role = "worker", .replica = 2});
  Process newer(*this);
  for (Process* older : {&first, &second}) older->segment.Counter("train", "loss", {}, 5);
  newer.segment.Gauge("train", "loss", {}, 6);
  for (Process* process : {&first, &second, &newer}) process->Put();
  const auto snapshot = Collect();
  const auto& left_out = snapshot->layout->left_out;
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_EQ(left_out[0].source, "train/loss");
  EXPECT_EQ(left_out[0].name, "train_loss");
  EXPECT_EQ(left_out[0].shape, "a counter");
  EXPECT_EQ(left_out[0].winner, "a gauge");
  std::vector<std::string> instances;
  for (const uint32_t identity : left_out[0].identities) {
    instances.push_back(LabelValueOf(snapshot->layout->identities[identity], "instance"));
  }
  EXPECT_THAT(instances, UnorderedElementsAre("rep_1", "rep_2"));
}

TEST_F(MergeTest, HistogramsOfTwoRolesMayHaveDifferentBounds) {
  const double trainer_bounds[] = {1, 2};
  const double server_bounds[] = {1};
  const uint64_t buckets[] = {1, 2, 3};
  Process trainer(*this, {.role = "trainer"});
  Process other_trainer(*this, {.role = "trainer"});
  Process server(*this, {.role = "server"});
  trainer.segment.Histogram("a", "h", {}, trainer_bounds, 4, buckets);
  other_trainer.segment.Histogram("a", "h", {}, trainer_bounds, 4, buckets);
  server.segment.Histogram("a", "h", {}, server_bounds, 5, std::span(buckets).first(2));
  EXPECT_THAT(Merged({&trainer, &other_trainer, &server}),
              ElementsAre(Pair("a_h@rep_0/server", "5: 1 2"), Pair("a_h@rep_0/trainer", "8: 2 4 6")));
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(MergeTest, FamiliesOfOneNameHaveTheHelpAndUnitOfTheNewest) {
  const double bounds[] = {1, 2};
  Process older(*this, {.role = "trainer"});
  Process newer(*this, {.role = "server"});
  const auto add = [&bounds](Process& process, size_t number_of_bounds, const FamilyText& text) {
    process.segment.Series(process.segment.Family(Kind::kHistogram, "a", "h", std::span(bounds).first(number_of_bounds),
                                                  GaugePolicy::kLast, text));
    process.Put();
  };
  add(older, 1, {"Old.", "x"});
  add(newer, 2, {"New.", "seconds"});
  const auto snapshot = Collect();
  const auto families = FamiliesNamed(*snapshot->layout, "a_h");
  ASSERT_EQ(families.size(), 2U);
  for (const FamilyLayout& family : families) {
    EXPECT_EQ(family.help, "New.");
    EXPECT_EQ(family.unit, "seconds");
  }
}

TEST_F(MergeTest, MetricsWithOneExposedNameGetALabelSource) {
  Process a(*this);
  a.segment.Counter("a_b", "c", {}, 2);
  a.segment.Counter("a", "b_c", {}, 1);
  a.segment.Counter("a", "b.c", {{"source", "mine"}}, 3);
  const Flat expected = {{R"(a_b_c{exported_source="mine",source="a/b.c"})", "3"},
                         {R"(a_b_c{source="a/b_c"})", "1"},
                         {R"(a_b_c{source="a_b/c"})", "2"}};
  Flat got = Merged({&a});
  // The first of them, (a, b.c), gets no label `source`.
  EXPECT_THAT(got, ElementsAre(Pair(R"(a_b_c{source="a/b_c"})", "1"), Pair(R"(a_b_c{source="a_b/c"})", "2"),
                               Pair(R"(a_b_c{source="mine"})", "3")));
  EXPECT_THAT(Diagnosed(),
              ElementsAre(HasSubstr("metric (a_b, c) gets a label source"), HasSubstr("metric (a, b_c) gets a label source")));
  // A fourth one, which sorts first: the program's own label `source` is renamed.
  a.segment.Counter("A", "x", {}, 0);
  a.segment.Counter("", "a_b_c", {}, 9);
  got = Merged({&a});
  for (const auto& series : expected) {
    EXPECT_THAT(got, Contains(series));
  }
  EXPECT_THAT(got, Contains(Pair("a_b_c", "9")));
}

TEST_F(MergeTest, SeriesWithTheSameExposedLabelsGetALabelSource) {
  Process a(*this);
  const uint32_t family = a.segment.Family(Kind::kCounter, "a", "c");
  a.segment.Set(a.segment.Series(family, {{"x.y", "1"}}), 10);
  a.segment.Set(a.segment.Series(family, {{"x_y", "1"}}), 20);
  a.segment.Set(a.segment.Series(family, {{"x-y", "1"}}), 30);
  a.segment.Set(a.segment.Series(family, {{"x_y", ""}}), 40);
  a.segment.Set(a.segment.Series(family, {}), 50);
  EXPECT_THAT(Merged({&a}), ElementsAre(Pair("a_c", "50"), Pair(R"x(a_c{source="a/c{x-y="1"}",x_y="1"})x", "30"),
                                        Pair(R"x(a_c{source="a/c{x.y="1"}",x_y="1"})x", "10"),
                                        Pair(R"x(a_c{source="a/c{x_y=""}"})x", "40"), Pair(R"(a_c{x_y="1"})", "20")));
  EXPECT_EQ(Diagnosed().size(), 3U);
}

TEST_F(MergeTest, TheSeriesWithoutALabelSourceDoesNotDependOnTheOrder) {
  const auto shown = [&](const char* first, const char* second) {
    Process a(*this);
    const uint32_t family = a.segment.Family(Kind::kCounter, "a", "c");
    a.segment.Series(family, {{first, "1"}});
    a.segment.Series(family, {{second, "1"}});
    a.segment.Set(segment::kCellsPerChunk, std::string(first) == "x-y" ? 1 : 2);
    a.segment.Set(segment::kCellsPerChunk + 2, std::string(first) == "x-y" ? 2 : 1);
    const Flat flat = Merged({&a});
    UseOptions({});
    for (const auto& file : std::filesystem::directory_iterator(directory())) {
      std::filesystem::remove(file);
    }
    return flat;
  };
  const Flat expected = {{R"(a_c{x_y="1"})", "1"}, {R"x(a_c{source="a/c{x.y="1"}",x_y="1"})x", "2"}};
  EXPECT_EQ(shown("x-y", "x.y"), expected);
  EXPECT_EQ(shown("x.y", "x-y"), expected);
}

TEST_F(MergeTest, TheSameSanitisedSeriesOfTwoProcessesAddUp) {
  Process a(*this);
  Process b(*this);
  a.segment.Counter("a", "c", {{"x.y", "1"}}, 1);
  b.segment.Counter("a", "c", {{"x.y", "1"}}, 2);
  EXPECT_THAT(Merged({&a, &b}), ElementsAre(Pair(R"(a_c{x_y="1"})", "3")));
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(MergeTest, ReservedLabelsAreRenamed) {
  Process a(*this);
  a.segment.Counter("a", "c", {{"__name__", "n"}, {"instance", "i"}, {"job", "j"}, {"le", "1"}}, 1);
  a.segment.Gauge("a", "g", {{"process", "mine"}}, 2, GaugePolicy::kEach);
  EXPECT_THAT(Merged({&a}), ElementsAre(Pair(R"(a_c{_name__="n",exported_instance="i",exported_job="j",exported_le="1"})", "1"),
                                        Pair(R"(a_g{exported_process="mine",process="0"})", "2")));
}

TEST_F(MergeTest, AMetricNamedLikeASampleOfAHistogramIsRenamed) {
  const double bounds[] = {1};
  const uint64_t buckets[] = {1, 1};
  Process a(*this);
  a.segment.Counter("a", "h_sum", {}, 1);
  a.segment.Gauge("a", "h_count", {}, 2);
  a.segment.Histogram("a", "h_bucket", {}, bounds, 3, buckets);
  a.segment.Counter("a", "h_total", {}, 4);
  EXPECT_THAT(Merged({&a}), Contains(Key("a_h_sum")));
  EXPECT_THAT(Diagnosed(), IsEmpty());
  a.segment.Histogram("a", "h", {}, bounds, 5, buckets);
  EXPECT_THAT(Merged({&a}), ElementsAre(Pair("a_h", "5: 1 1"), Pair("a_h_bucket_histogram", "3: 1 1"),
                                        Pair("a_h_count_gauge", "2"), Pair("a_h_sum_counter", "1"), Pair("a_h_total", "4")));
  EXPECT_THAT(Diagnosed(), Contains(HasSubstr("metric (a, h_sum) is exposed as a_h_sum_counter, since a_h_sum is a sample of "
                                              "the histogram a_h")));
}

TEST_F(MergeTest, TheAgentsOwnFamiliesAreNotTakenOver) {
  Process a(*this);
  a.segment.Gauge("", "persia_metrics_dropped_total", {}, 1);
  a.segment.Counter("", "persia_events_total", {{"event", "e"}, {"type", "t"}}, 100);
  a.segment.Event("t", "e", 1000, 1, 0, {}, {});
  const Flat got = Merged({&a});
  EXPECT_THAT(got, Not(Contains(Key("persia_metrics_dropped_total"))));
  EXPECT_THAT(got, Contains(Pair(R"(persia_events_total{event="e",type="t"})", "1")));
  EXPECT_THAT(got, Contains(Pair(R"(persia_events_total{event="e",source="/persia_events_total",type="t"})", "100")));
  EXPECT_EQ(Diagnosed().size(), 2U);
}

}  // namespace
}  // namespace persia::agent::testing

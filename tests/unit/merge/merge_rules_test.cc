// The effect of naming rules on the values of segments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "merge/merge_test.h"
#include "naming/mapping_rules.h"

namespace persia::agent::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class MergeRulesTest : public MergeTest {
 protected:
  void Use(std::vector<MappingRule> rules) {
    std::vector<RuleProblem> problems;
    source().SetNaming(MappingRules::Compile(std::move(rules), {}, problems));
    ASSERT_THAT(problems, IsEmpty());
  }
  static MappingRule Rule(std::string match, std::string name, std::vector<std::pair<std::string, std::string>> labels = {}) {
    return {.match = std::move(match), .name = std::move(name), .labels = std::move(labels)};
  }
};

TEST_F(MergeRulesTest, MetricsDistinguishedByLabelsShareAName) {
  Use({Rule("*.runs", "runs_total", {{"stage", "$1"}})});
  Process a(*this);
  Process b(*this);
  a.segment.Counter("g", "train.runs", {}, 1);
  a.segment.Counter("g", "eval.runs", {{"set", "x"}}, 2);
  b.segment.Counter("g", "train.runs", {}, 4);
  EXPECT_THAT(Merged({&a, &b}),
              ElementsAre(Pair(R"(runs_total{set="x",stage="eval"})", "2"), Pair(R"(runs_total{stage="train"})", "5")));
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(MergeRulesTest, SeriesWithCollidingLabelsGetALabelSource) {
  Use({Rule("a", "n", {{"x", "1"}}), Rule("b", "n", {{"y", "1"}}), Rule("c", "n", {{"y", "1"}})});
  Process a(*this);
  a.segment.Counter("g", "a", {{"y", "1"}}, 1);
  a.segment.Counter("g", "b", {{"x", "1"}}, 2);
  a.segment.Counter("g", "c", {{"x", "1"}}, 4);
  const Flat got = Merged({&a});
  EXPECT_EQ(got.size(), 3U);
  EXPECT_THAT(got, Contains(Pair(R"(n{x="1",y="1"})", "1")));
  EXPECT_THAT(got, Contains(Pair(R"x(n{source="g/b{x="1"}",x="1",y="1"})x", "2")));
  EXPECT_THAT(got, Contains(Pair(R"(n{source="g/c",x="1",y="1"})", "4")));
}

TEST_F(MergeRulesTest, ARulesLabelWinsUnlessItHonorsTheMetrics) {
  Use({Rule("a", "a", {{"x", "rule"}}), {.match = "b", .name = "b", .labels = {{"x", "rule"}}, .honor_labels = true}});
  Process a(*this);
  a.segment.Counter("g", "a", {{"x", "own"}}, 1);
  a.segment.Counter("g", "b", {{"x", "own"}}, 2);
  a.segment.Counter("g", "b", {{"z", "own"}}, 3);
  EXPECT_THAT(Merged({&a}), ElementsAre(Pair(R"(a{exported_x="own",x="rule"})", "1"), Pair(R"(b{x="own"})", "2"),
                                        Pair(R"(b{x="rule",z="own"})", "3")));
}

TEST_F(MergeRulesTest, ARuleCanMoveAMetricToAnotherRole) {
  Use({Rule("workers.*.flakiness", "flakiness", {{"role", "$1"}}),
       {.match = "own.*", .name = "own", .labels = {{"role", "$1"}}, .honor_labels = true}});
  Process launcher(*this, {.role = "", .replica = 2});
  Process trainer(*this, {.role = "trainer", .replica = 2});
  launcher.segment.Gauge("t", "workers.trainer.flakiness", {}, 7);
  launcher.segment.Gauge("t", "workers.ps.flakiness", {}, 8);
  launcher.segment.Gauge("t", "other", {}, 9);
  launcher.segment.Gauge("t", "own.x", {}, 10);
  trainer.segment.Gauge("t", "own.x", {}, 11);
  EXPECT_THAT(Merged({&launcher, &trainer}),
              ElementsAre(Pair("flakiness@rep_2/ps", "8"), Pair("flakiness@rep_2/trainer", "7"),
                          Pair("own@rep_2/trainer", "11"), Pair("own@rep_2/x", "10"), Pair("t_other@rep_2/", "9")));
  EXPECT_THAT(Diagnosed(), IsEmpty());
}

TEST_F(MergeRulesTest, ScaleAppliesToValuesSumsAndBoundsAndNotToCounts) {
  const double bounds[] = {9, 256};
  const uint64_t buckets[] = {1, 2, 3};
  MappingRule milli = Rule("*.ms", "${1}_seconds");
  milli.scale = 0.001;
  Use({milli});
  Process a(*this);
  Process b(*this);
  a.segment.Counter("g", "c.ms", {}, 5);
  b.segment.Counter("g", "c.ms", {}, 4);
  a.segment.Gauge("g", "g.ms", {}, 9);
  a.segment.Family(segment::Kind::kGauge, "g", "unset.ms");
  a.segment.Histogram("g", "h.ms", {}, bounds, 9, buckets);
  b.segment.Histogram("g", "h.ms", {}, bounds, 0, buckets);
  EXPECT_THAT(Merged({&a, &b}),
              ElementsAre(Pair("c_seconds", "0.009"), Pair("g_seconds", "0.009"), Pair("h_seconds", "0.009: 2 4 6")));
  const auto snapshot = Collect();
  for (const FamilyLayout& family : snapshot->layout->families) {
    if (family.name == "h_seconds") {
      EXPECT_THAT(family.bounds, ElementsAre(0.009, 0.256));
      EXPECT_EQ(family.type, MetricType::kHistogram);
    }
  }
}

TEST_F(MergeRulesTest, AnUnsetGaugeStaysAbsentUnderAScale) {
  MappingRule rule = Rule("x", "x");
  rule.scale = 2;
  Use({rule});
  Process a(*this);
  const uint32_t family = a.segment.Family(segment::Kind::kGauge, "g", "x");
  a.segment.Series(family, {});
  EXPECT_THAT(Merged({&a}), ElementsAre(Pair("x", "absent")));
}

TEST_F(MergeRulesTest, AScaleThatMakesBoundsEqualIsDroppedAndReported) {
  const double bounds[] = {1e300, 1.5e300};
  const uint64_t buckets[] = {1, 2, 3};
  MappingRule rule = Rule("h", "h");
  rule.scale = 1e100;
  Use({rule});
  Process a(*this);
  a.segment.Histogram("g", "h", {}, bounds, 9, buckets);
  EXPECT_THAT(Merged({&a}), ElementsAre(Pair("h", "9: 1 2 3")));
  EXPECT_THAT(Diagnosed(), ElementsAre(HasSubstr("the histogram h is exposed without the scale of its rule")));
}

TEST_F(MergeRulesTest, ADroppedMetricReturnsWithoutTheRule) {
  MappingRule drop = Rule("*.debug", "");
  drop.drop = true;
  Use({drop});
  Process a(*this);
  a.segment.Counter("g", "a.debug", {}, 1);
  a.segment.Counter("g", "b", {}, 2);
  a.segment.Event("t", "z.debug", 1000, 1, 0, {}, {});
  const Flat without = Merged({&a});
  EXPECT_EQ(without.count("g_a_debug"), 0U);
  EXPECT_THAT(without, Contains(Pair("g_b", "2")));
  EXPECT_THAT(without, Contains(Pair(R"(persia_events_total{event="z.debug",type="t"})", "1")));  // events are not renamed
  Use({});
  EXPECT_THAT(Merged({&a}), Contains(Pair("g_a_debug", "1")));
}

TEST_F(MergeRulesTest, TheLayoutIsAnotherObjectIfALabelChanges) {
  Use({Rule("runs", "runs_total", {{"stage", "train"}})});
  Process a(*this);
  a.segment.Counter("g", "runs", {}, 1);
  a.Put();
  const auto first = Collect();
  Use({Rule("runs", "runs_total", {{"stage", "eval"}})});
  const auto second = Collect();
  EXPECT_NE(second->layout, first->layout);
  EXPECT_THAT(Flatten(*second), ElementsAre(Pair(R"(runs_total{stage="eval"})", "1")));
}

TEST_F(MergeRulesTest, HelpIsTheRulesOrTheProgramsOwn) {
  MappingRule rule = Rule("a", "a");
  rule.help = "By rule.";
  Use({rule});
  Process a(*this);
  a.segment.Counter("g", "a", {}, 1);
  Merged({&a});
  EXPECT_EQ(Collect()->layout->families[0].help, "By rule.");
}

}  // namespace
}  // namespace persia::agent::testing

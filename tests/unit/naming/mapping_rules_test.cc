#include "naming/mapping_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "model/bounds.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::shared_ptr<const MappingRules> Compiled(std::vector<MappingRule> rules, MappingRules::Options options = {}) {
  std::vector<RuleProblem> problems;
  auto compiled = MappingRules::Compile(std::move(rules), std::move(options), problems);
  EXPECT_THAT(problems, IsEmpty());
  return compiled;
}

MappingRule Glob(std::string match, std::string name) { return {.match = std::move(match), .name = std::move(name)}; }
MappingRule Regex(std::string match, std::string name) {
  return {.match = std::move(match), .regex = true, .name = std::move(name)};
}

std::string NameOf(const MappingRules& rules, std::string_view group, std::string_view name,
                   MetricType type = MetricType::kUntyped) {
  return rules.Expose({group, name, type})->name;
}

TEST(MappingRules, GlobsComeBeforeRegexesAndEachInOrder) {
  const auto rules = Compiled({Regex("a", "r1"), Regex("b", "r2"), Glob("a.*", "g1"), Glob("a.b", "g2")});
  EXPECT_EQ(NameOf(*rules, "", "a.b"), "g1");
  EXPECT_EQ(NameOf(*rules, "", "x.a.b"), "r1");
  EXPECT_EQ(NameOf(*rules, "", "xb"), "r2");
  EXPECT_EQ(NameOf(*rules, "g", "c"), "g_c");
  EXPECT_EQ(rules->RuleFor({"", "xb"})->match, "b");
  EXPECT_EQ(rules->RuleFor({"", "c"}), nullptr);
}

TEST(MappingRules, PartsOfTheProgramBecomePlainInNamesAndStayInLabels) {
  MappingRule rule = Regex("^my (.*)$", "${group}_$1_total");
  rule.labels = {{"my_label", "$1"}, {"role", "server"}, {"job", "x"}, {"empty", ""}};
  const auto rules = Compiled({rule, Glob("m.*", "$1")});
  EXPECT_EQ(NameOf(*rules, "my-app", "my 1st \xe8\x8a\xb1."), "my_app_1st____total");
  EXPECT_EQ(NameOf(*rules, "", "m.a-b"), "a_b");
  EXPECT_THAT(rules->Expose({"", "my \xe8\x8a\xb1"})->labels,
              ElementsAre(Pair("exported_job", "x"), Pair("my_label", "\xe8\x8a\xb1"), Pair("role", "server")));
}

TEST(MappingRules, AGroupNarrowsARule) {
  MappingRule exact = Glob("m", "exact");
  exact.group = "my_app";
  MappingRule part = Glob("m", "part");
  part.group = "bench.*";
  MappingRule none = Glob("n", "none");
  none.group = "";
  const auto rules = Compiled({exact, part, none});
  EXPECT_EQ(NameOf(*rules, "", "n"), "none");
  EXPECT_EQ(NameOf(*rules, "my_app", "n"), "my_app_n");
  EXPECT_EQ(NameOf(*rules, "my_app", "m"), "exact");
  EXPECT_EQ(NameOf(*rules, "bench.alexnet", "m"), "part");
  EXPECT_EQ(NameOf(*rules, "bench", "m"), "bench_m");
  EXPECT_EQ(NameOf(*rules, "", "m"), "m");
}

TEST(MappingRules, CapturesGoIntoNamesAndLabels) {
  MappingRule rule = Glob("*.step.*", "${2}_${group}");
  rule.labels = {{"stage", "$1"}, {"both", "${1}-$2"}, {"empty", ""}, {"whole", "$0"}};
  const auto exposed = Compiled({rule})->Expose({"app", "fwd.step.7", MetricType::kUntyped});
  EXPECT_EQ(exposed->name, "_7_app");
  EXPECT_THAT(exposed->labels, ElementsAre(Pair("both", "fwd-7"), Pair("stage", "fwd"), Pair("whole", "fwd.step.7")));
  MappingRule regex = Regex("^(a)?(b+)$", "x");
  regex.labels = {{"first", "$1"}, {"second", "$2"}};
  EXPECT_THAT(Compiled({regex})->Expose({"", "bb"})->labels, ElementsAre(Pair("second", "bb")));
}

TEST(MappingRules, WhatComesOutIsValidForPrometheus) {
  MappingRule rule = Regex("(.+)", "$1");
  rule.labels = {{"job", "$1"}, {"role", "$1"}};
  rule.help = "h\xff";
  const auto exposed = Compiled({rule})->Expose({"", "a b\xff.c", MetricType::kUntyped});
  EXPECT_EQ(exposed->name, "a_b__c");
  EXPECT_THAT(exposed->labels, ElementsAre(Pair("exported_job", "a b\xef\xbf\xbd.c"), Pair("role", "a b\xef\xbf\xbd.c")));
  EXPECT_EQ(exposed->help, "h\xef\xbf\xbd");
}

TEST(MappingRules, ARuleWithoutANameLeavesThePlainOne) {
  MappingRule rule = Glob("loss", "");
  rule.shape.type = MetricType::kHistogram;
  const auto exposed = Compiled({rule})->Expose({"my_app", "loss"});
  EXPECT_EQ(exposed->name, "my_app_loss");
  EXPECT_EQ(exposed->type, MetricType::kHistogram);
  EXPECT_EQ(exposed->bounds, DefaultStreamBounds());
}

TEST(MappingRules, TheShapeOfAStreamIsTheRulesOrTheDefault) {
  MappingRule histogram = Glob("h", "");
  histogram.shape = {.type = MetricType::kHistogram, .bounds = {1, 2}, .quantiles = {0.1}, .ttl = std::chrono::seconds(5)};
  MappingRule scaled = Glob("s", "");
  scaled.shape.type = MetricType::kHistogram;
  scaled.scale = 0.001;
  MappingRule summary = Glob("q", "");
  summary.shape.type = MetricType::kSummary;
  const auto rules = Compiled({histogram, scaled, summary}, {.unmatched = {.type = MetricType::kCounter}});
  EXPECT_THAT(rules->Expose({"", "h"})->bounds, ElementsAre(1, 2));
  EXPECT_THAT(rules->Expose({"", "h"})->quantiles, IsEmpty());
  EXPECT_EQ(rules->Expose({"", "h"})->ttl, std::chrono::seconds(5));
  EXPECT_EQ(rules->Expose({"", "s"})->bounds.front(), 0x1p-10 / 1000);
  EXPECT_THAT(rules->Expose({"", "q"})->quantiles, ElementsAre(0.5, 0.9, 0.99));
  EXPECT_EQ(rules->Expose({"", "other"})->type, MetricType::kCounter);
  EXPECT_EQ(Compiled({})->Expose({"", "other"})->type, std::nullopt);
}

TEST(MappingRules, WhatIsWrongIsSaidWithItsPart) {
  MappingRule bad_name = Glob("a.*", "$2");
  bad_name.labels = {{"x", "$3"}, {"y", "$1"}};
  MappingRule bad_group = Glob("a", "b");
  bad_group.group = "a*";
  std::vector<RuleProblem> problems;
  const auto rules =
      MappingRules::Compile({Regex("(", "x"), Glob("a..b", "x"), bad_name, Glob("b.*", "good"), bad_group}, {}, problems);
  std::vector<std::string> texts;
  for (const RuleProblem& problem : problems) {
    texts.push_back(std::to_string(problem.rule) + " " + problem.key + ": " + problem.what);
  }
  EXPECT_THAT(
      texts, ElementsAre("0 match: \"(\" is not a regular expression: missing ): (",
                         "1 match: \"a..b\" has an empty component: two dots, or one at an end",
                         "2 name: \"$2\": $2 refers to nothing: the match captures $1",
                         "2 labels.x: \"$3\": $3 refers to nothing: the match captures $1",
                         "4 group: \"a*\" has a * that is not a whole component between dots; use match_type: regex for that"));
  EXPECT_EQ(NameOf(*rules, "", "b.b"), "good") << "a rule with a problem does not apply, and the others do";
  EXPECT_EQ(NameOf(*rules, "", "a.b"), "a_b");
  EXPECT_EQ(NameOf(*rules, "g", "a"), "g_a");
}

TEST(MappingRules, AMetricCostsOneLookUpOnce) {
  const auto rules = Compiled({Glob("a.*", "x")});
  EXPECT_EQ(rules->Expose({"g", "a.b"}), rules->Expose({"g", "a.b"}));
  EXPECT_NE(rules->Expose({"g", "a.b"}), rules->Expose({"g", "a.c"}));
  EXPECT_NE(rules->Expose({"g", "a.b"}), rules->Expose({"g", "a.b", MetricType::kCounter}));
  EXPECT_NE(rules->Expose({"g", "a"}), rules->Expose({"ga", ""}));
}

TEST(MappingRules, AsManyMetricsAsAreShownByDefaultAreKept) {
  const auto rules = Compiled({Glob("a.*", "x")});
  const auto first = rules->Expose({"g", "first"});
  for (int i = 1; i < 200'000; ++i) {
    std::ignore = rules->Expose({"g", std::to_string(i)});
  }
  EXPECT_EQ(rules->Expose({"g", "first"}), first);
}

TEST(MappingRules, ANameMadeToBeSlowIsNot) {
  const auto rules = Compiled({Regex("(a*)*(a*)*(a*)*b$", "x"), Regex("(.*)(.*)(.*)(.*)x$", "y")});
  const std::string name(100'000, 'a');
  EXPECT_EQ(NameOf(*rules, "", name), name);
}

TEST(MappingRules, ThreadsShareThem) {
  const auto rules = Compiled({Glob("a.*", "x_$1"), Regex("b(.)", "y_$1")});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const std::string number = std::to_string(i % 50);
        EXPECT_EQ(NameOf(*rules, "", "a." + number), "x_" + number);
        EXPECT_EQ(NameOf(*rules, "", "b" + number), "y_" + number.substr(0, 1));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace persia::agent

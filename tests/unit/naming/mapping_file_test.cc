#include "naming/mapping_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// The rules of a list of mappings, given as its lines.
MappingFile ParseRules(const std::string& text) { return ParseMapping("m.yaml", text); }

std::shared_ptr<const Exposed> ExposedBy(const std::string& text, std::string_view name, std::string_view group = "g") {
  const MappingFile file = ParseRules(text);
  EXPECT_THAT(file.errors, IsEmpty());
  return file.rules == nullptr ? std::make_shared<const Exposed>() : file.rules->Expose({group, name, MetricType::kUntyped});
}

TEST(MappingFile, AHistogramMayBeNative) {
  const auto native = ExposedBy("mappings: [{match: a, native: true, buckets: [1, 2]}]", "a");
  EXPECT_EQ(native->type, MetricType::kHistogram);
  EXPECT_TRUE(native->native);
  EXPECT_FALSE(native->classic);
  EXPECT_THAT(native->bounds, ElementsAre(1, 2));
  EXPECT_TRUE(ExposedBy("mappings: [{match: a, native: true, classic: true}]", "a")->classic);
  const std::string defaults =
      "defaults: {type: histogram, native: true}\nmappings: [{match: b, native: false}, {match: c, type: gauge}]";
  EXPECT_TRUE(ExposedBy(defaults, "a")->native) << "without a rule";
  EXPECT_FALSE(ExposedBy(defaults, "b")->native);
  EXPECT_FALSE(ExposedBy(defaults, "c")->native);
  const auto of_statsd = ExposedBy(
      "mappings: [{match: a, histogram_options: {native_histogram_bucket_factor: 1.1, native_histogram_max_buckets: 256}}]",
      "a");
  EXPECT_TRUE(of_statsd->native);
  EXPECT_EQ(of_statsd->max_buckets, 256U);
  EXPECT_THAT(ParseRules("mappings: [{match: a, type: gauge, native: true}]").errors,
              ElementsAre("m.yaml:1:44: native needs type: histogram"));
  EXPECT_THAT(ParseRules("mappings: [{match: a, histogram_options: {native_histogram_bucket_factor: -1}}]").errors,
              ElementsAre(HasSubstr("is not a factor")));
  EXPECT_THAT(ParseRules("mappings: [{match: a, histogram_options: {native_histogram_max_buckets: 1.5}}]").errors,
              ElementsAre(HasSubstr("is not a number of buckets")));
}

TEST(MappingFile, BucketsOfAProgramsNativeHistogramHaveAnEffect) {
  const std::string rule = "mappings: [{match: a, match_metric_type: histogram, classic: true, buckets: [1, 2]";
  EXPECT_THAT(ParseRules(rule + "}]").notes, IsEmpty());
  EXPECT_THAT(ParseRules(rule + ", native: true}]").notes, ElementsAre(HasSubstr("native has no effect")));
  const MappingFile file = ParseRules(rule + "}]");
  const auto exposed = file.rules->Expose({"g", "a", MetricType::kHistogram});
  EXPECT_TRUE(exposed->classic);
  EXPECT_THAT(exposed->bounds, ElementsAre(1, 2));
}

TEST(MappingFile, ARuleHasAllItsParts) {
  const std::string text = R"(
mappings:
- match: a.*
  group: g
  name: ${1}_seconds
  labels: {role: $1, stage: fit}
  help: How long.
  type: histogram
  buckets: [.5, 1, 2e0]
  scale: 0.001
  ttl: 1m20s
- match: ^b\d$
  match_type: regex
  type: summary
  quantiles: [0.9, 0.5]
- match: c
  action: drop
)";
  const auto first = ExposedBy(text, "a.x");
  EXPECT_EQ(first->name, "x_seconds");
  EXPECT_THAT(first->labels, ElementsAre(Pair("role", "x"), Pair("stage", "fit")));
  EXPECT_EQ(first->help, "How long.");
  EXPECT_EQ(first->type, MetricType::kHistogram);
  EXPECT_THAT(first->bounds, ElementsAre(0.5, 1, 2));
  EXPECT_EQ(first->scale, 0.001);
  EXPECT_EQ(first->ttl, std::chrono::seconds(80));
  EXPECT_EQ(ExposedBy(text, "a.x", "other")->name, "other_a_x");
  EXPECT_THAT(ExposedBy(text, "b7")->quantiles, ElementsAre(0.5, 0.9));
  EXPECT_TRUE(ExposedBy(text, "c")->drop);
  const MappingFile file = ParseRules(text);
  EXPECT_EQ(file.rules->RuleFor({"g", "b7", MetricType::kUntyped})->place, "m.yaml:12");
  EXPECT_THAT(file.notes, IsEmpty());
}

TEST(MappingFile, DefaultsHoldWhereARuleSaysNothing) {
  const std::string text = R"(
defaults: {match_type: regex, type: summary, quantiles: [0.5], ttl: 5m, group: g, glob_disable_ordering: true}
mappings:
- match: ^a
- match: b.*
  match_type: glob
  type: counter
  ttl: 0
- match: b.c
  match_type: glob
  name: specific
)";
  EXPECT_EQ(ExposedBy(text, "abc")->type, MetricType::kSummary);
  EXPECT_THAT(ExposedBy(text, "abc")->quantiles, ElementsAre(0.5));
  EXPECT_EQ(ExposedBy(text, "abc")->ttl, std::chrono::minutes(5));
  EXPECT_EQ(ExposedBy(text, "b.x")->type, MetricType::kCounter);
  EXPECT_EQ(ExposedBy(text, "b.x")->ttl, std::chrono::minutes(0));
  EXPECT_EQ(ExposedBy(text, "b.c")->name, "specific");
  EXPECT_EQ(ExposedBy(text, "no rule")->type, MetricType::kSummary);
}

TEST(MappingFile, BucketsAloneAskForAHistogramAndQuantilesForASummary) {
  const std::string text = "mappings:\n- {match: h, buckets: [1]}\n- {match: s, quantiles: [0.5]}\n- {match: g}\n";
  EXPECT_EQ(ExposedBy(text, "h")->type, MetricType::kHistogram);
  EXPECT_EQ(ExposedBy(text, "s")->type, MetricType::kSummary);
  EXPECT_EQ(ExposedBy(text, "g")->type, std::nullopt);
}

TEST(MappingFile, WhatIsWrongHasItsPlace) {
  const struct {
    std::string text;
    const char* error;
  } cases[] = {
      {"", "m.yaml:1:1: expected rules (mappings: ...), found nothing"},
      {"[a]", "m.yaml:1:1: expected rules (mappings: ...), found a list"},
      {"mapings: []", "m.yaml:1:1: unknown key \"mapings\"; did you mean \"mappings\"?"},
      {"mappings: {}", "m.yaml:1:11: mappings: expected a list of rules (- match: ...), found a map"},
      {"mappings: []\nmappings: []", "m.yaml:2:1: \"mappings\" is given twice: first in line 1"},
      {"mappings:\n- a", "m.yaml:2:3: expected a rule (match: ...), found a value"},
      {"mappings:\n- name: a", "m.yaml:2:3: a rule without match"},
      {"mappings:\n- match: a\n  name:", "m.yaml:3:3: name: the value is missing"},
      {"mappings:\n- match: a\n  nmae: b", "m.yaml:3:3: unknown key \"nmae\"; did you mean \"name\"?"},
      {"mappings:\n- match: a\n  match: b", "m.yaml:3:3: \"match\" is given twice: first in line 2"},
      {"mappings:\n- match: a\n  type: gague",
       "m.yaml:3:9: type: \"gague\" is not one of: gauge, counter, histogram, summary; did you mean \"gauge\"?"},
      {"mappings:\n- match: a\n  match_metric_type: timr",
       "m.yaml:3:22: match_metric_type: \"timr\" is not one of: counter, gauge, histogram, stream, observer, timer"},
      {"mappings:\n- match: [a]", "m.yaml:2:10: match: expected a text, found a list"},
      {"mappings:\n- match: a*",
       "m.yaml:2:10: match: \"a*\" has a * that is not a whole component between dots; use match_type: regex for that"},
      {"mappings:\n- match: (\n  match_type: regex", "m.yaml:2:10: match: \"(\" is not a regular expression: missing ): ("},
      {"mappings:\n- match: a\n  group: b*", "m.yaml:3:10: group: \"b*\" has a *"},
      {"mappings:\n- match: a.*\n  name: $2", "m.yaml:3:9: name: \"$2\": $2 refers to nothing: the match captures $1"},
      {"mappings:\n- match: a\n  name: \"a\\nb\"", "m.yaml:3:9: name: \"a\\nb\" is not a metric's name"},
      {"mappings:\n- match: a\n  labels: x", "m.yaml:3:11: labels: expected a map (role: $1), found a value"},
      {"mappings:\n- match: a\n  labels: {x: $1}",
       "m.yaml:3:15: labels.x: \"$1\": $1 refers to nothing: the match captures nothing"},
      {"mappings:\n- match: a\n  labels: {\"x\\ty\": 1}", "m.yaml:3:12: labels: \"x\\ty\" is not a label's name"},
      {"mappings:\n- match: a\n  labels: {x: 1, x: 2}", "m.yaml:3:18: labels: \"x\" is given twice"},
      {"mappings:\n- match: a\n  labels: {x: [1]}", "m.yaml:3:15: labels.x: expected a text, found a list"},
      {"mappings:\n- match: a\n  scale: 0",
       "m.yaml:3:10: scale: \"0\" is not a number to multiply by (0.001: milliseconds to seconds)"},
      {"mappings:\n- match: a\n  scale: ms", "m.yaml:3:10: scale: \"ms\" is not a number to multiply by"},
      {"mappings:\n- match: a\n  ttl: soon", "m.yaml:3:8: ttl: \"soon\" is not a duration (10, 30s, 5m, 1m20s)"},
      {"mappings:\n- match: a\n  buckets: {}", "m.yaml:3:12: buckets: expected a list of at most 500 upper bounds"},
      {"mappings:\n- match: a\n  buckets: [1, x]", "m.yaml:3:16: buckets: \"x\" is not a number"},
      {"mappings:\n- match: a\n  buckets: [.inf, 1]",
       "m.yaml:3:13: buckets: \".inf\" is not a number (the bucket up to +Inf is added automatically)"},
      {"mappings:\n- match: a\n  buckets: [2, 1]", "m.yaml:3:16: buckets: \"1\" is not larger than the bound before it"},
      {"mappings:\n- match: a\n  type: gauge\n  buckets: [1]", "m.yaml:4:12: buckets need type: histogram"},
      {"mappings:\n- match: a\n  quantiles: [99]", "m.yaml:3:15: quantiles: \"99\" is not a number between 0 and 1"},
      {"mappings:\n- match: a\n  type: histogram\n  quantiles: [0.5]", "m.yaml:4:14: quantiles need type: summary"},
      {"mappings:\n- match: a\n  type: summary\n  observer_type: histogram", "m.yaml:4:18: observer_type: differs from type"},
      {"mappings:\n- match: a\n  summary_options: {quantiles: [{quantil: 1}]}",
       "m.yaml:3:34: quantiles: unknown key \"quantil\" (quantile, error)"},
      {"mappings:\n- match: a\n  scale: \"0.01\"",
       "m.yaml:3:10: scale: \"0.01\" is not a number to multiply by (0.001: milliseconds to seconds); leave out the quotes"},
      {"defaults: {group: b*}\nmappings: []", "m.yaml:1:19: defaults: group: \"b*\" has a * that is not a whole component"},
      {"defaults: 5", "m.yaml:1:11: defaults: expected keys (match_type: ...), found a value"},
      {"defaults: {name: x}", "m.yaml:1:12: defaults: unknown key \"name\""},
      {"mappings: [", "m.yaml:"},
  };
  for (const auto& one : cases) {
    const MappingFile file = ParseRules(one.text);
    EXPECT_THAT(file.errors, Contains(HasSubstr(one.error))) << one.text;
    EXPECT_TRUE(file.rules == nullptr || std::ranges::all_of(file.rules->rules(), &MappingRule::left_out)) << one.text;
  }
}

TEST(MappingFile, AnErrorCostsItsRuleAlone) {
  constexpr char kRules[] = R"(
defaults: {tttl: 5m, ttl: 10m}
mappings:
- {match: a.*, name: good, type: gague}
- {match: b.*, name: x_$3}
- {match: c, nmae: c}
- {match: "*.*", name: kept_$1}
- {match: "*", name: last}
)";
  const MappingFile file = ParseRules(kRules);
  EXPECT_THAT(file.errors,
              ElementsAre(HasSubstr("m.yaml:2:12: "), HasSubstr("m.yaml:4:"),
                          HasSubstr("m.yaml:5:22: name: \"x_$3\": $3 refers to nothing"), HasSubstr("m.yaml:6:14: ")));
  EXPECT_THAT(file.notes, IsEmpty());
  ASSERT_NE(file.rules, nullptr);
  EXPECT_EQ(file.rules->Expose({"g", "a.b"})->name, "g_a_b") << "not that of a later rule";
  EXPECT_EQ(file.rules->Expose({"g", "b.x"})->name, "g_b_x");
  EXPECT_EQ(file.rules->Expose({"g", "c"})->name, "g_c");
  EXPECT_EQ(file.rules->Expose({"g", "d.x"})->name, "kept_d");
  EXPECT_EQ(file.rules->Expose({"g", "d.x"})->ttl, std::chrono::minutes(10));
  EXPECT_EQ(file.rules->Expose({"g", "d"})->name, "last");
}

TEST(MappingFile, TheMetricsOfARuleWithAnErrorAreThoseOfTheBundledRules) {
  const MappingFile file = ParseRules(R"(
mappings:
- {match: workers.*.flakiness, name: mine, scale: zero}
- {match: f.duration.ms, type: gague}
)");
  const auto flakiness = file.rules->Expose({"torchelastic", "workers.a.flakiness"});
  EXPECT_EQ(flakiness->name, "torchelastic_worker_group_flakiness_ratio");
  EXPECT_EQ(flakiness->scale, 0.01);
  EXPECT_EQ(file.rules->Expose({"g", "f.duration.ms"})->type, MetricType::kHistogram);
}

// Files for statsd_exporter usually end with a rule that drops what is left.
TEST(MappingFile, NoRuleTakesTheMetricsOfARuleWithAnError) {
  const char* const ends[] = {"{match: ., match_type: regex, action: drop, name: dropped}", "{match: '*.*', action: drop}",
                              "{match: ^loss, match_type: regex, action: drop}",
                              "{match: (.+), match_type: regex, name: other}"};
  const char* const wrong[] = {
      "{match: loss.*, name: loss, scale: x}",
      "{match: loss.*, name: loss, nmae: x}",
      "{match: loss.*, name: loss, group: a*}",
      "{match: loss.*, name: loss, match_metric_type: timr}",
      "{match: loss.*, action: drp}",
      "{match: loss.*, labels: {__x: $1}}",
      "{match: loss.*, buckets: [2, 1]}",
      "{match: loss.*, match_type: blob}",
      "{match: loss.*, match: b}",
      "{mtach: loss.*}",
      "{match: [loss]}",
      "{match: loss*}",
      "{match: .loss.*}",
      "{match: '^loss\\.(train', match_type: regex}",
      "{match: '^loss\\.(train|val)$', name: loss_$1}",     // without its match_type
      "{match: '^loss\\.(train|val)$', matchtype: regex}",  //
      "loss.train",
  };
  for (const char* end : ends) {
    for (const char* rule : wrong) {
      const bool is_regex = std::string_view(rule).find("match_type: regex") != std::string_view::npos;
      if (is_regex && std::string_view(end).find("regex") == std::string_view::npos) continue;  // globs come first
      const MappingFile file = ParseRules("mappings: [" + std::string(rule) + ", " + end + "]");
      EXPECT_FALSE(file.errors.empty()) << rule;
      const auto exposed = file.rules->Expose({"g", "loss.train", MetricType::kUntyped});
      EXPECT_FALSE(exposed->drop) << rule << ", " << end;
      EXPECT_EQ(exposed->name, "g_loss_train") << rule << ", " << end;
    }
  }
  const MappingFile defaults =
      ParseRules("{defaults: {match_type: regexp}, mappings: [{match: ^loss}, {match: ., match_type: regex, action: drop}]}");
  EXPECT_FALSE(defaults.rules->Expose({"g", "loss.train"})->drop);
}

TEST(MappingFile, ARuleThatDropsWaitsUntilAllMatchesAreKnown) {
  const MappingFile file = ParseRules(R"(
mappings:
- {match: first, action: drop}
- {match: a*, name: x}
- {match: second, action: drop}
- {match: third, name: third}
)");
  EXPECT_TRUE(file.rules->Expose({"g", "first"})->drop) << "it comes first";
  EXPECT_FALSE(file.rules->Expose({"g", "second"})->drop);
  EXPECT_EQ(file.rules->Expose({"g", "third"})->name, "third");
  EXPECT_THAT(file.notes, ElementsAre(HasSubstr("m.yaml:5:3: this rule is not applied")));
}

TEST(MappingFile, WithoutRulesToReadThereAreNone) {
  for (const char* text : {"", "# nothing\n", "mappings: [", "- a\n", "just a text\n"}) {
    const MappingFile file = ParseRules(text);
    EXPECT_EQ(file.rules, nullptr) << text;
    EXPECT_EQ(file.errors.size(), 1U) << text;
  }
}

TEST(MappingFile, AKeyWithoutAValueIsMissing) {
  const std::string text =
      "defaults:\nmappings:\n- match: a\n  name: b\n  labels:\n  help:\n  type:\n  buckets:\n  histogram_options:\n  action:\n";
  EXPECT_EQ(ExposedBy(text, "a")->name, "b");
  EXPECT_EQ(ExposedBy(text, "a")->type, std::nullopt);
  EXPECT_EQ(ExposedBy("mappings:\n", "a")->name, "g_a");
}

TEST(MappingFile, EachErrorIsSaid) {
  const MappingFile file = ParseRules("mappings:\n- match: a*\n  type: x\n- name: b\n- match: c\n  scale: y\n");
  EXPECT_EQ(file.errors.size(), 4U);
}

TEST(MappingFile, EachErrorIsSaidOnce) {
  EXPECT_THAT(ParseRules("mappings:\n- match:\n  name: a\n").errors, ElementsAre("m.yaml:2:3: match: the value is missing"));
  const MappingFile file = ParseRules("defaults: {group: b*}\nmappings:\n- match: a\n- match: b\n- {match: c, group: d}\n");
  EXPECT_THAT(file.errors, ElementsAre(HasSubstr("m.yaml:1:19: defaults: group: \"b*\"")));
}

TEST(MappingFile, AnEmptyGroupIsTheEmptyGroup) {
  const std::string text = "mappings:\n- {match: a, group: \"\", name: bare}\n";
  EXPECT_EQ(ExposedBy(text, "a", "")->name, "bare");
  EXPECT_EQ(ExposedBy(text, "a", "g")->name, "g_a");
  EXPECT_EQ(ExposedBy("defaults: {group: \"\"}\nmappings:\n- {match: a, name: bare}\n", "a", "g")->name, "g_a");
}

TEST(MappingFile, WhatHasNoEffectIsNoted) {
  const struct {
    std::string text;
    const char* note;
  } cases[] = {
      {"mappings:\n- match: a\n  labels: {job: x}",
       "m.yaml:3:12: label job belongs to the agent or a format; it is shown as exported_job"},
      {"mappings:\n- match: a\n  match_metric_type: counter\n  type: gauge",
       "m.yaml:4:3: type has no effect: the rule matches no streams"},
      {"mappings:\n- match: a\n  match_metric_type: counter\n  buckets: [1]\n  name: b\n  ttl: 5s",
       "m.yaml:4:3: buckets, ttl have no effect: the rule matches no streams"},
      {"mappings:\n- match: a\n  match_metric_type: gauge\n  histogram_options: {buckets: [1]}",
       "m.yaml:4:3: histogram_options has no effect"},
      {"mappings:\n- match: a\n  match_metric_type: gauge\n  quantiles: [0.5]", "m.yaml:4:3: quantiles has no effect"},
      {"mappings:\n- match: a\n  match_metric_type: histogram\n  summary_options: {quantiles: [0.5]}",
       "m.yaml:4:3: summary_options has no effect"},
      {"mappings:\n- action: drop\n  match: a\n  name: b\n  match_metric_type: counter\n  scale: 2\n  type: gauge",
       "m.yaml:4:3: name, scale, type have no effect: the rule drops what it matches"},
      {"mappings:\n- match: a\n  labels: {exported_job: y, job: x}",
       "m.yaml:3:29: label job belongs to the agent or a format; it is shown as exported_job_2"},
      {"mappings:\n- match: a\n- match: a", "m.yaml:3:3: this rule never applies: the rule of line 2 has the same match"},
      {"mappings:\n- match: a\n  summary_options: {max_age: 1m, quantiles: [0.5]}", "m.yaml:3:21: max_age has no effect"},
  };
  for (const auto& one : cases) {
    const MappingFile file = ParseRules(one.text);
    EXPECT_NE(file.rules, nullptr) << one.text;
    EXPECT_THAT(file.notes, ElementsAre(HasSubstr(one.note))) << one.text;
  }
  EXPECT_THAT(ParseRules("mappings:\n- match: a\n  labels: {role: x}\n- match: a\n  group: g\n").notes, IsEmpty());
}

TEST(MappingFile, TheSettingNamesAFileOrTheBundledRulesOrNone) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "m.yaml") << "mappings:\n- match: a\n  name: from_file\n";
  const MappingFile read = ReadMapping(directory / "m.yaml");
  ASSERT_NE(read.rules, nullptr);
  EXPECT_EQ(read.rules->Expose({"", "a"})->name, "from_file");
  EXPECT_EQ(read.rules->rules()[0].place, directory / "m.yaml:2");
  EXPECT_THAT(ReadMapping(directory / "no.yaml").errors, ElementsAre(HasSubstr("no.yaml")));
  EXPECT_EQ(ReadMapping("none").rules, nullptr);
  EXPECT_THAT(ReadMapping("none").errors, IsEmpty());
  const MappingFile bundled = ReadMapping("");
  EXPECT_THAT(bundled.errors, IsEmpty());
  EXPECT_THAT(bundled.notes, IsEmpty());
  EXPECT_FALSE(bundled.rules->rules().empty());
}

}  // namespace
}  // namespace persia::agent

#include "remote/relabel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::HasSubstr;

using A = RelabelAction;

const Labels kSeries{{"__name__", "loss"}, {"instance", "rep_1"}, {"job", "dlrm"}, {"role", "trainer"}};

// kSeries after relabelling, or "(dropped)".
std::string After(const std::vector<RelabelConfig>& configs, Labels labels = kSeries) {
  RelabelRules rules;
  for (const RelabelConfig& config : configs) {
    auto rule = RelabelRule::Make(config);
    if (!rule.ok()) return rule.error();
    rules.push_back(std::move(rule).value());
  }
  if (!Relabel(rules, labels)) return "(dropped)";
  std::string text;
  for (const auto& [name, value] : labels) text += (text.empty() ? "" : ",") + name + "=" + value;
  return text;
}

constexpr char kUnchanged[] = "__name__=loss,instance=rep_1,job=dlrm,role=trainer";
constexpr char kDropped[] = "(dropped)";

// What PrometheusTableHolds lacks.
TEST(RelabelTest, ActsAsPrometheusDoes) {
  struct Case {
    const char* what;
    RelabelConfig config;
    const char* result;
  };
  const Case cases[] = {
      {"labels are joined by what is told",
       {.action = A::kDrop, .source_labels = {"job", "none", "role"}, .separator = "--", .regex = "dlrm----trainer"},
       kDropped},
      {"replace by defaults copies",
       {.source_labels = {"job"}, .target_label = "team"},
       "__name__=loss,instance=rep_1,job=dlrm,role=trainer,team=dlrm"},
      {"a name goes as far as it can",
       {.source_labels = {"job"}, .target_label = "job", .replacement = "a-$1-b"},
       "__name__=loss,instance=rep_1,job=a-dlrm-b,role=trainer"},
      {"two dollars are one",
       {.source_labels = {"job"}, .target_label = "job", .replacement = "$$1$"},
       "__name__=loss,instance=rep_1,job=$1$,role=trainer"},
      {"a metric is renamed",
       {.source_labels = {"__name__"}, .target_label = "__name__", .replacement = "my_$1"},
       "__name__=my_loss,instance=rep_1,job=dlrm,role=trainer"},
      {"a named group",
       {.source_labels = {"instance"}, .regex = "(?P<kind>.*)_(?<no>.*)", .target_label = "job", .replacement = "$no-${kind}"},
       "__name__=loss,instance=rep_1,job=1-rep,role=trainer"},
      {"no group has the name 1x, so the value is empty",
       {.source_labels = {"job"}, .target_label = "job", .replacement = "$1x"},
       "__name__=loss,instance=rep_1,role=trainer"},
      {"no group has the name 01",
       {.source_labels = {"job"}, .target_label = "job", .replacement = "${01}"},
       "__name__=loss,instance=rep_1,role=trainer"},
      {"what looks like a named group in a class",
       {.action = A::kDrop, .source_labels = {"job"}, .regex = "[(?<d]lrm"},
       kDropped},
      {"an empty expression matches the empty text alone",
       {.source_labels = {"job"}, .regex = "", .target_label = "job", .replacement = "x"},
       kUnchanged},
      {"so it drops series without the label", {.action = A::kDrop, .source_labels = {"none"}, .regex = ""}, kDropped},
      {"drop without source labels matches the empty text", {.action = A::kDrop}, kDropped},
      {"keep without source labels too", {.action = A::kKeep, .regex = "x"}, kDropped},
      {"labelmap copies, over labels that exist too",
       {.action = A::kLabelMap, .regex = "(r)ole|instance", .replacement = "job$1"},
       "__name__=loss,instance=rep_1,job=rep_1,jobr=trainer,role=trainer"},
      {"labelmap does not see its own labels",
       {.action = A::kLabelMap, .regex = "(j.*|k.*)", .replacement = "k$1"},
       "__name__=loss,instance=rep_1,job=dlrm,kjob=dlrm,role=trainer"},
      {"labelmap to what is no name", {.action = A::kLabelMap, .regex = "(x?)job", .replacement = "$1"}, kUnchanged},
      {"lowercase of an empty text removes the label",
       {.action = A::kLowercase, .source_labels = {"none"}, .target_label = "job"},
       "__name__=loss,instance=rep_1,role=trainer"},
      {"uppercase joins",
       {.action = A::kUppercase, .source_labels = {"job", "role"}, .separator = "\u00e9", .target_label = "job"},
       "__name__=loss,instance=rep_1,job=DLRM\u00e9TRAINER,role=trainer"},
  };
  for (const Case& c : cases) EXPECT_EQ(After({c.config}), c.result) << c.what;
}

TEST(RelabelTest, RulesApplyInOrder) {
  EXPECT_EQ(After({{.target_label = "tmp", .replacement = "x"}, {.action = A::kDrop, .source_labels = {"tmp"}, .regex = "x"}}),
            kDropped);
  EXPECT_EQ(After({{.action = A::kDrop, .source_labels = {"tmp"}, .regex = "x"},
                   {.target_label = "tmp", .replacement = "x"},
                   {.action = A::kLabelDrop, .regex = "tmp"}}),
            kUnchanged);
}

// The cases of Prometheus' own test (model/relabel/relabel_test.go), without those of names that remote write 1.0 does not
// have, and of actions that the agent has not.
TEST(RelabelTest, PrometheusTableHolds) {
  struct Case {
    Labels labels;
    std::vector<RelabelConfig> rules;
    const char* result;
  };
  const Labels abc{{"a", "foo"}, {"b", "bar"}, {"c", "baz"}};
  const Labels a{{"a", "foo"}};
  const Labels bs{{"a", "foo"}, {"b1", "bar"}, {"b2", "baz"}};
  const Labels lines{{"a", "line1\nline2"}, {"b", "bar"}, {"c", "baz"}};
  const RelabelConfig to_nothing{
      .source_labels = {"a"}, .regex = "some-([^-]+)-([^,]+)", .target_label = "${3}", .replacement = "${1}"};
  const auto tag = [](const char* regex, const char* target, const char* replacement) {
    return RelabelConfig{
        .source_labels = {"__meta_sd_tags"}, .regex = regex, .target_label = target, .replacement = replacement};
  };
  const auto on_a = [](A action, const char* regex) {
    return RelabelConfig{.action = action, .source_labels = {"a"}, .regex = regex};
  };
  constexpr char kPort[] = "__meta_kubernetes_pod_container_port_name";
  constexpr char kAnnotation[] = "__meta_kubernetes_pod_annotation_XXX_metrics_port";
  const Case cases[] = {
      {abc,
       {{.source_labels = {"a"}, .regex = "f(.*)", .target_label = "d", .replacement = "ch${1}-ch${1}"}},
       "a=foo,b=bar,c=baz,d=choo-choo"},
      {abc,
       {{.source_labels = {"a", "b"}, .regex = "f(.*);(.*)r", .target_label = "a", .replacement = "b${1}${2}m"},
        {.source_labels = {"c", "a"}, .regex = "(b).*b(.*)ba(.*)", .target_label = "d", .replacement = "$1$2$2$3"}},
       "a=boobam,b=bar,c=baz,d=boooom"},
      {a,
       {on_a(A::kDrop, ".*o.*"), {.source_labels = {"a"}, .regex = "f(.*)", .target_label = "d", .replacement = "ch$1-ch$1"}},
       kDropped},
      {{{"a", "foo"}, {"b", "bar"}}, {on_a(A::kDrop, ".*o.*")}, kDropped},
      {{{"a", "abc"}}, {{.source_labels = {"a"}, .regex = ".*(b).*", .target_label = "d"}}, "a=abc,d=b"},
      {a, {on_a(A::kDrop, "no-match")}, "a=foo"},
      {a, {on_a(A::kDrop, "f|o")}, "a=foo"},
      {a, {on_a(A::kKeep, "no-match")}, kDropped},
      {a, {on_a(A::kKeep, "f.*")}, "a=foo"},
      {{{"a", "boo"}}, {{.source_labels = {"a"}, .regex = "f", .target_label = "b", .replacement = "bar"}}, "a=boo"},
      {{{"a", "foo"}, {"f", "baz"}},
       {{.source_labels = {"a"}, .regex = "(f).*", .target_label = "$1", .replacement = "$2"}},
       "a=foo"},
      {bs,
       {{.action = A::kLabelMap, .regex = "(b.*)", .replacement = "bar_${1}"}},
       "a=foo,b1=bar,b2=baz,bar_b1=bar,bar_b2=baz"},
      {{{"__meta_my_bar", "aaa"}, {"__meta_my_baz", "bbb"}, {"__meta_other", "ccc"}, {"a", "foo"}},
       {{.action = A::kLabelMap, .regex = "__meta_(my.*)", .replacement = "${1}"}},
       "__meta_my_bar=aaa,__meta_my_baz=bbb,__meta_other=ccc,a=foo,my_bar=aaa,my_baz=bbb"},
      {{{"a", "some-name-value"}},
       {{.source_labels = {"a"}, .regex = "some-([^-]+)-([^,]+)", .target_label = "${1}", .replacement = "${2}"}},
       "a=some-name-value,name=value"},
      {{{"a", "some-name-value"}},
       {{.source_labels = {"a"}, .regex = "some-([^-]+)-([^,]+)", .target_label = "${1}", .replacement = "${3}"}},
       "a=some-name-value"},
      {{{"a", "some-name-0"}}, {to_nothing, to_nothing, to_nothing}, "a=some-name-0"},
      {{{"__meta_sd_tags", "path:/secret,job:some-job,label:foo=bar"}},
       {tag("(?:.+,|^)path:(/[^,]+).*", "__metrics_path__", "${1}"), tag("(?:.+,|^)job:([^,]+).*", "job", "${1}"),
        tag("(?:.+,|^)label:([^=]+)=([^,]+).*", "${1}", "${2}")},
       "__meta_sd_tags=path:/secret,job:some-job,label:foo=bar,__metrics_path__=/secret,foo=bar,job=some-job"},
      {{{kAnnotation, "9091"}, {kPort, "foo"}},
       {{.action = A::kLabelDrop, .regex = "^__meta_kubernetes_pod_container_port_name$"},
        {.source_labels = {kAnnotation}, .regex = "(.+)", .target_label = kPort, .replacement = "metrics"},
        {.action = A::kKeep, .source_labels = {kPort}, .regex = "^metrics$"}},
       "__meta_kubernetes_pod_annotation_XXX_metrics_port=9091,__meta_kubernetes_pod_container_port_name=metrics"},
      {bs, {{.action = A::kLabelKeep, .regex = "(b.*)"}}, "b1=bar,b2=baz"},
      {bs, {{.action = A::kLabelDrop, .regex = "(b.*)"}}, "a=foo"},
      {{{"foo", "bAr123Foo"}},
       {{.action = A::kUppercase, .source_labels = {"foo"}, .target_label = "foo_uppercase"},
        {.action = A::kLowercase, .source_labels = {"foo"}, .target_label = "foo_lowercase"}},
       "foo=bAr123Foo,foo_lowercase=bar123foo,foo_uppercase=BAR123FOO"},
      {lines,
       {{.source_labels = {"a"}, .regex = "line1.*line2", .target_label = "d", .replacement = "match${1}"}},
       "a=line1\nline2,b=bar,c=baz,d=match"},
      {lines,
       {{.source_labels = {"a"},
         .regex = "(line1).*(?<second>line2)",
         .target_label = "label1_${1}",
         .replacement = "val_${second}"},
        {.source_labels = {"a"},
         .regex = "(line1).*(?<second>line2)",
         .target_label = "label2_$1",
         .replacement = "val_$second"}},
       "a=line1\nline2,b=bar,c=baz,label1_line1=val_line2,label2_line1=val_line2"},
      {{{"__name__", "http_requests_total"}},
       {{.source_labels = {"__name__"}, .regex = ".*_total$", .target_label = "__type__", .replacement = "counter"}},
       "__name__=http_requests_total,__type__=counter"},
  };
  for (const Case& c : cases) EXPECT_EQ(After(c.rules, c.labels), c.result);
}

// Prometheus' table of names with references, by the rules for names of remote write 1.0.
TEST(RelabelTest, ATargetMayHaveReferences) {
  for (const char* good : {"label", "label${1}", "${1}label", "${1}", "$1", "asd$2asd", "_${1}_", "foo${bar}foo"}) {
    EXPECT_TRUE(RelabelRule::Make({.target_label = good}).ok()) << good;
    EXPECT_TRUE(RelabelRule::Make({.action = A::kLabelMap, .replacement = good}).ok()) << good;
  }
  for (const char* bad :
       {"-label", "${", "$", "${}", "foo${", "-foo${1}bar-", "bar.foo${1}bar", "0${3}", "-${3}", "utf-8.label", "a$$"}) {
    EXPECT_FALSE(RelabelRule::Make({.target_label = bad}).ok()) << bad;
    EXPECT_FALSE(RelabelRule::Make({.action = A::kLabelMap, .replacement = bad}).ok()) << bad;
  }
}

TEST(RelabelTest, InvalidRulesAreRefused) {
  struct Case {
    RelabelConfig config;
    const char* error;
  };
  const Case cases[] = {
      {{.source_labels = {"job"}, .regex = "(", .target_label = "x"}, "regex: \"(\""},
      {{.action = A::kKeep, .source_labels = {"job"}, .regex = "a)(?:b"}, "regex: \"a)(?:b\""},
      {{.source_labels = {"job"}}, "target_label: the action replace needs one"},
      {{.source_labels = {"job"}, .target_label = "a-b"}, "\"a-b\" is not a label's name"},
      {{.source_labels = {"a b"}, .target_label = "x"}, "source_labels: \"a b\""},
      {{.action = A::kLowercase, .source_labels = {"job"}}, "target_label: the action lowercase needs one"},
      {{.action = A::kUppercase, .target_label = "${3}"}, "target_label: \"${3}\" is not a label's name"},
      {{.action = A::kUppercase, .target_label = "a", .replacement = "x"}, "replacement: the action uppercase has none"},
      {{.action = A::kLabelMap, .replacement = ""}, "replacement: \"\" is not a label's name"},
      {{.action = A::kLabelDrop, .source_labels = {"job"}, .regex = "x"},
       "the action labeldrop has a regex and no other field"},
      {{.action = A::kLabelKeep, .regex = "x", .target_label = "a"}, "the action labelkeep has a regex and no other field"},
  };
  for (const Case& c : cases) EXPECT_THAT(After({c.config}), HasSubstr(c.error));
}

TEST(RelabelTest, AsciiLettersChange) {
  const auto changed = [](A action, const char* text) {
    return After({{.action = action, .source_labels = {"a"}, .target_label = "a"}}, {{"a", text}});
  };
  EXPECT_EQ(changed(A::kUppercase, "azAZ@[`{1 \u00e9\xff"), "a=AZAZ@[`{1 \u00e9\xff");
  EXPECT_EQ(changed(A::kLowercase, "azAZ@[`{1 \u00c9\xff"), "a=azaz@[`{1 \u00c9\xff");
}

}  // namespace
}  // namespace persia::agent

#include "remote/relabel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(RelabelTest, ActsAsPrometheusDoes) {
  struct Case {
    const char* what;
    RelabelConfig config;
    const char* result;
  };
  const Case cases[] = {
      {"keep what matches", {.action = A::kKeep, .source_labels = {"job"}, .regex = "dl.*"}, kUnchanged},
      {"keep: the whole text must match", {.action = A::kKeep, .source_labels = {"job"}, .regex = "dl"}, kDropped},
      {"an alternative is anchored on both sides", {.action = A::kKeep, .source_labels = {"job"}, .regex = "d|m"}, kDropped},
      {"keep: a label that is not there is empty", {.action = A::kKeep, .source_labels = {"none"}, .regex = ".+"}, kDropped},
      {"drop what matches", {.action = A::kDrop, .source_labels = {"__name__"}, .regex = "loss"}, kDropped},
      {"drop nothing else", {.action = A::kDrop, .source_labels = {"__name__"}, .regex = "los"}, kUnchanged},
      {"labels are joined by ;", {.action = A::kDrop, .source_labels = {"job", "role"}, .regex = "dlrm;trainer"}, kDropped},
      {"or by what is told",
       {.action = A::kDrop, .source_labels = {"job", "none", "role"}, .separator = "--", .regex = "dlrm----trainer"},
       kDropped},
      {"replace by defaults copies",
       {.source_labels = {"job"}, .target_label = "team"},
       "__name__=loss,instance=rep_1,job=dlrm,role=trainer,team=dlrm"},
      {"replace takes groups",
       {.source_labels = {"instance"}, .regex = "rep_(\\d+)", .target_label = "replica", .replacement = "no${1}x$1"},
       "__name__=loss,instance=rep_1,job=dlrm,replica=no1x1,role=trainer"},
      {"a name goes as far as it can",
       {.source_labels = {"job"}, .target_label = "job", .replacement = "a-$1-b"},
       "__name__=loss,instance=rep_1,job=a-dlrm-b,role=trainer"},
      {"two dollars are one",
       {.source_labels = {"job"}, .target_label = "job", .replacement = "$$1$"},
       "__name__=loss,instance=rep_1,job=$1$,role=trainer"},
      {"a group that is not there is empty",
       {.source_labels = {"job"}, .target_label = "job", .replacement = "x$7"},
       "__name__=loss,instance=rep_1,job=x,role=trainer"},
      {"without a match nothing is replaced",
       {.source_labels = {"job"}, .regex = "x", .target_label = "job", .replacement = "y"},
       kUnchanged},
      {"an empty value takes the label away",
       {.target_label = "role", .replacement = ""},
       "__name__=loss,instance=rep_1,job=dlrm"},
      {"a constant needs no source",
       {.target_label = "cluster", .replacement = "eu"},
       "__name__=loss,cluster=eu,instance=rep_1,job=dlrm,role=trainer"},
      {"the target may have groups",
       {.source_labels = {"role"}, .regex = "(tr)(.*)", .target_label = "is_$1", .replacement = "$2"},
       "__name__=loss,instance=rep_1,is_tr=ainer,job=dlrm,role=trainer"},
      {"a target that is no name is none", {.source_labels = {"role"}, .regex = "(.*)", .target_label = "${2}"}, kUnchanged},
      {"a metric is renamed",
       {.source_labels = {"__name__"}, .target_label = "__name__", .replacement = "my_$1"},
       "__name__=my_loss,instance=rep_1,job=dlrm,role=trainer"},
      {"labeldrop", {.action = A::kLabelDrop, .regex = "inst.*|role"}, "__name__=loss,job=dlrm"},
      {"labelkeep", {.action = A::kLabelKeep, .regex = "__name__|job"}, "__name__=loss,job=dlrm"},
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

TEST(RelabelTest, ADotMatchesALineEndToo) {
  EXPECT_EQ(After({{.action = A::kDrop, .source_labels = {"a"}, .regex = "x.y"}}, {{"a", "x\ny"}}), kDropped);
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
      {{.action = A::kDrop, .regex = "x"}, "source_labels"},
      {{.action = A::kLabelDrop, .source_labels = {"job"}, .regex = "x"}, "labeldrop and labelkeep have a regex"},
      {{.source_labels = {"job"}, .regex = "(?P<a>.*)", .target_label = "x", .replacement = "${a}"}, "group \"a\""},
      {{.source_labels = {"job"}, .target_label = "x", .replacement = "$1x"}, "group \"1x\""},
  };
  for (const Case& c : cases) EXPECT_THAT(After({c.config}), HasSubstr(c.error));
}

}  // namespace
}  // namespace persia::agent

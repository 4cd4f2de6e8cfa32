// The language of rules against statsd_exporter's documents (README.md and config.example.yml of
// github.com/prometheus/statsd_exporter): the same rules, the same names, the same outcome. The last
// test has the intended differences, which config/README.md lists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/bounds.h"
#include "naming/mapping_file.h"

namespace persia::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A metric and its exposed form: `name{label="value",...}`, and for an observer its kind after a blank.
struct Outcome {
  const char* metric;
  const char* exposed;
};

struct Documented {
  const char* what;
  const char* rules;
  std::vector<Outcome> outcomes;
};

std::string Shown(const MappingRules& rules, const std::string& metric, MetricType type = MetricType::kUntyped) {
  const auto exposed = rules.Expose({"", metric, type});
  if (exposed->drop) {
    return "dropped";
  }
  std::string out = exposed->name + "{";
  for (const auto& [name, value] : exposed->labels) {
    out += (out.back() == '{' ? "" : ",") + name + "=" + value;
  }
  out += "}";
  if (exposed->type) {
    out += " " + std::string(TypeName(*exposed->type));
  }
  if (exposed->scale != 1) {
    out += " x" + std::to_string(exposed->scale);
  }
  return out;
}

const Documented kDocumented[] = {
    {"glob matching",
     R"(
mappings:
- match: "test.dispatcher.*.*.*"
  name: "dispatcher_events_total"
  labels: {processor: "$1", action: "$2", outcome: "$3", task: "test_dispatcher"}
- match: "*.signup.*.*"
  name: "signup_events_total"
  labels: {provider: "$2", outcome: "$3", task: "${1}_server"}
)",
     {{"test.dispatcher.FooProcessor.send.success",
       "dispatcher_events_total{action=send,outcome=success,processor=FooProcessor,task=test_dispatcher}"},
      {"foo_product.signup.facebook.failure", "signup_events_total{outcome=failure,provider=facebook,task=foo_product_server}"},
      {"test.web-server.foo.bar", "test_web_server_foo_bar{}"}}},
    {"references in names",
     "mappings: [{match: test.*.*.counter, name: '${2}_total', labels: {provider: $1}}]",
     {{"test.a.b.counter", "b_total{provider=a}"}, {"test.a.counter", "test_a_counter{}"}}},
    {"a star is a whole component, and the number of components counts",
     "mappings: [{match: a.*, name: found}]",
     {{"a.b", "found{}"}, {"a.b.c", "a_b_c{}"}, {"a", "a{}"}, {"x.a.b", "x_a_b{}"}}},
    {"rules in order, from the left",
     "mappings: [{match: a.b.c, name: r1}, {match: a.b.*, name: r2}, {match: a.*.d, name: r3}, {match: a.*.*, name: r4}]",
     {{"a.b.c", "r1{}"}, {"a.b.d", "r2{}"}, {"a.x.d", "r3{}"}, {"a.x.y", "r4{}"}}},
    {"an earlier, wider rule hides a later one",
     "mappings: [{match: a.*.*, name: wide}, {match: a.b.c, name: narrow}]",
     {{"a.b.c", "wide{}"}}},
    {"without order the most specific rule counts",
     "{defaults: {glob_disable_ordering: true}, mappings: [{match: a.*.*, name: wide}, {match: a.b.c, name: narrow}]}",
     {{"a.b.c", "narrow{}"}, {"a.b.d", "wide{}"}}},
    {"regular expressions",
     R"(
mappings:
- match: "test\\.(\\w+)\\.(\\w+)\\.counter"
  match_type: regex
  name: "${2}_total"
  labels: {provider: "$1"}
- match: "(.*)\\.(.*)--(.*)\\.status\\.(.*)\\.count"
  match_type: regex
  name: "request_total"
  labels: {hostname: "$1", exec: "$2", protocol: "$3", code: "$4"}
)",
     {{"test.a.b.counter", "b_total{provider=a}"},
      {"host.app--http.status.200.count", "request_total{code=200,exec=app,hostname=host,protocol=http}"}}},
    {"regular expressions come after all globs",
     "mappings: [{match: a.+, match_type: regex, name: regex}, {match: a.b, name: glob}]",
     {{"a.b", "glob{}"}, {"a.c", "regex{}"}}},
    {"groups with names",
     R"(
mappings:
- match: '^af\.dag\.(?P<dag>.+)\.(?<task>[^.]+)\.duration$'
  match_type: regex
  name: dag_duration
  labels: {dag: "${dag}", task: $task, both: "$dag-$task of ${1}"}
- match: '^x\.(?P<group>\w+)$'
  match_type: regex
  name: x_${group}
)",
     {{"af.dag.d.1.t.duration", "dag_duration{both=d.1-t of d.1,dag=d.1,task=t}"}, {"x.y", "x_y{}"}}},
    {"the whole match is $0",
     "mappings: [{match: .+, match_type: regex, name: $0, labels: {statsd_metric_name: $0}}]",
     {{"my.statsd_counter", "my_statsd_counter{statsd_metric_name=my.statsd_counter}"}}},
    {"help and labels",
     "mappings: [{match: http.request.*, help: Total number of http requests, name: http_requests_total, labels: {code: $1}}]",
     {{"http.request.200", "http_requests_total{code=200}"}}},
    {"observers as summaries",
     R"(
mappings:
- match: "test.timing.*.*.*"
  observer_type: summary
  name: "my_timer"
  labels: {provider: "$2", outcome: "$3", task: "${1}_server"}
  summary_options:
    quantiles:
    - {quantile: 0.99, error: 0.001}
    - {quantile: 0.5, error: 0.005}
    max_age: 30s
    age_buckets: 3
    buf_cap: 1000
)",
     {{"test.timing.a.b.c", "my_timer{outcome=c,provider=b,task=a_server} summary"}}},
    {"observers as histograms",
     R"(
mappings:
- match: "test.timing.*.*.*"
  observer_type: histogram
  histogram_options:
    buckets: [ 0.01, 0.025, 0.05, 0.1 ]
    native_histogram_bucket_factor: 1.1
    native_histogram_max_buckets: 256
  name: "my_timer"
  labels: {provider: "$2", outcome: "$3", task: "${1}_server"}
)",
     {{"test.timing.a.b.c", "my_timer{outcome=c,provider=b,task=a_server} histogram"}}},
    {"defaults, and a rule that overrides them",
     R"(
defaults:
  observer_type: histogram
  histogram_options: {buckets: [.005, .01, .025, .05, .1, .25, .5, 1, 2.5 ]}
  summary_options: {quantiles: [{quantile: 0.99, error: 0.001}]}
  match_type: glob
  glob_disable_ordering: true
  ttl: 0
mappings:
- match: "test.timing.*"
  name: "my_timer"
- match: "other.distribution.*"
  observer_type: summary
  name: "other_distribution"
)",
     {{"test.timing.a", "my_timer{} histogram"},
      {"other.distribution.a", "other_distribution{} summary"},
      {"none", "none{} histogram"}}},
    {"dropping what no rule names",
     "mappings: [{match: test.timing.*, name: my_timer}, {match: ., match_type: regex, action: drop, name: dropped}]",
     {{"test.timing.a", "my_timer{}"}, {"anything.else", "dropped"}}},
    {"units",
     R"(
mappings:
- {match: foo.latency_ms, name: foo_latency_seconds, scale: 0.001}
- {match: bar.processed_kb, name: bar_processed_bytes, scale: 1024}
- {match: baz.latency_us, name: baz_latency_seconds, scale: 1e-6}
)",
     {{"foo.latency_ms", "foo_latency_seconds{} x0.001000"},
      {"bar.processed_kb", "bar_processed_bytes{} x1024.000000"},
      {"baz.latency_us", "baz_latency_seconds{} x0.000001"}}},
};

TEST(StatsdLanguage, DocumentedRulesDoWhatIsDocumented) {
  for (const Documented& documented : kDocumented) {
    const MappingFile file = ParseMapping("statsd.yaml", documented.rules);
    ASSERT_THAT(file.errors, IsEmpty()) << documented.what;
    for (const Outcome& outcome : documented.outcomes) {
      EXPECT_EQ(Shown(*file.rules, outcome.metric), outcome.exposed) << documented.what;
    }
  }
}

TEST(StatsdLanguage, AMetricsTypeNarrowsARule) {
  const MappingFile file = ParseMapping("statsd.yaml", R"(
mappings:
- {match: test.foo.*, name: test_foo, match_metric_type: counter, labels: {provider: $1}}
- {match: test.foo.*, name: test_foo_observed, match_metric_type: observer}
)");
  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(Shown(*file.rules, "test.foo.x", MetricType::kCounter), "test_foo{provider=x}");
  EXPECT_EQ(Shown(*file.rules, "test.foo.x", MetricType::kGauge), "test_foo_x{}");
  EXPECT_EQ(Shown(*file.rules, "test.foo.x", MetricType::kHistogram), "test_foo_observed{}");
  EXPECT_EQ(Shown(*file.rules, "test.foo.x", MetricType::kUntyped), "test_foo_observed{}");
}

// The names of its releases up to 0.30, which most posted files have.
TEST(StatsdLanguage, FormerNamesAreTaken) {
  const MappingFile file = ParseMapping("statsd.yaml", R"(
defaults: {timer_type: summary, quantiles: [{quantile: 0.9, error: 0.1}], buckets: [1, 4]}
mappings:
- {match: a.*, name: a, match_metric_type: timer, timer_type: histogram, buckets: [0.25, 1, .inf], labels: {provider: $1}}
- {match: b.*, name: b, timer_type: histogram}
- {match: c.*, name: c, timer_type: summary, buckets: [1], quantiles: [{quantile: 0.5, error: 0.05}]}
- {match: d.*, name: d, timer_type: histogram, observer_type: summary}
- {match: e.*, name: e}
- match: f.*
  name: f
  timer_type: summary
  summary_options:
    quantiles: [{quantile: 0, error: 0}, {quantile: 0.5, error: 0.005}, {quantile: 1, error: 0}]
    max_summary_age: 30s
    summary_age_buckets: 3
    stream_buffer_size: 1000
- {match: ., match_type: regex, action: drop, name: dropped}
)");
  EXPECT_THAT(file.errors, IsEmpty());
  EXPECT_THAT(file.notes, ElementsAre(HasSubstr("buckets has no effect"), HasSubstr("max_summary_age has no effect"),
                                      HasSubstr("stream_buffer_size has no effect"),
                                      HasSubstr("summary_age_buckets has no effect"), HasSubstr("name has no effect")));
  EXPECT_EQ(Shown(*file.rules, "a.x"), "a{provider=x} histogram");
  EXPECT_EQ(Shown(*file.rules, "a.x", MetricType::kHistogram), "a{provider=x} histogram");
  EXPECT_EQ(Shown(*file.rules, "a.x", MetricType::kCounter), "dropped");
  EXPECT_THAT(file.rules->Expose({"", "a.x"})->bounds, ElementsAre(0.25, 1));
  EXPECT_THAT(file.rules->Expose({"", "b.x"})->bounds, ElementsAre(1, 4));
  EXPECT_EQ(Shown(*file.rules, "c.x"), "c{} summary");
  EXPECT_THAT(file.rules->Expose({"", "c.x"})->quantiles, ElementsAre(0.5));
  EXPECT_EQ(Shown(*file.rules, "d.x"), "d{} summary");
  EXPECT_THAT(file.rules->Expose({"", "e.x"})->quantiles, ElementsAre(0.9));
  EXPECT_THAT(file.rules->Expose({"", "f.x"})->quantiles, ElementsAre(0, 0.5, 1));
}

TEST(StatsdLanguage, AnEmptyListStandsForTheDefaults) {
  const std::string defaults = "defaults: {buckets: [1, 4], quantiles: [0.5]}\n";
  for (const char* buckets : {"buckets: []", "histogram_options: {buckets: []}", "histogram_options: {}"}) {
    const std::string rule = "mappings: [{match: a, observer_type: histogram, " + std::string(buckets) + "}]";
    const MappingFile plain = ParseMapping("s.yaml", rule);
    EXPECT_THAT(plain.errors, IsEmpty()) << buckets;
    EXPECT_EQ(plain.rules->Expose({"", "a"})->bounds, DefaultStreamBounds()) << buckets;
    EXPECT_THAT(ParseMapping("s.yaml", defaults + rule).rules->Expose({"", "a"})->bounds, ElementsAre(1, 4)) << buckets;
  }
  for (const char* quantiles : {"quantiles: []", "summary_options: {quantiles: []}", "summary_options: {}"}) {
    const std::string rule = "mappings: [{match: a, observer_type: summary, " + std::string(quantiles) + "}]";
    const MappingFile plain = ParseMapping("s.yaml", rule);
    EXPECT_THAT(plain.errors, IsEmpty()) << quantiles;
    EXPECT_THAT(plain.rules->Expose({"", "a"})->quantiles, ElementsAre(0.5, 0.9, 0.99)) << quantiles;
    EXPECT_THAT(ParseMapping("s.yaml", defaults + rule).rules->Expose({"", "a"})->quantiles, ElementsAre(0.5)) << quantiles;
  }
  const MappingFile file =
      ParseMapping("s.yaml", "{defaults: {buckets: [], quantiles: []}, mappings: [{match: a, buckets: []}]}");
  EXPECT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(Shown(*file.rules, "a"), "a{} histogram");
}

TEST(StatsdLanguage, WhatIsRefusedThereIsRefusedHere) {
  const char* refused[] = {
      "mappings: [{match: 'a.b*', name: x}]",                  // a part of a component
      "mappings: [{match: '(', match_type: regex, name: x}]",  // no regular expression
      "mappings: [{match: a, name: x, labels: {__b: c}}]",     // no label's name
      "mappings: [{match: a, name: x, match_type: other}]",    //
      "mappings: [{match: a, name: x, action: other}]",        //
      "mappings: [{match: a, name: x, unknown: 1}]",           //
      "mappings: [{match: a, name: x, observer_type: histogram, summary_options: {quantiles: [{quantile: 0.5}]}}]",
      "mappings: [{match: a, name: x, observer_type: summary, histogram_options: {buckets: [1]}}]",
  };
  for (const char* rules : refused) {
    EXPECT_FALSE(ParseMapping("statsd.yaml", rules).errors.empty()) << rules;
  }
}

TEST(StatsdLanguage, WhatDiffersOnPurpose) {
  // `job` is the training job here: a rule's is set beside it. There it would be the target's.
  const MappingFile job = ParseMapping("s.yaml", "mappings: [{match: a.*, name: x, labels: {job: '${1}_server'}}]");
  EXPECT_EQ(Shown(*job.rules, "a.b"), "x{exported_job=b_server}");
  EXPECT_THAT(job.notes, Contains(HasSubstr("exported_job")));
  // A name may be left out, and stays the plain one.
  const MappingFile unnamed = ParseMapping("s.yaml", "mappings: [{match: a.*, labels: {x: $1}}]");
  EXPECT_EQ(Shown(*unnamed.rules, "a.b"), "a_b{x=b}");
  // $0 is there for globs too; $1_total is $1 and a text, in regexes too; a reference to nothing is refused.
  const MappingFile whole = ParseMapping("s.yaml", "mappings: [{match: a.*, name: x, labels: {whole: $0}}]");
  EXPECT_EQ(Shown(*whole.rules, "a.b"), "x{whole=a.b}");
  const MappingFile text = ParseMapping("s.yaml", "mappings: [{match: a(.), match_type: regex, name: $1_total}]");
  EXPECT_EQ(Shown(*text.rules, "ab"), "b_total{}");
  EXPECT_FALSE(ParseMapping("s.yaml", "mappings: [{match: a, name: x_$1}]").errors.empty());
}

TEST(StatsdLanguage, NamesThatNotAllReadersTakeAreRefused) {
  for (const std::string name : {"a-b", "my.app/batches", "1a", "a b", "a\u00e9", "$1.total"}) {
    const MappingFile file = ParseMapping("s.yaml", "mappings: [{match: a.*, name: \"" + name + "\"}]");
    EXPECT_THAT(file.errors, ElementsAre(HasSubstr("is not a metric's name (letters, digits, _ and :"))) << name;
  }
  for (const std::string name : {"c.d", "c:d", "1c", "__c", "c-d"}) {
    const MappingFile file = ParseMapping("s.yaml", "mappings: [{match: a, name: a, labels: {\"" + name + "\": e}}]");
    EXPECT_THAT(file.errors, ElementsAre(HasSubstr("is not a label's name (letters, digits and _"))) << name;
  }
}

}  // namespace
}  // namespace persia::agent

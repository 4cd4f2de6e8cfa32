#include "cli/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "naming/mapping_file.h"

namespace persia::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A paragraph of the golden output, and the metric in its first line, `group/name (stream)`.
struct Paragraph {
  std::string group;
  std::string name;
  std::string text;
};

std::vector<Paragraph> Golden() {
  std::ifstream file(std::string(PERSIA_TESTDATA) + "/explain_bundled.txt");
  std::vector<Paragraph> out;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with(" (stream)")) {
      const size_t slash = line.find('/');
      out.push_back({line.substr(0, slash), line.substr(slash + 1, line.rfind(' ') - slash - 1), ""});
    }
    if (!line.empty()) {
      out.back().text += line + "\n";
    }
  }
  return out;
}

TEST(Explain, WhatTorchelasticPublishesComesOutAsWrittenDown) {
  const MappingFile bundled = ReadMapping("");
  ASSERT_THAT(bundled.errors, IsEmpty());
  std::set<const MappingRule*> seen;
  for (const auto& [group, name, text] : Golden()) {
    EXPECT_EQ(Explain(bundled.rules.get(), {group, name, MetricType::kUntyped}), text);
    EXPECT_THAT(text, ::testing::Not(HasSubstr("asked for"))) << "bundled bounds are those at which streams count";
    seen.insert(bundled.rules->RuleFor({group, name, MetricType::kUntyped}));
  }
  seen.erase(nullptr);
  EXPECT_THAT(seen, SizeIs(bundled.rules->rules().size())) << "each rule is written down";
}

TEST(Explain, ANativeHistogramIsNamed) {
  const auto explained = [](const std::string& rule) {
    const MappingFile file = ParseMapping("m.yaml", "mappings: [{match: a, native: true" + rule + "}]");
    return Explain(file.rules.get(), {"g", "a", MetricType::kUntyped});
  };
  EXPECT_THAT(explained(""), HasSubstr("histogram: native; classic where native is not taken"));
  EXPECT_THAT(explained(", classic: true"), HasSubstr("histogram: native, and classic beside it"));
  EXPECT_THAT(explained(", buckets: [1, 4]"), HasSubstr("1, 4, +Inf"));
}

TEST(Explain, SaysWhatARuleDoes) {
  const MappingFile file = ParseMapping("m.yaml", R"(
mappings:
- {match: h, buckets: [0.1, 1], ttl: 90s, honor_labels: true, labels: {x: '"'}}
- {match: s, quantiles: [0.5, 0.99]}
- {match: d, action: drop}
- {match: c.*, type: counter, name: c_total, help: "Two\nlines"}
- {match: e, group: ""}
)");
  ASSERT_THAT(file.errors, IsEmpty());
  const auto explain = [&](const char* name, MetricType type = MetricType::kUntyped) {
    return Explain(file.rules.get(), {"g", name, type});
  };
  EXPECT_EQ(explain("h"),
            "g/h (stream)\n"
            "  rule      m.yaml:3: h\n"
            "  name      g_h\n"
            "  type      histogram: counts at bounds\n"
            "  labels    x=\"\\\"\", where the metric has none of that name\n"
            "  bounds    0.10511205190671431, 1, +Inf\n"
            "            the nearest at which streams count; asked for: 0.1, 1\n"
            "  ttl       90 s without a value\n"
            "  help      the program's own\n");
  EXPECT_EQ(explain("s"),
            "g/s (stream)\n"
            "  rule      m.yaml:4: s\n"
            "  name      g_s\n"
            "  type      summary: quantiles\n"
            "  quantiles 0.5, 0.99\n"
            "  help      the program's own\n");
  EXPECT_EQ(explain("d"), "g/d (stream)\n  rule      m.yaml:5: d\n  action    drop: it is not exposed\n");
  EXPECT_EQ(explain("c.x", MetricType::kGauge),
            "g/c.x (gauge)\n"
            "  rule      m.yaml:6: c.*\n"
            "  name      c_total\n"
            "  type      gauge, as in the program\n"
            "  help      Two lines\n");
  EXPECT_EQ(explain("other"),
            "g/other (stream)\n"
            "  rule      none of 5 matches: the name is that of the program\n"
            "  name      g_other\n"
            "  type      gauge: the last value\n"
            "  help      the program's own\n");
  EXPECT_THAT(Explain(file.rules.get(), {"", "e", MetricType::kUntyped}), HasSubstr("m.yaml:7: e in the empty group\n"));
  const MappingFile wrong = ParseMapping("m.yaml", "mappings: [{match: a, name: b, scale: x}]");
  EXPECT_THAT(Explain(wrong.rules.get(), {"g", "a", MetricType::kUntyped}),
              HasSubstr("m.yaml:1: a, which is not applied because of an error in the file: the bundled rules apply\n"));
  EXPECT_THAT(Explain(nullptr, {"g", "x", MetricType::kUntyped}), HasSubstr("none: there are no rules"));
}

TEST(Explain, AMetricOfUnknownTypeIsNotCalledAStream) {
  EXPECT_EQ(Explain(nullptr, {"train", "steps", MetricType::kUntyped}, /*type_is_known=*/false),
            "train/steps\n"
            "  rule      none: there are no rules\n"
            "  name      train_steps\n"
            "  type      as in the program; of a stream (Stream, put_metric, emit) gauge: the last value\n"
            "  help      the program's own\n");
}

}  // namespace
}  // namespace persia::agent

#include "format/name_escaping.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

TEST(EscapeNameTest, FollowsThePrometheusSpecification) {
  const struct {
    const char* name;
    const char* underscores;
    const char* dots;
    const char* values;
  } kCases[] = {
      {"", "", "", ""},
      {"no:escaping_required", "no:escaping_required", "no:escaping__required", "no:escaping_required"},
      {"mysystem.prod.west.cpu.load", "mysystem_prod_west_cpu_load", "mysystem_dot_prod_dot_west_dot_cpu_dot_load",
       "U__mysystem_2e_prod_2e_west_2e_cpu_2e_load"},
      {"http.status:sum_x", "http_status:sum_x", "http_dot_status:sum__x", "U__http_2e_status:sum__x"},
      {"1abc", "_abc", "__abc", "U___31_abc"},
      {"label with \xf0\x9f\x98\xb1", "label_with__", "label__with____", "U__label_20_with_20__1f631_"},
      {"\xe8\x8a\xb1", "_", "__", "U___82b1_"},
  };
  for (const auto& [name, underscores, dots, values] : kCases) {
    EXPECT_EQ(EscapeName(name, NameEscaping::kAllowUtf8), name);
    EXPECT_EQ(EscapeName(name, NameEscaping::kUnderscores), underscores);
    EXPECT_EQ(EscapeName(name, NameEscaping::kDots), dots);
    EXPECT_EQ(EscapeName(name, NameEscaping::kValues), values);
  }
}

TEST(EscapeNameTest, PlainNamesAreThoseOfAllReaders) {
  for (const char* name : {"a", "_", ":", "a1", "a:b_c"}) EXPECT_TRUE(IsPlainName(name)) << name;
  for (const char* name : {"", "1", "a.b", "a b", "\xe8\x8a\xb1"}) EXPECT_FALSE(IsPlainName(name)) << name;
  EXPECT_FALSE(IsPlainLabelName("a:b"));
}

FamilyLayout Family(std::string name, MetricType type, std::vector<Labels> series = {{}}) {
  FamilyLayout family{.name = std::move(name), .type = type, .help = "", .unit = "", .bounds = {}, .series = {}};
  for (Labels& labels : series) family.series.push_back({.labels = std::move(labels)});
  return family;
}

std::vector<std::string> NamesAfter(std::vector<FamilyLayout> families, NameEscaping escaping) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back({"job", {}});
  layout->families = std::move(families);
  const auto escaped = WithEscapedNames(layout, escaping);
  std::vector<std::string> names;
  for (const FamilyLayout& family : escaped->families) names.push_back(family.name);
  return names;
}

// Of the only series.
Labels LabelsAfter(Labels labels, NameEscaping escaping) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back({"job", {}});
  layout->families.push_back(Family("x", MetricType::kGauge, {std::move(labels)}));
  return WithEscapedNames(layout, escaping)->families[0].series[0].labels.ToList();
}

TEST(WithEscapedNamesTest, NamesThatWouldBecomeOneStayApart) {
  using Names = std::vector<std::string>;
  const auto gauge = [](const char* name) { return Family(name, MetricType::kGauge); };
  EXPECT_EQ(NamesAfter({gauge("a.b"), gauge("a/b"), gauge("a_b")}, NameEscaping::kUnderscores),
            (Names{"U__a_2e_b", "U__a_2f_b", "a_b"}));
  EXPECT_EQ(NamesAfter({gauge("a.b"), gauge("a/b")}, NameEscaping::kUnderscores), (Names{"a_b", "U__a_2f_b"}));
  EXPECT_EQ(NamesAfter({Family("x", MetricType::kHistogram), gauge("x.count")}, NameEscaping::kUnderscores),
            (Names{"x", "U__x_2e_count"}));
  EXPECT_EQ(
      NamesAfter({Family("h.x", MetricType::kHistogram), Family("h.x", MetricType::kHistogram)}, NameEscaping::kUnderscores),
      (Names{"h_x", "h_x"}));
}

TEST(WithEscapedNamesTest, LabelsThatWouldBecomeOneStayApart) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back({"job", {{"my.team", "ads"}, {"role", "trainer"}}});
  layout->families.push_back(
      Family("x", MetricType::kGauge,
             {{{"a.b", "1"}, {"a_b", "2"}}, {{"exported_my_team", "5"}, {"my_team", "3"}}, {{"my.zone", "4"}}}));
  const auto escaped = WithEscapedNames(layout, NameEscaping::kUnderscores);
  EXPECT_EQ(escaped->identities[0].labels, (Labels{{"my_team", "ads"}, {"role", "trainer"}}));
  const auto& series = escaped->families[0].series;
  EXPECT_EQ(series[0].labels.ToList(), (Labels{{"U__a_2e_b", "1"}, {"a_b", "2"}}));
  EXPECT_EQ(series[1].labels.ToList(), (Labels{{"exported_exported_my_team", "3"}, {"exported_my_team", "5"}}));
  EXPECT_EQ(series[2].labels.ToList(), (Labels{{"my_zone", "4"}}));
}

TEST(WithEscapedNamesTest, EscapedNamesStayApartFromNamesInThatForm) {
  using Names = std::vector<std::string>;
  const auto gauge = [](const char* name) { return Family(name, MetricType::kGauge); };
  EXPECT_EQ(NamesAfter({gauge("U__a_2e_b"), gauge("a.b")}, NameEscaping::kValues), (Names{"U__a_2e_b", "U__a_2e_b_"}));
  EXPECT_EQ(NamesAfter({gauge("U__a_2e_b"), gauge("a.b"), gauge("a_b")}, NameEscaping::kUnderscores),
            (Names{"U__a_2e_b", "U__a_2e_b_", "a_b"}));
  EXPECT_EQ(LabelsAfter({{"U__a_2e_b", "1"}, {"a.b", "2"}}, NameEscaping::kValues),
            (Labels{{"U__a_2e_b", "1"}, {"U__a_2e_b_", "2"}}));
}

// Readers of plain names refuse a page with a label `a:b`, or with `__name__` beside the metric's name.
TEST(WithEscapedNamesTest, LabelsAreOnesThatAllReadersTake) {
  EXPECT_EQ(LabelsAfter({{"a:b", "1"}}, NameEscaping::kUnderscores), (Labels{{"a_b", "1"}}));
  EXPECT_EQ(LabelsAfter({{"a:b", "1"}}, NameEscaping::kDots), (Labels{{"a__b", "1"}}));
  EXPECT_EQ(LabelsAfter({{"a:b", "1"}}, NameEscaping::kValues), (Labels{{"U__a_3a_b", "1"}}));
  EXPECT_EQ(LabelsAfter({{"_.name__", "1"}}, NameEscaping::kUnderscores), (Labels{{"U_____2e_name____", "1"}}));
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back({"job", {{"k8s:app", "1"}}});
  EXPECT_FALSE(HasPlainNames(*layout));
  EXPECT_EQ(WithEscapedNames(layout, NameEscaping::kUnderscores)->identities[0].labels, (Labels{{"k8s_app", "1"}}));
}

TEST(WithEscapedNamesTest, NoLabelGetsAReservedName) {
  EXPECT_EQ(LabelsAfter({{"地区", "1"}, {"类型", "2"}}, NameEscaping::kUnderscores),
            (Labels{{"U___5730__533a_", "1"}, {"U___7c7b__578b_", "2"}}));
  for (const char* name : {"地区", "地", "_地", "..", "._x", "_", "_x", "1_"}) {
    for (const NameEscaping escaping : {NameEscaping::kUnderscores, NameEscaping::kDots, NameEscaping::kValues}) {
      const std::string escaped = LabelsAfter({{name, "1"}}, escaping)[0].first;
      EXPECT_TRUE(IsPlainLabelName(escaped) && !escaped.starts_with("__")) << name << " becomes " << escaped;
    }
  }
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back({"job", {{"地区", "east"}}});
  EXPECT_EQ(WithEscapedNames(layout, NameEscaping::kUnderscores)->identities[0].labels, (Labels{{"U___5730__533a_", "east"}}));
}

TEST(WithEscapedNamesTest, PlainNamesKeepTheLayout) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back({"job", {{"ip_addr", "10.0.0.1"}}});
  layout->families.push_back(Family("a_b", MetricType::kGauge));
  EXPECT_TRUE(HasPlainNames(*layout));
  for (const NameEscaping escaping : {NameEscaping::kAllowUtf8, NameEscaping::kUnderscores, NameEscaping::kValues}) {
    EXPECT_EQ(WithEscapedNames(layout, escaping), layout);
  }
  EXPECT_EQ(WithEscapedNames(layout, NameEscaping::kDots)->families[0].name, "a__b");
  EXPECT_EQ(WithEscapedNames(layout, NameEscaping::kDots)->identities[0].labels, (Labels{{"ip__addr", "10.0.0.1"}}));
}

}  // namespace
}  // namespace persia::agent

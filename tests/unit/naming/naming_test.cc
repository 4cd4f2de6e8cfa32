#include "naming/naming.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace persia::agent {
namespace {

TEST(NamingTest, AGroupIsAPrefixButForTheBareOnes) {
  const PlainNaming naming;
  const auto name = [&](std::string_view group, std::string_view metric) {
    return naming.Expose({group, metric, MetricType::kCounter})->name;
  };
  EXPECT_EQ(name("my_app", "batches"), "my_app_batches");
  EXPECT_EQ(name("persia", "staleness"), "staleness");
  EXPECT_EQ(name("", "staleness"), "staleness");
  EXPECT_EQ(name("torchelastic", "checkpoint.write_latency_ms"), "torchelastic_checkpoint_write_latency_ms");
  EXPECT_EQ(name("persia", "9lives"), "_9lives");
  EXPECT_EQ(name("7up", "x"), "_7up_x");
}

TEST(NamingTest, MetricNamesAreMadeToFit) {
  const std::pair<const char*, const char*> cases[] = {
      {"ok_Name:sub9", "ok_Name:sub9"},
      {"a.b-c d", "a_b_c_d"},
      {"caf\xc3\xa9", "caf_"},
      {"\xff\xfe", "__"},
      {"", "_"},
      {"0", "_0"},
      {"a\nb", "a_b"},
      {"__x", "__x"},
  };
  for (const auto& [given, exposed] : cases) {
    EXPECT_EQ(SanitizeMetricName(given), exposed) << given;
  }
}

TEST(NamingTest, LabelNamesAreMadeToFit) {
  const std::pair<const char*, const char*> cases[] = {
      {"feat", "feat"},
      {"a:b", "a_b"},
      {"9", "_9"},
      {"", "_"},
      {"__name__", "_name__"},
      {"___", "_"},
      {"..x", "_x"},
      {"job", "exported_job"},
      {"instance", "exported_instance"},
      {"ip_addr", "exported_ip_addr"},
      {"ip.addr", "exported_ip_addr"},
      {"role", "exported_role"},
      {"le", "exported_le"},
      {"quantile", "exported_quantile"},
      {"jobs", "jobs"},
  };
  for (const auto& [given, exposed] : cases) {
    EXPECT_EQ(SanitizeLabelName(given), exposed) << given;
  }
}

TEST(NamingTest, TextBecomesValidUtf8) {
  const std::string r = "\xef\xbf\xbd";
  const std::pair<std::string, std::string> cases[] = {
      {"plain \"quoted\"\n", "plain \"quoted\"\n"},
      {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
      {"a\xff"
       "b",
       "a" + r + "b"},
      {"\xc3", r},      // cut
      {"\xe2\x82", r},  // cut: one for the whole start
      {"\xe2\x82"
       "a",
       r + "a"},
      {"\xc0\xaf", r + r},                  // overlong
      {"\xed\xa0\x80", r + r + r},          // a surrogate
      {"\xf4\x90\x80\x80", r + r + r + r},  // beyond U+10FFFF
      {"\x80", r},
      {std::string("a\0b", 3), "a" + r + "b"},
      {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"},  // next to forbidden characters
  };
  for (const auto& [given, exposed] : cases) {
    EXPECT_EQ(SanitizeText(given), exposed);
  }
}

TEST(NamingTest, ExposedLabelsAreSortedAndHaveNoEmptyValues) {
  EXPECT_EQ(ExposedLabels({{"b", "2"}, {"empty", ""}, {"job", "mine"}, {"a", "\xff"}}),
            (Labels{{"a", "\xef\xbf\xbd"}, {"b", "2"}, {"exported_job", "mine"}}));
  EXPECT_EQ(ExposedLabels({}), Labels{});
}

TEST(NamingTest, LabelsThatMeetInOneNameAreNumbered) {
  EXPECT_EQ(ExposedLabels({{"a-b", "1"}, {"a.b", "2"}, {"a_b", "3"}}), (Labels{{"a_b", "1"}, {"a_b_2", "2"}, {"a_b_3", "3"}}));
  EXPECT_EQ(ExposedLabels({{"a.b", "1"}, {"a_b", "2"}, {"a_b_2", "3"}}),
            (Labels{{"a_b", "1"}, {"a_b_2", "3"}, {"a_b_3", "2"}}));
}

// As a gateway and Prometheus want them.
TEST(NamingTest, AnyTwoLabelNamesStayTwoNamesThatAllReadersTake) {
  const char* const names[] = {"",     "_",         "__",       "_2",   "_2_2", "__2",  "2",  "9",   ".",   "..",
                               "-2",   "a",         "a.b",      "a-b",  "a_b",  "a_b_", "le", "l e", "job", "exported_job",
                               "role", "\xff",      "\xff\xff", "地区", "类型", "地",   "类", "地2", "_地", "地_2",
                               "é",    "\U0001f631"};
  for (const std::string first : names) {
    for (const std::string second : names) {
      if (first >= second) continue;
      const Labels exposed = ExposedLabels({{first, "1"}, {second, "2"}});
      ASSERT_EQ(exposed.size(), 2U) << first << ", " << second;
      EXPECT_NE(exposed[0].first, exposed[1].first) << first << ", " << second;
      for (const auto& [name, value] : exposed) EXPECT_EQ(SanitizeLabelName(name), name) << first << ", " << second;
    }
  }
  EXPECT_EQ(ExposedLabels({{"地区", "1"}, {"类型", "2"}}), (Labels{{"_", "1"}, {"_2", "2"}}));
}

}  // namespace
}  // namespace persia::agent

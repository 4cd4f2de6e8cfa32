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

}  // namespace
}  // namespace persia::agent

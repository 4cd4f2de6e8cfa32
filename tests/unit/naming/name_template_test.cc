#include "naming/name_template.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace persia::agent {
namespace {

std::string Filled(std::string_view text) {
  const std::vector<std::string_view> captures = {"whole", "one", "two"};
  const auto parsed = NameTemplate::Parse(text, 2);
  return parsed.ok() ? parsed.value().Fill("g", captures) : "error: " + parsed.error();
}

TEST(NameTemplate, ReferencesAreFilledIn) {
  const struct {
    const char* text;
    const char* filled;
  } cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"$1", "one"},
      {"${2}_total", "two_total"},
      {"$1_total", "one_total"},
      {"a_$1$2_$0", "a_onetwo_whole"},
      {"${group}_x", "g_x"},
      {"5$$", "5$"},
      {"$$1", "$1"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(Filled(one.text), one.filled) << one.text;
  }
}

TEST(NameTemplate, AnEmptyGroupTakesTheUnderscoreBehindItAway) {
  const auto filled = [](std::string_view text) {
    return NameTemplate::Parse(text, 1).value().Fill("", std::vector<std::string_view>{"whole", "_one"});
  };
  EXPECT_EQ(filled("${group}_function_duration"), "function_duration");
  EXPECT_EQ(filled("a_${group}_b"), "a_b");
  EXPECT_EQ(filled("${group}x_"), "x_");
  EXPECT_EQ(filled("${group}$1"), "_one");
  EXPECT_EQ(filled("${group}"), "");
}

TEST(NameTemplate, GroupsWithNamesAreReferences) {
  const NameTemplate::Names names = {{"dag", 2}, {"group", 1}};
  const auto filled = [&](std::string_view text) {
    const auto parsed = NameTemplate::Parse(text, 2, names);
    return parsed.ok() ? parsed.value().Fill("g", std::vector<std::string_view>{"whole", "one", "two"}) : "error";
  };
  EXPECT_EQ(filled("${dag}s"), "twos");
  EXPECT_EQ(filled("$dag-$1"), "two-one");
  EXPECT_EQ(filled("$dag.x"), "two.x");
  EXPECT_EQ(filled("${group}"), "one");  // the expression's own comes before the metric's
  for (const char* text : {"$dags", "${dags}", "$da", "${dag", "$"}) EXPECT_EQ(filled(text), "error") << text;
}

TEST(NameTemplate, ReferenceToNothingIsRefused) {
  for (const char* text : {"$", "a$", "$x", "${", "${}", "${x}", "${1", "$-1"}) {
    EXPECT_EQ(Filled(text), "error: a $ must be followed by a reference ($1, ${1}, ${group}); $$ is a dollar") << text;
  }
  EXPECT_EQ(Filled("$3"), "error: $3 refers to nothing: the match captures $1 to $2");
  for (const std::string number : {"12", "12345", "99999999999"}) {
    EXPECT_EQ(Filled("${" + number + "}"), "error: $" + number + " refers to nothing: the match captures $1 to $2");
  }
  EXPECT_EQ(NameTemplate::Parse("$1", 0).error(), "$1 refers to nothing: the match captures nothing ($0 is the whole match)");
}

}  // namespace
}  // namespace persia::agent

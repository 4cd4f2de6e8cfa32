#include "files/yaml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kKeys[] = {"name", "kind", "on"};
constexpr Choice<int> kKinds[] = {{"one", 1}, {"two", 2}};

class YamlReaderTest : public ::testing::Test {
 protected:
  YamlReader::Fields Read(const std::string& text) {
    document_ = ParseYaml("f.yaml", text).value();
    return reader_.ReadMap(*document_, kKeys, "map: ");
  }

  std::vector<std::string> errors_;
  YamlReader reader_{"f.yaml", errors_};
  std::shared_ptr<const YamlNode> document_;
};

TEST_F(YamlReaderTest, GivesTypedValues) {
  const YamlReader::Fields fields = Read("name: x\nkind: two\non: true\n");
  EXPECT_EQ(reader_.Text(fields, "name"), "x");
  EXPECT_EQ(reader_.Choose(fields, "kind", kKinds), 2);
  EXPECT_TRUE(reader_.Boolean(fields, "on"));
  EXPECT_EQ(reader_.Text(Read("on: false\n"), "name"), std::nullopt);
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(YamlReaderTest, RefusesUnknownRepeatedAndEmptyKeys) {
  EXPECT_EQ(Read("nmae: x\nkind: one\nkind: two\non:\n").size(), 1u);
  EXPECT_THAT(errors_, ElementsAre(R"(f.yaml:1:1: map: unknown key "nmae"; did you mean "name"?)",
                                   R"(f.yaml:3:1: map: "kind" is given twice: first in line 2)",
                                   "f.yaml:4:1: map: on: the value is missing"));
}

TEST_F(YamlReaderTest, AddsErrorsInTheOrderOfTheFile) {
  errors_ = {"an earlier error"};
  const YamlReader::Fields fields = Read("kind: three\nnmae: x\n");
  reader_.Choose(fields, "kind", kKinds);
  EXPECT_THAT(errors_, ElementsAre("an earlier error", HasSubstr("f.yaml:1:7: "), HasSubstr("f.yaml:2:1: ")));
}

TEST_F(YamlReaderTest, QuotesOnlyTheNameOfAnUnknownKey) {
  Read("secret $2y$05$abc: x\n");
  EXPECT_THAT(errors_, ElementsAre(R"(f.yaml:1:1: map: unknown key "secret" (the beginning of the key) (name, kind, on))"));
}

TEST_F(YamlReaderTest, RefusesValuesOfAnotherKind) {
  const YamlReader::Fields fields = Read("name: [x]\nkind: tow\non: 1\n");
  reader_.Text(fields, "name");
  reader_.Choose(fields, "kind", kKinds);
  reader_.Boolean(fields, "on");
  EXPECT_THAT(errors_, ElementsAre("f.yaml:1:7: name: expected a text, found a list",
                                   R"(f.yaml:2:7: kind: "tow" is not one of: one, two; did you mean "two"?)",
                                   R"(f.yaml:3:5: on: "1" is not one of: false, true)"));
}

TEST_F(YamlReaderTest, TakesTheBooleansOfYaml) {
  for (const char* text : {"true", "True", "YES", "on"}) EXPECT_TRUE(reader_.Boolean(Read("on: " + std::string(text)), "on"));
  for (const char* text : {"false", "FALSE", "No", "off"})
    EXPECT_FALSE(reader_.Boolean(Read("on: " + std::string(text)), "on"));
  EXPECT_THAT(errors_, ElementsAre());
}

// "key=value ..." of the last map of a list.
std::string Merged(const std::string& text) {
  const auto root = ParseYaml("f", text);
  if (!root.ok()) return root.error();
  std::string all;
  for (const YamlNode::Entry& entry : root.value()->items.back()->entries) {
    all += (all.empty() ? "" : " ") + entry.key->text + "=" + entry.value->text;
  }
  return all;
}

TEST(YamlDocument, AMergeKeyAddsTheEntriesThatTheMapHasNot) {
  EXPECT_EQ(Merged("- &a {x: 1, y: 2}\n- {<<: *a, y: 3, z: 4}\n"), "y=3 z=4 x=1");
  EXPECT_EQ(Merged("- &a {x: 1}\n- &b {x: 2, y: 2}\n- {<<: [*a, *b]}\n"), "x=1 y=2");
  EXPECT_EQ(Merged("- &a {x: 1}\n- &b {<<: *a, y: 2}\n- {<<: *b}\n"), "y=2 x=1");
  EXPECT_EQ(Merged("- {'<<': 1}\n"), "<<=1") << "quoted";
  EXPECT_EQ(Merged("- {<<: 1}\n"), "f:1:4: not valid YAML: <<: expected an alias of a map, or a list of them");
  EXPECT_THAT(Merged("- &a {x: 1, <<: *a}\n"), HasSubstr("an alias that contains itself"));
}

TEST(YamlDocument, MergeKeysDoNotMultiplyAText) {
  std::string text = "- &a {";
  for (int i = 0; i < 1000; ++i) text += "k" + std::to_string(i) + ": 1, ";
  text += "}\n";
  for (int i = 0; i < 1000; ++i) text += "- {<<: *a}\n";
  EXPECT_THAT(Merged(text), HasSubstr("merge keys (<<) repeat more than 100000 entries"));
}

}  // namespace
}  // namespace persia::agent

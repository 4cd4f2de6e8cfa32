#include "files/yaml_reader.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace persia::agent {

std::string YamlReader::Line(const YamlNode& at, const std::string& what) const {
  return name_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + OneLine(what);
}

void YamlReader::Fail(const YamlNode& at, const std::string& what) {
  const std::pair place(at.line, at.column);
  const auto next = std::upper_bound(places_.begin(), places_.end(), place);
  errors_.insert(errors_.end() - (places_.end() - next), Line(at, what));
  places_.insert(next, place);
}

bool YamlReader::Expect(const YamlNode& node, YamlNode::Kind kind, const std::string& expected) {
  if (node.kind != kind) Fail(node, expected + ", found " + std::string(node.KindName()));
  return node.kind == kind;
}

YamlReader::Fields YamlReader::ReadMap(const YamlNode& map, Keys keys, const std::string& prefix) {
  Fields fields;
  for (const YamlNode::Entry& entry : map.entries) {
    const std::string& key = entry.key->text;
    if (entry.key->kind != YamlNode::Kind::kScalar || std::find(keys.begin(), keys.end(), key) == keys.end()) {
      FailUnknown(*entry.key, prefix + "unknown key", keys);
    } else if (const auto [first, is_new] = fields.try_emplace(key, Field{entry.key.get(), entry.value.get()}); !is_new) {
      FailRepeated(*entry.key, *first->second.key, prefix);
    } else if (entry.value->kind == YamlNode::Kind::kNull) {
      Fail(*entry.key, prefix + key + ": the value is missing");
      fields.erase(first);
    }
  }
  return fields;
}

void YamlReader::FailUnknown(const YamlNode& key, const std::string& what, Keys keys) {
  // Without its colon, or the blank after the colon, a key includes its value, which may be a secret.
  const auto is_part_of_a_key = [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.'; };
  const std::string name(key.text.begin(), std::find_if_not(key.text.begin(), key.text.end(), is_part_of_a_key));
  const std::string meant = DidYouMean(key.text, keys);
  Fail(key, what + " " + Quoted(name) + (name == key.text ? "" : " (the beginning of the key)") +
                (meant.empty() ? " (" + CommaSeparated(keys) + ")" : meant));
}

void YamlReader::FailRepeated(const YamlNode& key, const YamlNode& first, const std::string& prefix) {
  Fail(key, prefix + Quoted(key.text) + " is given twice: first in line " + std::to_string(first.line) +
                (first.text == key.text ? "" : " as " + Quoted(first.text)));
}

const YamlNode* YamlReader::Find(const Fields& fields, std::string_view key) {
  const auto found = fields.find(key);
  return found == fields.end() ? nullptr : found->second.value;
}

std::optional<std::string> YamlReader::Text(const Fields& fields, std::string_view key) {
  const YamlNode* value = Find(fields, key);
  if (value == nullptr || !Expect(*value, YamlNode::Kind::kScalar, std::string(key) + ": expected a text")) return std::nullopt;
  return value->text;
}

bool YamlReader::Boolean(const Fields& fields, std::string_view key) {
  static constexpr Choice<bool> kBooleans[] = {{"false", false}, {"true", true}};
  static constexpr Choice<bool> kAll[] = {{"false", false}, {"true", true}, {"no", false},
                                          {"yes", true},    {"off", false}, {"on", true}};
  const auto parse = [](std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto any = ParseChoice(lower, kAll);
    return any.ok() ? any : ParseChoice(text, kBooleans);
  };
  return Parse(fields, key, parse).value_or(false);
}

}  // namespace persia::agent

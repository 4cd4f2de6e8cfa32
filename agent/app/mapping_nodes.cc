#include "app/mapping_nodes.h"

#include <algorithm>

#include "app/nearest.h"
#include "app/text.h"

namespace persia::agent {
namespace {

std::string ListOf(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

}  // namespace

const YamlNode* NodeReader::Find(const Entries& entries, const std::string& key) {
  const auto found = entries.find(key);
  return found == entries.end() ? nullptr : found->second.second;
}

NodeReader::Entries NodeReader::EntriesOf(const YamlNode& map, std::span<const std::string_view> known,
                                          const std::string& prefix) {
  Entries out;
  for (const YamlNode::Entry& entry : map.entries) {
    const std::string& key = entry.key->text;
    if (entry.key->kind != YamlNode::Kind::kScalar || std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string meant = DidYouMean(key, known);
      Fail(*entry.key, prefix + "unknown key " + Quoted(key) + (meant.empty() ? " (" + ListOf(known) + ")" : meant));
    } else if (const auto [first, is_new] = out.try_emplace(key, entry.key.get(), entry.value.get()); !is_new) {
      Fail(*entry.key, prefix + Quoted(key) + " is given twice: first in line " + std::to_string(first->second.first->line));
    } else if (entry.value->kind == YamlNode::Kind::kNull) {
      Fail(*entry.key, prefix + key + ": the value is missing");
      out.erase(first);
    }
  }
  return out;
}

std::optional<std::string> NodeReader::Text(const Entries& entries, const std::string& key) {
  const YamlNode* value = Find(entries, key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != YamlNode::Kind::kScalar) {
    Fail(*value, key + ": expected a text, found " + std::string(value->KindName()));
    return std::nullopt;
  }
  return value->text;
}

std::optional<size_t> NodeReader::Word(const Entries& entries, const std::string& key,
                                       std::span<const std::string_view> words) {
  const auto text = Text(entries, key);
  if (!text) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  Fail(*Find(entries, key), key + ": " + Quoted(*text) + " is not one of: " + ListOf(words) + DidYouMean(*text, words));
  return std::nullopt;
}

bool NodeReader::Boolean(const Entries& entries, const std::string& key) {
  static constexpr std::string_view kWords[] = {"false", "true"};
  return Word(entries, key, kWords) == 1;
}

std::string NodeReader::Line(const YamlNode& at, const std::string& what) const {
  return name_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + OneLine(what);
}

}  // namespace persia::agent

// The entries of a file of rules, taken out of its tree one by one; what is wrong with one is said with its place.
//
// Not thread-safe: for the reading of one file.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/yaml_document.h"
#include "model/result.h"

namespace persia::agent {

class NodeReader {
 public:
  // By key, each once; the key's own node and the value's.
  using Entries = std::map<std::string, std::pair<const YamlNode*, const YamlNode*>>;

  // `name` is that of the file. What is said is added to the two lists, which outlive this.
  NodeReader(std::string name, std::vector<std::string>& errors, std::vector<std::string>& notes)
      : name_(std::move(name)), errors_(errors), notes_(notes) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  // The value under `key`; null if there is none.
  static const YamlNode* Find(const Entries& entries, const std::string& key);

  // A map's entries whose keys are known; keys that are not, or that stand twice, or without a value, are errors.
  Entries EntriesOf(const YamlNode& map, std::span<const std::string_view> known, const std::string& prefix);

  // The text under `key`, if there is one.
  std::optional<std::string> Text(const Entries& entries, const std::string& key);
  // Which of `words` it is.
  std::optional<size_t> Word(const Entries& entries, const std::string& key, std::span<const std::string_view> words);
  // Whether it is `true`.
  bool Boolean(const Entries& entries, const std::string& key);
  // What `parse` makes of it.
  template <class T>
  std::optional<T> Parsed(const Entries& entries, const std::string& key, Result<T> (*parse)(std::string_view)) {
    const auto text = Text(entries, key);
    if (!text) return std::nullopt;
    Result<T> value = parse(*text);
    if (!value.ok()) {
      Fail(*Find(entries, key), value.error());
      return std::nullopt;
    }
    return std::move(value).value();
  }

  void Fail(const YamlNode& at, const std::string& what) { errors_.push_back(Line(at, what)); }
  void Note(const YamlNode& at, const std::string& what) { notes_.push_back(Line(at, what)); }

 private:
  [[nodiscard]] std::string Line(const YamlNode& at, const std::string& what) const;

  const std::string name_;
  std::vector<std::string>& errors_;
  std::vector<std::string>& notes_;
};

}  // namespace persia::agent

// Typed access to the values of a YAML file. A value that is not as expected becomes an error, "name:line:column: what".
//
//   YamlReader reader("mapping.yaml", errors);
//   if (reader.Expect(root, YamlNode::Kind::kMap, "expected rules")) {
//     const YamlReader::Fields fields = reader.ReadMap(root, {"match", "name"});
//     std::optional<std::string> name = reader.Text(fields, "name");   // none: there is no name, or an error was added
//   }
//
// Thread safety: none.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "files/yaml_document.h"

namespace persia::agent {

class YamlReader {
 public:
  struct Field {
    const YamlNode* key;
    const YamlNode* value;
  };
  using Fields = std::map<std::string, Field, std::less<>>;
  using Keys = std::span<const std::string_view>;

  // Errors are added at the end of `errors`, in the order of the file. `errors` outlives the reader.
  YamlReader(std::string name, std::vector<std::string>& errors) : name_(std::move(name)), errors_(errors) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  void Fail(const YamlNode& at, const std::string& what);
  // "name:line:column: what"
  [[nodiscard]] std::string Line(const YamlNode& at, const std::string& what) const;

  // Whether `node` is of `kind`; the error is `expected`, then "found a list".
  bool Expect(const YamlNode& node, YamlNode::Kind kind, const std::string& expected);

  // The fields of a map. A key that is not one of `keys`, a repeated key and a missing value are errors, which begin with
  // `prefix`, and are left out.
  Fields ReadMap(const YamlNode& map, Keys keys, const std::string& prefix = "");
  // The errors of ReadMap: `what` is "unknown key" or the like.
  void FailUnknown(const YamlNode& key, const std::string& what, Keys keys);
  void FailRepeated(const YamlNode& key, const YamlNode& first, const std::string& prefix = "");

  // The value of `key`; null if there is none.
  static const YamlNode* Find(const Fields& fields, std::string_view key);
  std::optional<std::string> Text(const Fields& fields, std::string_view key);
  // true, yes and on, false, no and off, in any case, as in YAML 1.1; false without the key.
  bool Boolean(const Fields& fields, std::string_view key);
  template <class T, size_t N>
  std::optional<T> Choose(const Fields& fields, std::string_view key, const Choice<T> (&choices)[N]) {
    return Parse(
        fields, key, [&](std::string_view text) { return ParseChoice(text, choices); });
  }
  // The value that `parse`, of (std::string_view) -> Result<T>, makes of the text.
  template <class Function>
  auto Parse(const Fields& fields, std::string_view key, Function parse) {
    using T = std::decay_t<decltype(parse(std::string_view()).value())>;
    const std::optional<std::string> text = Text(fields, key);
    if (!text) return std::optional<T>();
    Result<T> value = parse(*text);
    if (!value.ok()) {
      Fail(*Find(fields, key), std::string(key) + ": " + value.error());
      return std::optional<T>();
    }
    return std::optional<T>(std::move(value).value());
  }

 private:
  const std::string name_;
  std::vector<std::string>& errors_;
  std::vector<std::pair<int, int>> places_;  // line and column of each error
};

}  // namespace persia::agent

// A YAML file as a tree of nodes with line and column. The adapter of yaml-cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace persia::agent {

// One value of the file. An alias shares the node of its anchor, so that the tree is no larger than the text, even if
// aliases repeat each other.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  int line = 1;  // the first line and column are 1
  int column = 1;
  int levels = 0;              // of nodes below this one, also through aliases
  std::string text;            // of a scalar, as written
  bool quoted = false;         // a scalar in quotes or a block: always a text
  std::vector<Entry> entries;  // of a map, in the order of the file, with repeated keys, and those of merge keys (<<)
  std::vector<std::shared_ptr<const YamlNode>> items;  // of a sequence

  // "a list", "a map", ..., for errors.
  [[nodiscard]] std::string_view KindName() const;
};

struct YamlNode::Entry {
  std::shared_ptr<const YamlNode> key;
  std::shared_ptr<const YamlNode> value;
};

// Parses one document; without content it is a null node. Errors are "name:line:column: what".
Result<std::shared_ptr<const YamlNode>> ParseYaml(const std::string& name, const std::string& text);

}  // namespace persia::agent

// A YAML file as a tree that remembers where everything stood. The only place that knows the YAML library.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/result.h"

namespace persia::agent {

// One value of the file. An alias shares the node that it names, so a document takes no more memory than its text, however
// often its aliases repeat each other.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  int line = 1;  // both from 1 on
  int column = 1;
  int levels = 0;                                      // of nodes below it, through aliases too
  std::string text;                                    // of a scalar, as written
  bool quoted = false;                                 // a scalar in quotes or blocks is a text, whatever it looks like
  std::vector<Entry> entries;                          // of a map, in the order of the file, twice what stands there twice
  std::vector<std::shared_ptr<const YamlNode>> items;  // of a sequence

  // "a list", "a map", ...: for errors.
  [[nodiscard]] std::string_view KindName() const;
};

struct YamlNode::Entry {
  std::shared_ptr<const YamlNode> key;
  std::shared_ptr<const YamlNode> value;
};

// Parses one document. A document without content is a null node. `name` begins each error: name:line:column: what is wrong.
Result<std::shared_ptr<const YamlNode>> ParseYaml(const std::string& name, const std::string& text);

}  // namespace persia::agent

// Reads mapping rules from YAML. config/README.md describes the language. A rule with an error is not applied: the metrics that
// it matches are exposed by the bundled rules.
//
//   mappings:
//     - match: workers.*.flakiness
//       group: torchelastic
//       name: torchelastic_workers_flakiness_ratio
//       labels: {role: $1}
//       scale: 0.01
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "naming/mapping_rules.h"

namespace persia::agent {

struct MappingFile {
  // Null if the file has no rules to read, and for the setting "none".
  std::shared_ptr<const MappingRules> rules;
  std::string text;
  // One line each, "name:line:column: what".
  std::vector<std::string> errors;
  // The same, for rules and keys without effect.
  std::vector<std::string> notes;
};

// `name` begins each error and each rule's place.
MappingFile ParseMapping(const std::string& name, const std::string& text);

// `setting` is a file's name, empty for the bundled rules, or "none".
MappingFile ReadMapping(const std::string& setting);

}  // namespace persia::agent

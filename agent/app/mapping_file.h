// Reads the file of `mapping_file`: rules of naming in YAML. config/README.md describes the language.
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

#include "model/mapping_rules.h"

namespace persia::agent {

struct MappingFile {
  // Null if there are errors, and for the file `none`.
  std::shared_ptr<const MappingRules> rules;
  std::string text;
  // One line each, with its place.
  std::vector<std::string> errors;
  // The same, of what is read and has no effect.
  std::vector<std::string> notes;
};

// `name` begins each error and is where rules say that they stand.
MappingFile ParseMapping(const std::string& name, const std::string& text);

// What the setting names: a file; empty: the bundled rules; "none": no rules.
MappingFile ReadMapping(const std::string& setting);

}  // namespace persia::agent

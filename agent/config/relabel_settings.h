// The key `write_relabel_configs`: a list of rules in the words of Prometheus.
#pragma once

#include <vector>

#include "files/yaml_reader.h"
#include "remote/relabel.h"

namespace persia::agent {

// Adds the rules. An error, also of a rule as a whole, goes to `reader`.
void ReadRelabelConfigs(const YamlNode& list, YamlReader& reader, std::vector<RelabelConfig>& rules);

}  // namespace persia::agent

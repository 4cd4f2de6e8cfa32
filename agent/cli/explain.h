// Describes how a metric is exposed.
#pragma once

#include <string>

#include "naming/mapping_rules.h"

namespace persia::agent {

// The rule that applies, then the name, type and labels, a line each. `rules` is null if there are none.
std::string Explain(const MappingRules* rules, const SourceMetric& metric);

}  // namespace persia::agent

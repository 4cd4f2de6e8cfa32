// Describes how a metric is exposed.
#pragma once

#include <string>

#include "naming/mapping_rules.h"

namespace persia::agent {

// The rule that applies, then the name, type and labels, a line each. `rules` is null if there are none. If the type is not
// known, it is given as that of a stream.
std::string Explain(const MappingRules* rules, const SourceMetric& metric, bool type_is_known = true);

}  // namespace persia::agent

// Tells how a metric is exposed: which rule matches, and what comes out.
#pragma once

#include <string>

#include "app/command_line.h"
#include "app/config.h"
#include "model/mapping_rules.h"

namespace persia::agent {

// One paragraph. `rules` may be null: there are none.
std::string Explain(const MappingRules* rules, const SourceMetric& metric);

// The same for what the command line asks for, on stdout. The exit code.
int ExplainCommand(const CommandLine& line, const Config& config);

}  // namespace persia::agent

// Reads the agent's section of PersiaML's global_config.yaml: `PersiaMetricsConfig`, or in PersiaML's later form
// `common_config: metrics_config:`. Other sections are ignored.
#pragma once

#include <string>

#include "config/config_draft.h"

namespace persia::agent {

// Adds the settings and errors of the file's `text` to `draft`. `name` begins each error.
void ReadConfigFile(const std::string& name, const std::string& text, ConfigDraft& draft);

}  // namespace persia::agent

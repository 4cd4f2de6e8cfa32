// The text of config/mapping.yaml when the agent was built.
#pragma once

namespace persia::agent {

extern const char kBundledMapping[];

}  // namespace persia::agent

// config/mapping.yaml as it was when the agent was built, so that its rules are there without a file.
#pragma once

namespace persia::agent {

extern const char kBundledMapping[];

}  // namespace persia::agent

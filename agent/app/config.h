// Finds out what the agent is told: flags win over the environment, the environment over the file, the file over defaults.
//
// The file is PersiaML's global_config.yaml. Its section `PersiaMetricsConfig`, or in PersiaML's later form
// `common_config: metrics_config:`, is ours; its other sections are left alone.
//
//   ConfigSources sources{.flags = {{"--job", "dlrm"}}, .environment = ProcessEnvironment()};
//   Config config = LoadConfig(sources);
//   if (!config.ok()) ... config.errors, each a line with its place
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/options.h"

namespace persia::agent {

// The value of an environment variable; nullopt if it is not set or empty, as compose files and shells leave one out.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment ProcessEnvironment();
// The same, and what is secret is moved out of the process's environment, where `ps e` and the job's command would find it,
// into what is returned. REQUIRES: one thread.
Environment TakeEnvironment();

struct ConfigSources {
  // Flag and value, in the order given: of one flag's values the last counts, but for lists.
  std::vector<std::pair<std::string, std::string>> flags;
  Environment environment;
  // From --config. Empty: PERSIA_GLOBAL_CONFIG, else ./global_config.yaml if there is one, else none.
  std::string file;
};

struct Config {
  // The defaults, changed by whatever was good.
  AgentOptions options;
  // The file that was read; empty if none.
  std::string file;
  // One line each: the place, the text found, what is allowed.
  std::vector<std::string> errors;
  // The same, of what only the pages need.
  std::vector<std::string> page_errors{};
  // The same, of what is read and has no effect.
  std::vector<std::string> notes{};

  [[nodiscard]] bool ok() const { return errors.empty() && page_errors.empty(); }
};

Config LoadConfig(const ConfigSources& sources);

// The part of it that reads the file's content. `name` begins each error.
Config ParseConfig(const std::string& name, const std::string& text);

}  // namespace persia::agent

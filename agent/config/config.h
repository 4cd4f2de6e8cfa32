// Loads the settings. A flag overrides the environment, the environment overrides the file, and the file overrides the
// defaults. The configuration is valid even if there are errors: exec and run use it.
//
//   ConfigSources sources{.flags = {{"--job", "dlrm"}}, .environment = ProcessEnvironment()};
//   Config config = LoadConfig(sources);
//   if (!config.ok()) ... config.errors
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config_error.h"
#include "config/options.h"

namespace persia::agent {

// The value of an environment variable; nullopt if it is not set or empty, as compose files and shells may leave it. Line ends
// after the value are left out: a Kubernetes Secret that was made of a file has one.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment ProcessEnvironment();
// The names of the process's variables that begin as the product's do, with PERSIA_.
std::vector<std::string> VariableNames();
// The settings' variables as they are now. Secrets are moved out of the process's environment, where `ps e` and the job's
// command could read them. REQUIRES: one thread.
Environment TakeEnvironment();

struct ConfigSources {
  // Flag and value, in the order given. The last value of a flag applies, except for lists.
  std::vector<std::pair<std::string, std::string>> flags;
  Environment environment;
  // From --config. Without it: PERSIA_GLOBAL_CONFIG, else ./global_config.yaml if it exists, else none.
  std::optional<std::string> file;
  // Errors of the command line as a whole, such as unknown flags.
  std::vector<ConfigError> errors{};
  // Of VariableNames: a misspelt one is told.
  std::vector<std::string> variables{};
  // Whether to read the file of users and TLS settings, to report its errors.
  bool checks_pages = true;
};

struct Config {
  // The defaults, changed by all valid settings. An error in a setting of an output switches the output off.
  AgentOptions options;
  // The file that was read; empty if none.
  std::string file;
  std::vector<ConfigError> errors;
  // Rules, keys and variables without effect, one line each.
  std::vector<std::string> notes{};

  [[nodiscard]] bool ok() const { return errors.empty(); }
  // The texts of the errors.
  [[nodiscard]] std::vector<std::string> ErrorTexts() const;
};

Config LoadConfig(const ConfigSources& sources);

// Reads the content of a file alone. `name` begins each error.
Config ParseConfig(const std::string& name, const std::string& text);

}  // namespace persia::agent

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

#include "base/mutex.h"
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

// Reads the settings again, from the same file, environment and flags as at startup, and applies those that are `reloadable` in
// the table of settings.cc.
//
//   Reloader reloader({.sources = sources, .current = options, .apply = [&](const AgentOptions& o) { agent.Reconfigure(o); },
//                      .note = [&](bool good, size_t errors) { own.ConfigReloaded(good, errors); }});
//   std::vector<std::string> errors = reloader.Reload();   // empty: done
//
// One error refuses the reload as a whole: the current settings stay. Only errors in flags and variables do not refuse it,
// since no reload can correct them. If settings that are not reloadable have changed, a warning names them. To make a setting
// reloadable, mark it in settings.cc and handle its change in Agent::Reconfigure or Agent::Collect.
//
// Thread safety: any thread.
class Reloader {
 public:
  struct Options {
    ConfigSources sources;
    AgentOptions current;  // as loaded at startup
    std::function<void(const AgentOptions&)> apply;
    std::function<void(bool good, size_t errors)> note;  // called once a reload
  };

  explicit Reloader(Options options) : options_(std::move(options)), current_(options_.current) {}

  // The errors, one line each; empty if the settings are in effect.
  std::vector<std::string> Reload();

 private:
  const Options options_;
  Mutex mutex_;  // held during a reload
  AgentOptions current_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent

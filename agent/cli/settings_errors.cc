#include <string>
#include <string_view>

#include "base/log.h"
#include "cli/commands.h"

namespace persia::agent {

Config LoadConfigOfExec(const ConfigSources& sources) {
  Config config = LoadConfig(sources);
  if (config.options.events_file == "-") {
    config.options.events_file.clear();
    config.errors.push_back({.text = "events_file: \"-\" is stdout, which the command of exec has to itself; name a file",
                             .consequence = "events are not written"});
  }
  return config;
}

bool RefusedBySettings(const Config& config, bool strict, std::string_view refusal) {
  if (config.errors.empty()) return false;
  if (strict) {
    const size_t more = config.errors.size() - 1;
    LogError("config.refused", config.errors.front().text +
                                   (more > 0 ? " (and " + std::to_string(more) + " more: check-config lists them)" : "") +
                                   "; " + std::string(refusal) + " (--strict)");
    return true;
  }
  for (const ConfigError& error : config.errors) LogError("config.error", error.Line());
  return false;
}

}  // namespace persia::agent

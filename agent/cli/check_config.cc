#include <cstdio>
#include <string>

#include "cli/commands.h"
#include "config/settings.h"

namespace persia::agent {

int CheckConfigCommand(const Config& config) {
  for (const std::string& note : config.notes) std::printf("# %s\n", note.c_str());
  std::printf("# %s\n", config.file.empty() ? "no file; flags, environment and defaults" : (config.file + ": good").c_str());
  for (const Setting& setting : Settings()) {
    const std::string value = setting.get(config.options);
    std::printf("%-24s %s\n", (std::string(setting.key.empty() ? setting.flag.substr(2) : setting.key) + ":").c_str(),
                value.empty() ? ("(" + std::string(setting.default_text) + ")").c_str() : value.c_str());
  }
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? kExitDone : kExitFailed;
}

}  // namespace persia::agent

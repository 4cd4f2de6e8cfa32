#include "config/reload.h"

#include <string_view>

#include "base/log.h"
#include "config/settings.h"

namespace persia::agent {
namespace {

void AppendName(const Setting& setting, std::string& list) {
  list += (list.empty() ? "" : ", ") + std::string(setting.key.empty() ? setting.flag : setting.key);
}

}  // namespace

std::vector<std::string> Reloader::Reload() {
  const MutexLock lock(mutex_);
  Config config = LoadConfig(options_.sources);
  std::vector<std::string> refusals;
  for (const ConfigError& error : config.errors) {
    if (!error.lasting) refusals.push_back(error.text);
  }
  options_.note(refusals.empty(), config.errors.size());
  if (!refusals.empty()) {
    for (const std::string& error : refusals) {
      LogError("config.refused", error);
    }
    LogError("config.refused", "the settings are not reloaded; the current ones stay in effect");
    return refusals;
  }
  std::string changed;
  std::string fixed;
  AgentOptions merged = current_;
  for (const Setting& setting : Settings()) {
    const bool differs = setting.get(config.options) != setting.get(current_) ||
                         (setting.content != nullptr && setting.content(config.options) != setting.content(current_));
    if (setting.reloadable) {
      setting.copy(config.options, merged);
    }
    if (differs) {
      AppendName(setting, setting.reloadable ? changed : fixed);
    }
  }
  current_ = merged;
  SetUpLog(merged.log_level, merged.log_format);
  options_.apply(merged);
  for (const std::string& note : config.notes) {
    LogWarning("config.note", note);
  }
  LogInfo("config.reloaded", "the settings are reloaded" + (config.file.empty() ? "" : " from " + config.file) +
                                 (changed.empty() ? "" : "; changed: " + changed));
  if (!fixed.empty()) {
    LogWarning("config.fixed", "changed, but read at the start only: " + fixed + "; restart the agent to apply them");
  }
  return {};
}

}  // namespace persia::agent

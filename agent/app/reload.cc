#include "app/reload.h"

#include <string_view>

#include "app/log.h"
#include "app/settings.h"

namespace persia::agent {
namespace {

void AddName(const Setting& setting, std::string& list) {
  list += (list.empty() ? "" : ", ") + std::string(setting.key.empty() ? setting.flag : setting.key);
}

}  // namespace

std::vector<std::string> Reloader::Reload() {
  const std::lock_guard lock(mutex_);
  Config config = LoadConfig(options_.sources);
  options_.note(config.ok());
  config.errors.insert(config.errors.end(), config.page_errors.begin(), config.page_errors.end());
  if (!config.ok()) {
    for (const std::string& error : config.errors) {
      LogError("config.refused", error);
    }
    LogError("config.refused", "the settings are not reloaded, those in use stay");
    return config.errors;
  }
  std::string changed;
  std::string fixed;
  AgentOptions merged = options_.current;
  for (const Setting& setting : Settings()) {
    const bool differs = setting.get(config.options) != setting.get(options_.current) ||
                         (setting.content != nullptr && setting.content(config.options) != setting.content(options_.current));
    if (setting.take_over != nullptr) {
      setting.take_over(config.options, merged);
    }
    if (differs) {
      AddName(setting, setting.take_over != nullptr ? changed : fixed);
    }
  }
  options_.current = merged;
  SetUpLog(merged.log_level, merged.log_format);
  options_.apply(merged);
  for (const std::string& note : config.notes) {
    LogWarning("config.note", note);
  }
  LogInfo("config.reloaded", "the settings are read again" + (config.file.empty() ? "" : ", from " + config.file) +
                                 (changed.empty() ? "" : "; changed: " + changed));
  if (!fixed.empty()) {
    LogWarning("config.fixed", "changed, but read at the start only: " + fixed + "; they stay as they are until the agent is " +
                                   "started again");
  }
  return {};
}

}  // namespace persia::agent

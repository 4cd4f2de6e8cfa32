#include "config/config.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "config/config_draft.h"
#include "config/config_file.h"
#include "config/gateway_settings.h"
#include "config/remote_write_settings.h"
#include "config/settings.h"
#include "config/web_config.h"
#include "files/small_file.h"
#include "naming/mapping_file.h"
#include "supervisor/secret_variables.h"

namespace persia::agent {
namespace {

constexpr char kFileVariable[] = "PERSIA_GLOBAL_CONFIG";
constexpr char kFileInWorkingDirectory[] = "global_config.yaml";

void ReadFile(const ConfigSources& sources, std::string& file, ConfigDraft& draft) {
  std::string from;
  if (sources.file) {
    file = *sources.file;
    if (file.empty()) return draft.RefuseFile("--config: the value is missing", nullptr);
  } else {
    if (const auto named = sources.environment(kFileVariable)) {
      file = *named;
      from = std::string(kFileVariable) + ": ";
    } else if (access(kFileInWorkingDirectory, F_OK) == 0) {
      file = kFileInWorkingDirectory;
    } else {
      return;
    }
  }
  const Result<SmallFile> read = ReadSmallFile(file, "; expected a YAML file");
  if (!read.ok()) return draft.RefuseFile(from + file + ": " + read.error(), nullptr);
  ReadConfigFile(file, read.value().content, draft);
}

// Flags and environment replace a list of the file as a whole.
void ClearList(const Setting& setting, AgentOptions& options) {
  if (setting.kind == ValueKind::kLabels) {
    options.labels.clear();
  } else if (setting.kind == ValueKind::kTargets) {
    options.remote_write.clear();
  }
}

// In the order in which they count.
std::vector<std::string_view> VariablesOf(const Setting& setting) {
  std::vector<std::string_view> names;
  if (!setting.environment.empty()) names.push_back(setting.environment);
  names.insert(names.end(), setting.other_environment.begin(), setting.other_environment.end());
  return names;
}

void ReadEnvironment(const ConfigSources& sources, ConfigDraft& draft) {
  for (const Setting& setting : Settings()) {
    for (const std::string_view name : VariablesOf(setting)) {
      const auto value = sources.environment(std::string(name).c_str());
      if (!value) continue;
      ClearList(setting, draft.options);
      draft.Set(setting, *value, std::string(name) + ": ", /*lasting=*/true);
      break;
    }
  }
}

void ReadFlags(const ConfigSources& sources, ConfigDraft& draft) {
  for (const Setting& setting : Settings()) {
    bool first = true;
    for (const auto& [flag, value] : sources.flags) {
      if (flag != setting.flag) continue;
      if (first) {
        ClearList(setting, draft.options);
      }
      first = false;
      if (value.empty()) {
        draft.Refuse(setting, flag + ": the value is missing", /*lasting=*/true);
      } else {
        draft.Set(setting, value, flag + ": ", /*lasting=*/true);
      }
    }
  }
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const set = std::getenv(name);
    std::string_view value(set == nullptr ? "" : set);
    while (value.ends_with('\n') || value.ends_with('\r')) value.remove_suffix(1);
    return value.empty() ? std::nullopt : std::optional<std::string>(value);
  };
}

Environment TakeEnvironment() {
  const auto taken = std::make_shared<std::map<std::string, std::string>>();
  const auto take = [&taken](std::string_view name) {
    const auto value = ProcessEnvironment()(std::string(name).c_str());
    if (value) taken->emplace(name, *value);
  };
  take(kFileVariable);
  for (const Setting& setting : Settings()) {
    for (const std::string_view name : VariablesOf(setting)) take(name);
    const std::string name(setting.environment);
    char* const value = name.empty() ? nullptr : std::getenv(name.c_str());
    if (value != nullptr && supervisor::HoldsSecret((name + '=' + value).c_str())) {
      std::memset(value, 'x', std::strlen(value));  // `ps e` shows this memory
      unsetenv(name.c_str());                       // the job's command must not inherit it
    }
  }
  return [taken](const char* name) -> std::optional<std::string> {
    const auto found = taken->find(name);
    return found == taken->end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

std::vector<std::string> Config::ErrorTexts() const {
  std::vector<std::string> texts;
  for (const ConfigError& error : errors) texts.push_back(error.text);
  return texts;
}

Config LoadConfig(const ConfigSources& sources) {
  Config config;
  ConfigDraft draft;
  for (const ConfigError& error : sources.errors) draft.Add(error);
  ReadFile(sources, config.file, draft);
  ReadEnvironment(sources, draft);
  ReadFlags(sources, draft);
  for (std::string& error : CheckGatewayAccess(draft.options)) draft.Add({.text = std::move(error), .off = Output::kGateway});
  for (ConfigError& error : CheckRemoteWrite(draft.options.remote_write)) draft.Add(std::move(error));
  MappingFile mapping = ReadMapping(draft.options.mapping_file);
  for (std::string& error : mapping.errors) {
    draft.Add({.text = std::move(error),
               .consequence = mapping.rules == nullptr ? "no rule applies" : "the rest of the file applies"});
  }
  if (sources.checks_pages && !draft.options.web_config_file.empty()) {
    for (std::string& error : ReadWebConfig(draft.options.web_config_file).errors) {
      draft.Add({.text = std::move(error), .off = Output::kPages});
    }
  }
  config.errors = draft.Finish();
  config.options = std::move(draft.options);
  config.options.mapping = std::move(mapping.rules);
  config.options.mapping_text = std::move(mapping.text);
  config.notes = std::move(draft.notes);
  config.notes.insert(config.notes.end(), mapping.notes.begin(), mapping.notes.end());
  return config;
}

Config ParseConfig(const std::string& name, const std::string& text) {
  ConfigDraft draft;
  ReadConfigFile(name, text, draft);
  Config config;
  config.errors = draft.Finish();
  config.options = std::move(draft.options);
  config.notes = std::move(draft.notes);
  return config;
}

}  // namespace persia::agent

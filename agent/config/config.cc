#include "config/config.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "config/config_draft.h"
#include "config/config_file.h"
#include "config/remote_write_settings.h"
#include "config/settings.h"
#include "config/web_config.h"
#include "files/small_file.h"
#include "naming/mapping_file.h"
#include "net/url.h"
#include "supervisor/secret_variables.h"

namespace persia::agent {
namespace {

constexpr char kFileVariable[] = "PERSIA_GLOBAL_CONFIG";
constexpr char kFileInWorkingDirectory[] = "global_config.yaml";
constexpr std::string_view kPrefix = "PERSIA_";
constexpr std::string_view kOwnPrefix = "PERSIA_METRICS_";
// What the library, the Python package and the supervisor read, and no setting has.
constexpr std::string_view kOtherVariables[] = {kFileVariable,
                                                "PERSIA_ROLE",
                                                "PERSIA_METRICS_EXEC_DIR",
                                                "PERSIA_METRICS_PROMETHEUS_CLIENT",
                                                "PERSIA_METRICS_RANK_OF_PARENT",
                                                "PERSIA_METRICS_SEGMENT_BYTES",
                                                "PERSIA_METRICS_STACKS",
                                                "PERSIA_METRICS_TORCH",
                                                "PERSIA_METRICS_TORCHELASTIC"};

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
  if (setting.kind == ValueKind::kLabels)
    options.labels.clear();
  else if (setting.kind == ValueKind::kTargets)
    options.remote_write.clear();
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

// Variables without effect. Of those that do not begin as the product's own, only the ones that resemble one: PersiaML has
// others.
void TellUnknown(std::span<const std::string> variables, ConfigDraft& draft) {
  std::vector<std::string_view> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  for (const Setting& setting : Settings()) {
    const auto names = VariablesOf(setting);
    known.insert(known.end(), names.begin(), names.end());
  }
  std::erase_if(known, [](std::string_view name) { return !name.starts_with(kPrefix); });
  for (std::string_view& name : known) name.remove_prefix(kPrefix.size());
  for (const std::string& variable : variables) {
    const std::string_view name = std::string_view(variable).substr(kPrefix.size());
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string_view meant = ClosestMatch(name, known);
    if (meant.empty() && !variable.starts_with(kOwnPrefix)) continue;
    draft.notes.push_back("unknown variable " + Quoted(variable) +
                          (meant.empty() ? "" : "; did you mean " + Quoted(std::string(kPrefix).append(meant)) + "?") +
                          (meant.empty() ? "; it is ignored" : " It is ignored"));
  }
}

void ReadFlags(const ConfigSources& sources, ConfigDraft& draft) {
  for (const Setting& setting : Settings()) {
    bool first = true;
    for (const auto& [flag, value] : sources.flags) {
      if (flag != setting.flag) continue;
      if (first) ClearList(setting, draft.options);
      first = false;
      if (value.empty())
        draft.Refuse(setting, flag + ": the value is missing", /*lasting=*/true);
      else
        draft.Set(setting, value, flag + ": ", /*lasting=*/true);
    }
  }
}

void AppendName(const Setting& setting, std::string& list) {
  list += (list.empty() ? "" : ", ") + std::string(setting.key.empty() ? setting.flag : setting.key);
}

bool HasTlsSettings(const GatewayAccessOptions& access) {
  return !access.ca_file.empty() || !access.cert_file.empty() || !access.key_file.empty() || !access.server_name.empty();
}

std::vector<std::string> CheckAccess(const GatewayAccessOptions& access) {
  std::vector<std::string> errors;
  const auto refuse_if = [&errors](bool wrong, const std::string& sentence) {
    if (wrong) errors.push_back(sentence);
  };
  const bool has_password = !access.password.empty() || !access.password_file.empty();
  const bool has_token = !access.bearer_token.empty() || !access.bearer_token_file.empty();
  refuse_if(!access.password.empty() && !access.password_file.empty(),
            "gateway_password and gateway_password_file are both set; leave one out");
  refuse_if(!access.bearer_token.empty() && !access.bearer_token_file.empty(),
            "gateway_bearer_token and gateway_bearer_token_file are both set; leave one out");
  refuse_if(has_token && (has_password || !access.username.empty()),
            "both a bearer token and a user name or password are given (gateway_bearer_token*, gateway_username, "
            "gateway_password*); a request can carry only one of them");
  refuse_if(access.username.empty() && has_password,
            "gateway_password or gateway_password_file is set, but gateway_username is not");
  refuse_if(!access.username.empty() && !has_password,
            "gateway_username is set, but neither gateway_password nor gateway_password_file is");
  refuse_if(!access.cert_file.empty() && access.key_file.empty(), "gateway_cert_file is set, but gateway_key_file is not");
  refuse_if(access.cert_file.empty() && !access.key_file.empty(), "gateway_key_file is set, but gateway_cert_file is not");
  return errors;
}

void CheckGatewayProxy(const ProxySettings& proxy, std::vector<std::string>& errors) {
  if (proxy.from_environment && !proxy.url.empty())
    errors.emplace_back("gateway_proxy_from_environment and gateway_proxy_url are both set; leave one out");
}

// Contradictions between the settings of the gateway's credentials, TLS and proxy, which may come from different sources: one
// line each, which names the settings. No error quotes a secret.
std::vector<std::string> CheckGatewayAccess(const AgentOptions& options) {
  const auto gateway = GatewayAddress::Parse(options.gateway_address);
  std::vector<std::string> errors = CheckAccess(options.gateway_access);
  CheckGatewayProxy(options.gateway_proxy, errors);
  if (gateway.ok() && gateway.value().scheme() != "https" && HasTlsSettings(options.gateway_access)) {
    errors.push_back(
        "gateway_ca_file, gateway_cert_file, gateway_key_file or gateway_server_name is set, but gateway_address " +
        Quoted(options.gateway_address) + " is one without TLS; give https://" + gateway.value().HostAndPort() +
        gateway.value().path_prefix());
  }
  return errors;
}

}  // namespace

std::vector<std::string> VariableNames() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name = std::string_view(*variable).substr(0, std::string_view(*variable).find('='));
    if (name.starts_with(kPrefix)) names.emplace_back(name);
  }
  return names;
}

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
  TellUnknown(sources.variables, draft);
  for (std::string& error : CheckGatewayAccess(draft.options)) draft.Add({.text = std::move(error), .off = Output::kGateway});
  for (ConfigError& error : CheckRemoteWrite(draft.options.remote_write)) draft.Add(std::move(error));
  MappingFile mapping = ReadMapping(draft.options.mapping_file);
  for (std::string& error : mapping.errors) {
    draft.Add({.text = std::move(error),
               .consequence = mapping.rules == nullptr ? "no rule applies" : "the rest of the file applies"});
  }
  if (sources.checks_pages && !draft.options.web_config_file.empty())
    for (std::string& error : ReadWebConfig(draft.options.web_config_file).errors)
      draft.Add({.text = std::move(error), .off = Output::kPages});
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

std::vector<std::string> Reloader::Reload() {
  const MutexLock lock(mutex_);
  Config config = LoadConfig(options_.sources);
  std::vector<std::string> refusals;
  for (const ConfigError& error : config.errors)
    if (!error.lasting) refusals.push_back(error.text);
  options_.note(refusals.empty(), config.errors.size());
  if (!refusals.empty()) {
    for (const std::string& error : refusals) LogError("config.refused", error);
    LogError("config.refused", "the settings are not reloaded; the current ones stay in effect");
    return refusals;
  }
  std::string changed;
  std::string fixed;
  AgentOptions merged = current_;
  for (const Setting& setting : Settings()) {
    const bool differs = setting.get(config.options) != setting.get(current_) ||
                         (setting.content != nullptr && setting.content(config.options) != setting.content(current_));
    if (setting.reloadable) setting.copy(config.options, merged);
    if (differs) AppendName(setting, setting.reloadable ? changed : fixed);
  }
  current_ = merged;
  SetUpLog(merged.log_level, merged.log_format);
  options_.apply(merged);
  for (const std::string& note : config.notes) LogWarning("config.note", note);
  LogInfo("config.reloaded", "the settings are reloaded" + (config.file.empty() ? "" : " from " + config.file) +
                                 (changed.empty() ? "" : "; changed: " + changed));
  if (!fixed.empty())
    LogWarning("config.fixed", "changed, but read at the start only: " + fixed + "; restart the agent to apply them");
  return {};
}

}  // namespace persia::agent

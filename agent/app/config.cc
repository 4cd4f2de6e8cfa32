#include "app/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "app/gateway_settings.h"
#include "app/mapping_file.h"
#include "app/mapping_nodes.h"
#include "app/nearest.h"
#include "app/remote_write_settings.h"
#include "app/settings.h"
#include "app/text.h"
#include "app/web_config.h"
#include "app/yaml_document.h"

namespace persia::agent {
namespace {

constexpr size_t kLargestFile = 1 << 20;
constexpr char kFileVariable[] = "PERSIA_GLOBAL_CONFIG";
constexpr char kFileInWorkingDirectory[] = "global_config.yaml";
constexpr std::string_view kSection = "PersiaMetricsConfig";
constexpr std::string_view kLaterParent = "common_config";
constexpr std::string_view kLaterSection = "metrics_config";

// Walks one file's tree and writes what it finds into a Config.
class FileReader {
 public:
  FileReader(std::string name, Config& config) : name_(std::move(name)), config_(config) {}

  void ReadRoot(const YamlNode& root) {
    if (root.kind == YamlNode::Kind::kNull) {
      return Fail(root, "the file is empty; expected a section PersiaMetricsConfig");
    }
    if (root.kind != YamlNode::Kind::kMap) {
      return Fail(root, "expected sections (PersiaMetricsConfig: ...), found " + std::string(root.KindName()));
    }
    const YamlNode* section = FindOnce(root, kSection);
    const YamlNode* parent = FindOnce(root, kLaterParent);
    const YamlNode* later =
        parent != nullptr && parent->kind == YamlNode::Kind::kMap ? FindOnce(*parent, kLaterSection) : nullptr;
    if (section != nullptr && later != nullptr) {
      return Fail(*later, "the file has PersiaMetricsConfig and common_config: metrics_config; leave one out");
    }
    if (section == nullptr) {
      section = later;
    }
    if (section == nullptr) {
      return WarnOfMisspeltSection(root);
    }
    ReadSection(*section);
  }

 private:
  // The value under `key`; a key that stands twice is an error.
  const YamlNode* FindOnce(const YamlNode& map, std::string_view key) {
    const YamlNode* found = nullptr;
    for (const YamlNode::Entry& entry : map.entries) {
      if (entry.key->kind != YamlNode::Kind::kScalar || entry.key->text != key) {
        continue;
      }
      if (found != nullptr) {
        Fail(*entry.key, "the section " + Quoted(key) + " stands here for the second time");
        return found;
      }
      found = entry.value.get();
    }
    return found;
  }

  // A file without our section is fine: it is PersiaML's, not ours. One that nearly has it is not.
  void WarnOfMisspeltSection(const YamlNode& root) {
    const std::string_view wanted[] = {kSection};
    for (const YamlNode::Entry& entry : root.entries) {
      if (entry.key->kind == YamlNode::Kind::kScalar && !Nearest(entry.key->text, wanted).empty()) {
        Fail(*entry.key, "unknown section " + Quoted(entry.key->text) + DidYouMean(entry.key->text, wanted));
      }
    }
  }

  void ReadSection(const YamlNode& section) {
    if (section.kind == YamlNode::Kind::kNull) {
      return;  // a section whose lines are all commented out
    }
    if (section.kind != YamlNode::Kind::kMap) {
      return Fail(section, "expected settings (enable_metrics: true ...), found " + std::string(section.KindName()));
    }
    std::map<const Setting*, const YamlNode*> seen;
    for (const YamlNode::Entry& entry : section.entries) {
      const Setting* setting = FindSetting(*entry.key);
      if (setting == nullptr) {
        continue;
      }
      const auto [first, is_new] = seen.emplace(setting, entry.key.get());
      if (!is_new) {
        Fail(*entry.key, Quoted(entry.key->text) + " is given twice: first in line " + std::to_string(first->second->line) +
                             (first->second->text == entry.key->text ? "" : " as " + Quoted(first->second->text)));
        continue;
      }
      ReadValue(*setting, *entry.key, *entry.value);
    }
  }

  const Setting* FindSetting(const YamlNode& key) {
    if (key.kind != YamlNode::Kind::kScalar) {
      Fail(key, "expected a setting's name, found " + std::string(key.KindName()));
      return nullptr;
    }
    std::vector<std::string_view> keys;
    for (const Setting& setting : Settings()) {
      if (setting.key.empty()) {
        continue;
      }
      if (key.text == setting.key || (!setting.alias.empty() && key.text == setting.alias)) {
        return &setting;
      }
      keys.push_back(setting.key);
    }
    std::string list;
    for (const std::string_view known : keys) {
      list += (list.empty() ? "" : ", ") + std::string(known);
    }
    const std::string meant = DidYouMean(key.text, keys);
    // Without its colon a setting is a key with its value in it, which may be a secret.
    const size_t blank = key.text.find_first_of(" :=\t\n");
    const std::string shown =
        Quoted(key.text.substr(0, blank)) + (blank == std::string::npos ? "" : " (the beginning of the key)");
    Fail(key, "unknown setting " + shown + (meant.empty() ? " (" + list + ")" : meant));
    return nullptr;
  }

  void ReadValue(const Setting& setting, const YamlNode& key, const YamlNode& value) {
    const std::string prefix = std::string(key.text) + ": ";
    if (setting.kind == ValueKind::kLabels) {
      return ReadLabels(setting, prefix, value);
    }
    if (setting.kind == ValueKind::kTargets) {
      NodeReader reader(name_, config_.errors, config_.notes);
      return ReadRemoteWrite(value, reader, config_.options.remote_write);
    }
    const std::string_view wanted = setting.kind == ValueKind::kBoolean  ? "true or false"
                                    : setting.kind == ValueKind::kNumber ? "a number"
                                    : setting.kind == ValueKind::kTexts  ? "a text, or a list of texts"
                                                                         : "a text";
    if (setting.kind == ValueKind::kTexts && value.kind == YamlNode::Kind::kSequence) {
      return ReadTexts(setting, prefix, value);
    }
    if (value.kind == YamlNode::Kind::kNull) {
      return Fail(key, prefix + "the value is missing; expected " + std::string(wanted));
    }
    if (value.kind != YamlNode::Kind::kScalar) {
      return Fail(value, prefix + "expected " + std::string(wanted) + ", found " + std::string(value.KindName()));
    }
    if (value.quoted && setting.kind != ValueKind::kText && setting.kind != ValueKind::kTexts) {
      return Fail(value, prefix + "expected " + std::string(wanted) + ", found the text " + Quoted(value.text) +
                             "; leave out the quotes");
    }
    const Status status =
        setting.kind == ValueKind::kBoolean ? SetBoolean(setting, value.text) : setting.set(value.text, config_.options);
    if (!status.ok()) {
      Fail(value, prefix + status.error());
    }
  }

  void ReadTexts(const Setting& setting, const std::string& prefix, const YamlNode& list) {
    if (list.items.empty()) {
      return Fail(list, prefix + "the list is empty; expected a text, or a list of texts");
    }
    std::string all;
    for (const auto& item : list.items) {
      if (item->kind != YamlNode::Kind::kScalar) {
        return Fail(*item, prefix + "expected a text, found " + std::string(item->KindName()));
      }
      AgentOptions scratch;  // what is wrong with this one is said of its line
      if (const Status status = setting.set(item->text, scratch); !status.ok()) {
        return Fail(*item, prefix + status.error());
      }
      all += (all.empty() ? "" : ",") + item->text;
    }
    if (const Status status = setting.set(all, config_.options); !status.ok()) {
      Fail(list, prefix + status.error());
    }
  }

  // YAML's booleans are stricter than those of the environment.
  Status SetBoolean(const Setting& setting, const std::string& text) {
    if (text == "1" || text == "0") {
      return Bad(text, "is a number; expected true or false");
    }
    return setting.set(text, config_.options);
  }

  void ReadLabels(const Setting& setting, const std::string& prefix, const YamlNode& labels) {
    if (labels.kind == YamlNode::Kind::kNull) {
      return;
    }
    if (labels.kind != YamlNode::Kind::kMap) {
      return Fail(labels, prefix + "expected a map (team: ads), found " + std::string(labels.KindName()));
    }
    for (const YamlNode::Entry& entry : labels.entries) {
      if (entry.key->kind != YamlNode::Kind::kScalar) {
        Fail(*entry.key, prefix + "expected a label's name, found " + std::string(entry.key->KindName()));
      } else if (entry.value->kind != YamlNode::Kind::kScalar) {
        Fail(*entry.value, prefix + entry.key->text + ": expected a text, found " + std::string(entry.value->KindName()));
      } else if (entry.key->text.find('=') != std::string::npos) {
        Fail(*entry.key, prefix + Quoted(entry.key->text) + " is not a label's name");
      } else if (Status status = setting.set(entry.key->text + "=" + entry.value->text, config_.options); !status.ok()) {
        Fail(*entry.key, prefix + status.error());
      }
    }
  }

  void Fail(const YamlNode& at, const std::string& what) {
    config_.errors.push_back(name_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + what);
  }

  const std::string name_;
  Config& config_;
};

void ReadText(const std::string& name, const std::string& text, Config& config) {
  const auto document = ParseYaml(name, text);
  if (!document.ok()) {
    config.errors.push_back(document.error());
    return;
  }
  FileReader(name, config).ReadRoot(*document.value());
}

// A regular file of at most a megabyte; anything else is told apart before it is read, so that a pipe or a device cannot hold
// the agent up.
Result<std::string> ReadSmallFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return Error{path + ": cannot be read: " + std::strerror(errno)};
  }
  const auto read_all = [&]() -> Result<std::string> {
    struct stat info {};
    if (fstat(fd, &info) != 0) {
      return Error{path + ": cannot be read: " + std::strerror(errno)};
    }
    if (!S_ISREG(info.st_mode)) {
      return Error{path + ": is " + (S_ISDIR(info.st_mode) ? "a directory" : "not a regular file") + "; expected a YAML file"};
    }
    std::string text;
    char buffer[16384];
    for (;;) {
      const ssize_t size = read(fd, buffer, sizeof buffer);
      if (size < 0 && errno == EINTR) {
        continue;
      }
      if (size < 0) {
        return Error{path + ": cannot be read: " + std::strerror(errno)};
      }
      if (size == 0) {
        return text;
      }
      text.append(buffer, static_cast<size_t>(size));
      if (text.size() > kLargestFile) {
        return Error{path + ": is larger than 1 MiB; expected a YAML file of a few lines"};
      }
    }
  };
  Result<std::string> result = read_all();
  close(fd);
  return result;
}

void ReadFile(const ConfigSources& sources, Config& config) {
  std::string from;
  config.file = sources.file;
  if (config.file.empty()) {
    if (const auto named = sources.environment(kFileVariable)) {
      config.file = *named;
      from = std::string(kFileVariable) + ": ";
    } else if (access(kFileInWorkingDirectory, F_OK) == 0) {
      config.file = kFileInWorkingDirectory;
    } else {
      return;
    }
  }
  const Result<std::string> text = ReadSmallFile(config.file);
  if (!text.ok()) {
    config.errors.push_back(from + text.error());
    return;
  }
  ReadText(config.file, text.value(), config);
}

void ReadEnvironment(const ConfigSources& sources, Config& config) {
  for (const Setting& setting : Settings()) {
    for (const std::string_view name : {setting.environment, setting.second_environment}) {
      const auto value = name.empty() ? std::nullopt : sources.environment(std::string(name).c_str());
      if (!value) {
        continue;
      }
      if (setting.kind == ValueKind::kTargets) {
        config.options.remote_write.clear();
      }
      if (Status status = setting.set(*value, config.options); !status.ok()) {
        config.errors.push_back(std::string(name) + ": " + status.error());
      }
      break;
    }
  }
}

void ReadFlags(const ConfigSources& sources, Config& config) {
  for (const Setting& setting : Settings()) {
    bool first = true;
    for (const auto& [flag, value] : sources.flags) {
      if (flag != setting.flag) {
        continue;
      }
      if (first && setting.kind == ValueKind::kLabels) {
        config.options.labels.clear();  // a list is replaced as a whole, as any other value
      }
      if (first && setting.kind == ValueKind::kTargets) {
        config.options.remote_write.clear();
      }
      first = false;
      if (Status status = setting.set(value, config.options); !status.ok()) {
        config.errors.push_back(flag + ": " + status.error());
      }
    }
  }
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
  };
}

Environment TakeEnvironment() {
  const auto secrets = std::make_shared<std::map<std::string, std::string>>();
  for (const Setting& setting : Settings()) {
    const std::string name(setting.environment);
    char* const value = setting.secret && !name.empty() ? std::getenv(name.c_str()) : nullptr;
    if (value != nullptr) {
      (*secrets)[name] = value;
      std::memset(value, 'x', std::strlen(value));  // what `ps e` shows is this very memory
      unsetenv(name.c_str());                       // and the job's command has no need of it
    }
  }
  return [secrets, rest = ProcessEnvironment()](const char* name) -> std::optional<std::string> {
    const auto secret = secrets->find(name);
    if (secret == secrets->end()) {
      return rest(name);
    }
    return secret->second.empty() ? std::nullopt : std::optional<std::string>(secret->second);
  };
}

Config LoadConfig(const ConfigSources& sources) {
  Config config;
  ReadFile(sources, config);
  ReadEnvironment(sources, config);
  ReadFlags(sources, config);
  for (std::string& error : CheckGatewayAccess(config.options)) {
    config.errors.push_back(std::move(error));
  }
  for (std::string& error : CheckRemoteWrite(config.options)) {
    config.errors.push_back(std::move(error));
  }
  if (!config.options.web_config_file.empty()) {
    config.page_errors = ReadWebConfig(config.options.web_config_file).errors;
  }
  MappingFile mapping = ReadMapping(config.options.mapping_file);
  config.options.mapping = std::move(mapping.rules);
  config.options.mapping_text = std::move(mapping.text);
  config.errors.insert(config.errors.end(), mapping.errors.begin(), mapping.errors.end());
  config.notes = std::move(mapping.notes);
  return config;
}

Config ParseConfig(const std::string& name, const std::string& text) {
  Config config;
  ReadText(name, text, config);
  return config;
}

}  // namespace persia::agent

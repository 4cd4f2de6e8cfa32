#include "config/config_file.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/remote_write_settings.h"
#include "config/settings.h"
#include "config/values.h"
#include "files/yaml_reader.h"

namespace persia::agent {
namespace {

constexpr std::string_view kSection = "PersiaMetricsConfig";
constexpr std::string_view kLaterParent = "common_config";
constexpr std::string_view kLaterSection = "metrics_config";

class ConfigFileReader {
 public:
  ConfigFileReader(const std::string& name, const std::string& text, ConfigDraft& draft)
      : name_(name), text_(text), draft_(draft), file_(name, file_errors_) {}

  void ReadRoot(const YamlNode& root) {
    if (root.kind == YamlNode::Kind::kNull) {
      file_.Fail(root, "the file is empty; expected a section PersiaMetricsConfig");
      return draft_.Add({.text = file_errors_.back(), .consequence = "it has no settings"});
    }
    const YamlNode* section = FindAgentSection(root);
    if (section != nullptr && file_errors_.empty()) ReadSection(*section);
    for (std::string& error : file_errors_) draft_.RefuseFile(std::move(error), &text_);
  }

 private:
  // Null: there is none, or there is an error.
  const YamlNode* FindAgentSection(const YamlNode& root) {
    if (!file_.Expect(root, YamlNode::Kind::kMap, "expected sections (PersiaMetricsConfig: ...)")) return nullptr;
    const YamlNode* section = FindSection(root, kSection);
    const YamlNode* parent = FindSection(root, kLaterParent);
    const YamlNode* later =
        parent != nullptr && parent->kind == YamlNode::Kind::kMap ? FindSection(*parent, kLaterSection) : nullptr;
    if (section != nullptr && later != nullptr)
      file_.Fail(*later, "the file has PersiaMetricsConfig and common_config: metrics_config; leave one out");
    else if (section == nullptr && later == nullptr)
      RefuseMisspeltSection(root);
    return section != nullptr ? section : later;
  }

  const YamlNode* FindSection(const YamlNode& map, std::string_view key) {
    const YamlNode::Entry* found = nullptr;
    for (const YamlNode::Entry& entry : map.entries) {
      if (entry.key->kind != YamlNode::Kind::kScalar || entry.key->text != key) continue;
      if (found != nullptr) {
        file_.FailRepeated(*entry.key, *found->key, "the section ");
        break;
      }
      found = &entry;
    }
    return found == nullptr ? nullptr : found->value.get();
  }

  // A file without the section belongs only to PersiaML: this is no error.
  void RefuseMisspeltSection(const YamlNode& root) {
    const std::string_view sections[] = {kSection};
    for (const YamlNode::Entry& entry : root.entries)
      if (entry.key->kind == YamlNode::Kind::kScalar && !ClosestMatch(entry.key->text, sections).empty())
        file_.FailUnknown(*entry.key, "unknown section", sections);
  }

  void ReadSection(const YamlNode& section) {
    if (section.kind == YamlNode::Kind::kNull) return;  // all settings are commented out
    if (!file_.Expect(section, YamlNode::Kind::kMap, "expected settings (enable_metrics: true ...)")) return;
    std::map<const Setting*, const YamlNode*> seen;
    for (const YamlNode::Entry& entry : section.entries) {
      std::vector<std::string> errors;
      YamlReader reader(name_, errors);
      const Setting* setting = FindSetting(*entry.key, reader);
      if (setting == nullptr) {
        draft_.RefuseName(errors.back(), DecidingSetting(entry.key->text));
        continue;
      }
      const auto [first, is_new] = seen.emplace(setting, entry.key.get());
      if (!is_new)
        reader.FailRepeated(*entry.key, *first->second);
      else if (setting->kind == ValueKind::kTargets)
        ReadTargets(*entry.value);
      else
        ReadSetting(*setting, *entry.key, *entry.value, reader);
      for (std::string& error : errors) draft_.Refuse(*setting, std::move(error));
    }
  }

  void ReadTargets(const YamlNode& list) {
    RemoteWriteList read = ReadRemoteWrite(name_, list);
    draft_.options.remote_write = std::move(read.targets);
    draft_.notes = std::move(read.notes);
    for (ConfigError& error : read.errors) draft_.Add(std::move(error));
  }

  // Null: the error is in `reader`.
  static const Setting* FindSetting(const YamlNode& key, YamlReader& reader) {
    if (!reader.Expect(key, YamlNode::Kind::kScalar, "expected a setting's name")) return nullptr;
    std::vector<std::string_view> keys;
    for (const Setting& setting : Settings()) {
      if (setting.key.empty()) continue;
      if (key.text == setting.key || (!setting.alias.empty() && key.text == setting.alias)) return &setting;
      keys.push_back(setting.key);
    }
    reader.FailUnknown(key, "unknown setting", keys);
    return nullptr;
  }

  void ReadSetting(const Setting& setting, const YamlNode& key, const YamlNode& value, YamlReader& reader) {
    const std::string prefix = key.text + ": ";
    if (setting.kind == ValueKind::kLabels) return ReadLabels(prefix, value, reader);
    if (setting.kind == ValueKind::kTextList && value.kind == YamlNode::Kind::kSequence)
      return ReadTextList(setting, prefix, value, reader);
    const bool is_boolean = setting.kind == ValueKind::kBoolean;
    const bool is_number = setting.kind == ValueKind::kNumber;
    const std::string expected = is_boolean                             ? "true or false"
                                 : is_number                            ? "a number"
                                 : setting.kind == ValueKind::kTextList ? "a text, or a list of texts"
                                                                        : "a text";
    if (value.kind == YamlNode::Kind::kNull && !is_boolean)
      return reader.Fail(key, prefix + "the value is missing; expected " + expected);
    if (value.kind != YamlNode::Kind::kNull && !reader.Expect(value, YamlNode::Kind::kScalar, prefix + "expected " + expected))
      return;
    double number = 0;
    if (value.quoted && (is_boolean || (is_number && ParseNumber(std::string_view(value.text), number))))
      reader.Fail(value, prefix + "expected " + expected + ", found the text " + Quoted(value.text) + "; leave out the quotes");
    else if (is_boolean && (value.text == "1" || value.text == "0"))
      reader.Fail(value, prefix + Quoted(value.text) + " is a number; expected true or false");
    else if (const Status status = setting.set(value.kind == YamlNode::Kind::kNull ? "true" : value.text, draft_.options);
             !status.ok())
      reader.Fail(value, prefix + status.error());
  }

  void ReadTextList(const Setting& setting, const std::string& prefix, const YamlNode& list, YamlReader& reader) {
    if (list.items.empty()) return reader.Fail(list, prefix + "the list is empty; expected a text, or a list of texts");
    std::string joined;
    for (const auto& item : list.items) {
      if (!reader.Expect(*item, YamlNode::Kind::kScalar, prefix + "expected a text")) return;
      AgentOptions scratch;  // so that the error of one item has its line
      if (const Status status = setting.set(item->text, scratch); !status.ok())
        return reader.Fail(*item, prefix + status.error());
      joined += (joined.empty() ? "" : ",") + item->text;
    }
    if (const Status status = setting.set(joined, draft_.options); !status.ok()) reader.Fail(list, prefix + status.error());
  }

  void ReadLabels(const std::string& prefix, const YamlNode& labels, YamlReader& reader) {
    if (labels.kind == YamlNode::Kind::kNull ||
        !reader.Expect(labels, YamlNode::Kind::kMap, prefix + "expected a map (team: ads)"))
      return;
    for (const YamlNode::Entry& entry : labels.entries) {
      if (!reader.Expect(*entry.key, YamlNode::Kind::kScalar, prefix + "expected a label's name") ||
          !reader.Expect(*entry.value, YamlNode::Kind::kScalar, prefix + entry.key->text + ": expected a text"))
        continue;
      if (const Status status = AddLabel(entry.key->text, entry.value->text, draft_.options.labels); !status.ok())
        reader.Fail(*entry.key, prefix + status.error());
    }
  }

  const std::string& name_;
  const std::string& text_;
  ConfigDraft& draft_;
  std::vector<std::string> file_errors_;  // of the file as a whole
  YamlReader file_;
};

}  // namespace

void ReadConfigFile(const std::string& name, const std::string& text, ConfigDraft& draft) {
  const auto document = ParseYaml(name, text);
  if (!document.ok()) return draft.RefuseFile(document.error(), &text);
  ConfigFileReader(name, text, draft).ReadRoot(*document.value());
}

}  // namespace persia::agent

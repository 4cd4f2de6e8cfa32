#include "config/config_draft.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

// The first setting of an output in the table, and how names of its settings begin.
struct Decision {
  std::string_view setting;
  std::string_view beginning;
};
constexpr Decision kDecisions[] = {{"gateway_address", "gateway"}, {"web_config_file", "web_config"}};

const Setting& SettingOf(std::string_view key) {
  const auto settings = Settings();
  return *std::find_if(settings.begin(), settings.end(), [key](const Setting& setting) { return setting.key == key; });
}

std::string_view WhatIsOff(Output output) {
  return output == Output::kGateway ? "nothing is pushed to a gateway" : "the pages are not served";
}

std::string ValueInUse(const Setting& setting, const AgentOptions& options) {
  if (setting.kind == ValueKind::kLabels) return "this label is left out";
  if (setting.kind == ValueKind::kTargets) return "nothing is sent to this target";
  const std::string value = setting.get(options);
  if (value.empty() || value == setting.default_text) return "the default is used: " + std::string(setting.default_text);
  return value + " is used instead";
}

// A flag as a key of the file: "--web.config.file" is "web_config_file".
std::string AsKey(std::string_view name) {
  std::string key(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  const auto separates = [](char c) { return c == '-' || c == '.'; };
  std::replace_if(key.begin(), key.end(), separates, '_');
  return key;
}

}  // namespace

const Setting* DecidingSetting(std::string_view name) {
  const std::string key = AsKey(name);
  std::map<std::string, const Setting*> settings;
  for (const Setting& setting : Settings()) {
    if (!setting.key.empty()) settings.emplace(setting.key, &setting);
    if (!setting.flag.empty()) settings.emplace(AsKey(setting.flag), &setting);
  }
  std::vector<std::string_view> names;
  for (const auto& [known, setting] : settings) names.push_back(known);
  if (const std::string_view closest = ClosestMatch(key, names); !closest.empty()) {
    const Setting* setting = settings.at(std::string(closest));
    return setting->decides == Output::kNone ? nullptr : setting;
  }
  const auto decision = std::find_if(std::begin(kDecisions), std::end(kDecisions),
                                     [&key](const Decision& one) { return key.starts_with(one.beginning); });
  return decision == std::end(kDecisions) ? nullptr : &SettingOf(decision->setting);
}

void ConfigDraft::Set(const Setting& setting, std::string_view value, const std::string& place, bool lasting) {
  if (const Status status = setting.set(value, options); !status.ok())
    Refuse(setting, place + status.error(), lasting);
  else
    Accept(setting);
}

void ConfigDraft::Refuse(const Setting& setting, std::string error, bool lasting) {
  wrong_.insert(&setting);
  mistakes_.push_back({{.text = std::move(error), .lasting = lasting}, {&setting}});
}

void ConfigDraft::RefuseName(std::string error, const Setting* meant) {
  Mistake mistake{{.text = std::move(error), .consequence = "it is ignored"}, {}};
  if (meant != nullptr) {
    wrong_.insert(meant);
    mistake.settings.push_back(meant);
  }
  mistakes_.push_back(std::move(mistake));
}

void ConfigDraft::RefuseFile(std::string error, const std::string* content) {
  Mistake mistake{{.text = std::move(error), .consequence = "its settings are not used"}, {}};
  for (const Decision& decision : kDecisions) {
    if (content != nullptr && content->find(decision.beginning) == std::string::npos) continue;
    wrong_.insert(&SettingOf(decision.setting));
    mistake.settings.push_back(&SettingOf(decision.setting));
  }
  mistakes_.push_back(std::move(mistake));
}

std::string ConfigDraft::Consequence(const Mistake& mistake) const {
  if (mistake.error.off != Output::kNone) {
    return mistake.error.consequence + (mistake.error.consequence.empty() ? "" : ", and ") +
           std::string(WhatIsOff(mistake.error.off));
  }
  std::string text = mistake.error.consequence;
  for (const Setting* setting : mistake.settings)
    if (setting->decides != Output::kNone && wrong_.contains(setting))
      text += (text.empty() ? "" : ", and ") + std::string(WhatIsOff(setting->decides));
  return text.empty() ? ValueInUse(*mistake.settings.front(), options) : text;
}

std::vector<ConfigError> ConfigDraft::Finish() {
  std::vector<ConfigError> errors;
  std::set<Output> off;
  for (const Setting* setting : wrong_) off.insert(setting->decides);
  for (const Mistake& mistake : mistakes_) {
    off.insert(mistake.error.off);
    ConfigError error = mistake.error;
    error.consequence = Consequence(mistake);
    for (const Setting* setting : mistake.settings)
      if (wrong_.contains(setting) && error.off == Output::kNone) error.off = setting->decides;
    errors.push_back(std::move(error));
  }
  if (off.contains(Output::kGateway)) options.gateway_address = "off";
  if (off.contains(Output::kPages)) options.listen_address.clear();
  return errors;
}

}  // namespace persia::agent

// The setting `remote_write`: a list of targets, in the words of Prometheus, so that an entry of a prometheus.yml can be
// pasted. Keys that the agent cannot fulfil are errors or notes, which say what to use. No error quotes a secret.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/options.h"
#include "files/yaml_document.h"
#include "files/yaml_reader.h"
#include "remote/relabel.h"

namespace persia::agent {

// The URL without its query, in which some databases take a password.
std::string ShownUrl(std::string_view url);
// The targets' names and URLs.
std::string ToText(const std::vector<RemoteWriteTarget>& targets);

// Adds a target with this URL and default settings.
Status AddRemoteWrite(std::string_view url, std::vector<RemoteWriteTarget>& targets);

struct RemoteWriteList {
  std::vector<RemoteWriteTarget> targets{};
  std::vector<ConfigError> errors{};
  std::vector<std::string> notes{};  // of keys without effect, one line each
};

// Reads a list in YAML. `name` is the file's; names of other files are relative to its directory. An error in a key that
// decides where a target's samples go, or which samples, removes the target; after any other error the key has its default.
RemoteWriteList ReadRemoteWrite(const std::string& name, const YamlNode& list);

// Names the targets on one host apart, then removes targets with the name of an earlier one, as flags may give them. One error
// each, which names the target.
std::vector<ConfigError> CheckRemoteWrite(std::vector<RemoteWriteTarget>& targets);

// The key `write_relabel_configs`: a list of rules in the words of Prometheus.

// Adds the rules. An error, also of a rule as a whole, goes to `reader`.
void ReadRelabelConfigs(const YamlNode& list, YamlReader& reader, std::vector<RelabelConfig>& rules);

}  // namespace persia::agent

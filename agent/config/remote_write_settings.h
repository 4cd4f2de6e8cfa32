// The setting `remote_write`: a list of targets. Its keys are those of Prometheus, and those of the gateway's settings without
// `gateway_`. No error quotes a secret.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config_error.h"
#include "config/options.h"
#include "files/yaml_document.h"

namespace persia::agent {

// The URL without its query, in which some databases take a password.
std::string ShownUrl(std::string_view url);
// The targets' names and URLs.
std::string ToText(const std::vector<RemoteWriteTarget>& targets);

// Adds a target with this URL and default settings.
Status AddRemoteWrite(std::string_view url, std::vector<RemoteWriteTarget>& targets);

// Adds the targets of a list in YAML. `name` is the file's. An error in a key that decides where a target's samples go, or
// which samples, removes the target; after any other error the key has its default.
std::vector<ConfigError> ReadRemoteWrite(const std::string& name, const YamlNode& list,
                                         std::vector<RemoteWriteTarget>& targets);

// Removes the targets whose settings contradict each other. One error each, which names the target.
std::vector<ConfigError> CheckRemoteWrite(std::vector<RemoteWriteTarget>& targets);

}  // namespace persia::agent

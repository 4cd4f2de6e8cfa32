// The setting `remote_write`: a list of targets, each with what Prometheus knows of one and in the words of the gateway's
// settings.
//
// What is secret is never quoted back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/mapping_nodes.h"
#include "app/options.h"
#include "app/yaml_document.h"
#include "model/result.h"

namespace persia::agent {

// A target's URL without the values of its query: some databases take a password there.
std::string ShownUrl(std::string_view url);

// A target of this URL, and with defaults for the rest.
Status AddRemoteWrite(std::string_view url, AgentOptions& options);

// Adds the targets of the list; what is wrong with one is said by the reader, with its place.
void ReadRemoteWrite(const YamlNode& list, NodeReader& reader, std::vector<RemoteWriteTarget>& targets);

// Contradictions, one line each, which name the target.
std::vector<std::string> CheckRemoteWrite(const AgentOptions& options);

}  // namespace persia::agent

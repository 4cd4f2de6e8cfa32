// Every setting of the agent, in one table: its names in the file, in the environment and on the command line, its values, and
// the member of AgentOptions that it sets. The loader, the command line and --help all read this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/options.h"

namespace persia::agent {

// How a value is written in YAML. A quoted "true" is a text, not a boolean. A text list may also be one text with commas.
enum class ValueKind : uint8_t { kText, kTextList, kBoolean, kNumber, kLabels, kTargets };

// Empty names: the setting cannot be given there.
struct Setting {
  std::string_view key = {};    // in the file
  std::string_view alias = {};  // a second key
  std::string_view flag = {};
  std::string_view environment = {};
  std::span<const std::string_view> other_environment = {};  // the first one that is set is read, if `environment` is not
  std::string_view placeholder = {};                         // of the value, in --help
  std::string_view help = {};
  std::string_view default_text = {};  // as documented
  std::string_view group = {};         // in --help
  // Whether a reload applies it.
  bool reloadable = false;
  // No error quotes it, and `get` does not return it. Its variable's name ends with _PASSWORD or _TOKEN, so that it is removed
  // from the environment (supervisor/secret_variables.h).
  bool secret = false;
  // The output that is off if the setting has an error.
  Output decides = Output::kNone;
  ValueKind kind = ValueKind::kText;
  // Parses the value. For kLabels a call adds one `name=value`, for kTargets one URL. The error quotes the text and names
  // the allowed values.
  Status (*set)(std::string_view text, AgentOptions& options) = nullptr;
  // The value as text; empty if the default described by `default_text` applies.
  std::string (*get)(const AgentOptions& options) = nullptr;
  void (*copy)(const AgentOptions& from, AgentOptions& to) = nullptr;
  // The content of the file that the setting names, if it is loaded with the settings.
  const std::string& (*content)(const AgentOptions& options) = nullptr;
};

// In the order of help and documentation.
std::span<const Setting> Settings();

}  // namespace persia::agent

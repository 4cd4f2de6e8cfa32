// Every setting of the agent, in one table: how it is written in the file, in the environment and on the command line, what
// is allowed, and where it goes. The loader, the command line and --help all read this table, so they cannot differ.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/options.h"
#include "model/result.h"

namespace persia::agent {

// How a value is written in YAML. A quoted "true" is a text, not a boolean. Of kTexts there may be a list, which is set as one
// text with commas.
enum class ValueKind : uint8_t { kBoolean, kNumber, kText, kTexts, kLabels, kTargets };

struct Setting {
  std::string_view key;    // in the file; empty: not in the file
  std::string_view alias;  // another spelling of the key
  std::string_view flag;   // on the command line; empty: not there, as it would be in `ps`
  std::string_view environment;
  std::string_view second_environment;  // read if the first is not set
  std::string_view placeholder;         // names the value in --help
  std::string_view help;
  std::string_view default_text;  // as documented
  std::string_view group;         // of --help
  ValueKind kind;
  // Takes the value as text; of kLabels one `name=value` a call, of kTargets one URL. The error quotes the text and says what
  // is allowed.
  Status (*set)(std::string_view text, AgentOptions& options);
  // What is set, as text; empty if it is left to the default that `default_text` tells.
  std::string (*get)(const AgentOptions& options);
  // Copies it, and it takes effect at a reload. Null: it stays as it was when the agent started.
  void (*take_over)(const AgentOptions& from, AgentOptions& to) = nullptr;
  // Nobody gets to see it: no error quotes it, no `get` tells it, and the environment is cleared of it.
  bool secret = false;
  // What a file that it names has in it; null: nothing that is read with the settings. A reload says that it changed.
  const std::string& (*content)(const AgentOptions& options) = nullptr;
};

// In the order in which help and documentation show them.
std::span<const Setting> Settings();

}  // namespace persia::agent

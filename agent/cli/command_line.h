// Parses the command line: the command, its flags, and the job's command under `exec`. The adapter of CLI11.
//
//   const CommandLine line = ParseCommandLine({"exec", "--job", "dlrm", "--", "python3", "train.py"});
//
// A flag of a setting that is true or false needs no value. The command begins after `--`, else with the first word that is
// neither a flag nor a flag's value. An unknown flag is ignored, with its value.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/options.h"

namespace persia::agent {

struct TopArguments {
  std::vector<std::string> addresses;  // empty: the local jobs
  bool once = false;
  std::chrono::milliseconds interval{1000};
  // Empty: not given.
  std::string username;
  std::string password_file;
  std::string ca_file;
  std::string server_name;
  bool insecure = false;
};

struct ReportArguments {
  std::vector<std::string> files;  // one, or two that are compared
  bool compares = false;
};

struct CommandLine {
  // kPrint: print `text` (help, version). kNone: no command was recognised.
  enum class Verb { kRun, kExec, kOnce, kCheckConfig, kExplain, kReport, kTop, kPrint, kNone };

  Verb verb = Verb::kNone;
  std::string text;
  // For kExec and kRun, all other members are valid even if there are errors.
  std::vector<ConfigError> errors;

  // Settings as flag and value, in the order given for each flag.
  std::vector<std::pair<std::string, std::string>> settings;
  std::optional<std::string> config_file;  // empty: the flag has no value
  // exec, run
  bool strict = false;
  // exec
  std::vector<std::string_view> instruments;  // the variables of the environment that instrument the command's libraries
  std::vector<std::string> command;
  size_t command_begin = 0;  // index of the command's first word in argv, where the program's name has index 0
  // run
  std::optional<std::chrono::milliseconds> exit_when_idle;
  // explain
  std::vector<std::string> metrics;  // GROUP/NAME each
  std::string metric_type;           // "": as the job's processes have them
  // report
  ReportArguments report;
  // top
  TopArguments top;
};

// `arguments` are without the program's name.
CommandLine ParseCommandLine(std::vector<std::string> arguments);

}  // namespace persia::agent

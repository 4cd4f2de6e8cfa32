// What was typed: the command, its flags, and for exec the job's command. The only place that knows the command-line library.
//
//   const CommandLine line = ParseCommandLine({"exec", "--job", "dlrm", "--", "python3", "train.py"});
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {

struct CommandLine {
  enum class Verb { kRun, kExec, kOnce, kCheckConfig, kExplain, kPrint, kNone };

  // kPrint: `text` is what was asked for (help, version). kNone: not even the verb was understood.
  Verb verb = Verb::kNone;
  std::string text;
  // One line each: what was not understood, and what was probably meant. Of exec the command is known all the same.
  std::vector<std::string> errors;

  // Settings, as flag and value, in the order of each flag; the last one counts, as for any Unix tool, but for lists.
  std::vector<std::pair<std::string, std::string>> settings;
  std::string config_file;
  bool strict = false;
  std::optional<std::chrono::milliseconds> exit_when_idle;
  std::vector<std::string> command;
  // Of explain: GROUP/NAME each, and what kind of metrics they are.
  std::vector<std::string> metrics;
  std::string metric_type = "stream";
};

// `arguments` are without the program's name.
CommandLine ParseCommandLine(std::vector<std::string> arguments);

}  // namespace persia::agent

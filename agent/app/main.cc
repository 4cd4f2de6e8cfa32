// persia-metrics-agent: the metrics of a training job, from its processes to a PushGateway.
#include <cstdio>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/commands.h"
#include "app/config.h"
#include "app/explain.h"
#include "app/heap.h"
#include "app/log.h"

namespace persia::agent {
namespace {

int Main(std::vector<std::string> arguments) {
  const CommandLine line = ParseCommandLine(std::move(arguments));
  if (line.verb == CommandLine::Verb::kPrint) {
    std::fputs(line.text.c_str(), stdout);
    return kExitDone;
  }
  // exec runs its command whatever else was typed.
  if (line.verb == CommandLine::Verb::kNone || (!line.errors.empty() && line.verb != CommandLine::Verb::kExec)) {
    for (const std::string& error : line.errors) {
      std::fprintf(stderr, "persia-metrics-agent: %s\n", error.c_str());
    }
    return kExitNotUnderstood;
  }
  ConfigSources sources{.flags = line.settings, .environment = TakeEnvironment(), .file = line.config_file};
  Config config = LoadConfig(sources);
  sources.file = config.file;  // a reload reads this one, also if it was found and not named
  config.errors.insert(config.errors.begin(), line.errors.begin(), line.errors.end());
  if (line.verb == CommandLine::Verb::kRun || line.verb == CommandLine::Verb::kCheckConfig) {
    config.errors.insert(config.errors.end(), config.page_errors.begin(), config.page_errors.end());
  }
  SetUpLog(config.options.log_level, config.options.log_format);
  switch (line.verb) {
    case CommandLine::Verb::kRun:
      return RunCommand(line, config, sources);
    case CommandLine::Verb::kExec:
      return ExecuteCommand(line, config, sources);
    case CommandLine::Verb::kOnce:
      return OnceCommand(config);
    case CommandLine::Verb::kExplain:
      return ExplainCommand(line, config);
    default:
      return CheckConfigCommand(config);
  }
}

}  // namespace
}  // namespace persia::agent

int main(int argc, char** argv) {
  persia::agent::SetUpHeap();
  return persia::agent::Main({argv + 1, argv + argc});
}

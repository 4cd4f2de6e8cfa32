// persia-metrics-agentd: collects the metrics of a training job's processes, and pushes and serves them. It is executed by
// persia-metrics-agent, in the same directory.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/foreign_memory.h"
#include "base/log.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "config/config.h"
#include "gpu/gpu_reader.h"

namespace persia::agent {
namespace {

using Verb = CommandLine::Verb;

// An error that no code handles, such as a thread that the system cannot start, ends the agent with a log line, without a core
// file.
[[noreturn]] void EndByLogLine() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::system_error& error) {  // of std::thread
    LogError("agent.failed",
             std::string("cannot start a thread: ") + error.what() + "; raise the limit of processes (ulimit -u)");
  } catch (const std::exception& error) {
    LogError("agent.failed", std::string("the agent cannot go on: ") + error.what());
  } catch (...) {
  }
  _exit(kExitFailed);
}

// A closed standard descriptor would become the number of a file of the agent, into which log lines were then written. As to
// one that is closed, nothing can be written to these.
void OccupyStandardDescriptors() {
  int null = open("/dev/null", O_RDONLY);
  while (null >= 0 && null <= STDERR_FILENO) null = open("/dev/null", O_RDONLY);
  close(null);
}

// Each living segment takes a descriptor, and a usual soft limit is 1,024. It exists for programs that use select(), as this
// one does not. The command of `exec` keeps its limit: the supervisor starts it.
void RaiseDescriptorLimit() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

// A call by the supervisor of `exec`: VERB DESCRIPTOR ARGUMENTS..., in place of `exec ARGUMENTS...`.
struct SupervisorCall {
  bool prepares = false;
  bool collects = false;
  int memory = -1;
};

SupervisorCall TakeSupervisorCall(std::vector<std::string>& arguments) {
  SupervisorCall call;
  if (arguments.size() < 2) return call;
  call.prepares = arguments[0] == "exec-prepare";
  call.collects = arguments[0] == "exec-collect";
  if (!call.prepares && !call.collects) return call;
  call.memory = std::atoi(arguments[1].c_str());
  fcntl(call.memory, F_SETFD, FD_CLOEXEC);
  arguments.erase(arguments.begin());
  arguments[0] = "exec";
  return call;
}

int Main(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments[0] == kGpuReaderVerb) return ReadGpus(arguments);  // a call by the agent itself
  const SupervisorCall call = TakeSupervisorCall(arguments);
  const CommandLine line = ParseCommandLine(std::move(arguments));
  if (call.prepares) TellCommand(line, call.memory);
  if (line.verb == Verb::kPrint) {
    std::fputs(line.text.c_str(), stdout);
    return call.prepares ? RefuseExec(kExitDone, call.memory) : kExitDone;
  }
  // exec and run continue after errors in the command line, but not without a flag that is misspelt.
  const bool goes_on = (line.verb == Verb::kExec || line.verb == Verb::kRun) &&
                       std::ranges::none_of(line.errors, &ConfigError::is_misspelt_flag);
  if (line.verb == Verb::kNone || (!line.errors.empty() && !goes_on)) {
    for (const ConfigError& error : line.errors) {
      const std::string text = error.is_misspelt_flag ? error.Line() : error.text;
      std::fprintf(stderr, "persia-metrics-agent: %s\n", text.c_str());
    }
    return call.prepares ? RefuseExec(kExitUsage, call.memory) : kExitUsage;
  }
  if (line.verb == Verb::kTop) return TopCommand(line.top);
  if (line.verb == Verb::kReport) return ReportCommand(line.report);
  ConfigSources sources{.flags = line.settings,
                        .environment = TakeEnvironment(),
                        .file = line.config_file,
                        .errors = line.errors,
                        .variables = VariableNames(),
                        .checks_pages = line.verb != Verb::kOnce && line.verb != Verb::kExplain};
  const Config config = line.verb == Verb::kExec ? LoadConfigOfExec(sources) : LoadConfig(sources);
  // A reload reads the same file, even if it was found in the working directory.
  if (!config.file.empty()) sources.file = config.file;
  SetUpLog(config.options.log_level, config.options.log_format);
  ForeignShare::SetLimit(config.options.max_foreign_bytes);
  if (call.prepares) return PrepareExec(line, config, sources, call.memory);
  if (call.collects) return CollectForExec(line, config, sources, call.memory);
  if (line.verb == Verb::kRun) return RunCommand(line, config, sources);
  for (const std::string& error : config.ErrorTexts())
    if (line.verb == Verb::kOnce)
      LogError("config.refused", error);
    else
      std::fprintf(stderr, "%s\n", error.c_str());
  if (!config.ok()) return kExitUsage;
  switch (line.verb) {
    case Verb::kOnce:
      return OnceCommand(config);
    case Verb::kExplain:
      return ExplainCommand(line, config);
    default:
      return CheckConfigCommand(config);
  }
}

}  // namespace
}  // namespace persia::agent

int main(int argc, char** argv) {
  std::set_terminate(persia::agent::EndByLogLine);
  persia::agent::OccupyStandardDescriptors();
  signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on file sizes fails
  persia::agent::SetUpHeap();
  persia::agent::RaiseDescriptorLimit();
  return persia::agent::Main({argv + 1, argv + argc});
}

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/job_agent.h"
#include "supervisor/shared_memory.h"

namespace persia::agent {
namespace {

using supervisor::Preparation;

// The directory that `exec` gave its command: an `exec` in it knows by this that PERSIA_METRICS_DIR is not the user's choice.
constexpr char kDirectoryOfExec[] = "PERSIA_METRICS_EXEC_DIR";

struct ExecPlan {
  std::vector<std::pair<std::string, std::string>> environment{{"PERSIA_METRICS_ENABLED", "0"}};
  bool collects = false;
  std::unique_ptr<NamedPipe> pipe;  // null: none is configured, it cannot be used, or another agent reads it
  std::string others;               // the path of the file of all supervisors; empty: it could not be made
  bool refused = false;             // the command does not run
};

// As many unnamed jobs of one user run at once.
constexpr int kMostUnnamedJobs = 100;

// If this `exec` runs inside of another one, for a job with another name: the settings without what that one put into the
// environment for its own job.
std::optional<Config> SettingsInside(const ConfigSources& sources) {
  const auto outer = ProcessEnvironment()(kDirectoryOfExec);
  if (!outer || sources.environment("PERSIA_METRICS_DIR") != outer) return std::nullopt;
  const auto directory = JobDirectory::OpenExisting(*outer);
  if (!directory.ok()) return std::nullopt;
  const AgentConf conf = directory.value().ReadConf();
  const std::map<std::string, std::optional<std::string>, std::less<>> put = {{"PERSIA_METRICS_DIR", outer},
                                                                              {"PERSIA_METRICS_DIR_GROUP", std::nullopt},
                                                                              {"PERSIA_JOB_NAME", conf.job},
                                                                              {"PERSIA_RUN_ID", conf.run_id}};
  ConfigSources own = sources;
  own.environment = [&](const char* name) {
    const auto value = sources.environment(name);
    const auto found = put.find(std::string_view(name));
    const bool is_put = found != put.end() && (!found->second || found->second == value);
    return is_put ? std::nullopt : value;
  };
  Config config = LoadConfigOfExec(own);
  return config.options.has_job_name && config.options.job_name != conf.job ? std::optional(std::move(config)) : std::nullopt;
}

// A job without a name takes the first free one of `default`, `default-2`, `default-3` and so on.
Result<JobSession> BeginExec(AgentOptions& options, const JobStarter& starter) {
  const bool chooses_name = !options.has_job_name && options.metrics_dir.empty();
  const std::string name = options.job_name;
  auto session = JobSession::Begin(options, {}, starter);
  const std::string other = session.ok() ? session.value().other_job() : "";
  for (int number = 2; chooses_name && session.ok() && !session.value().other_job().empty(); ++number) {
    if (number > kMostUnnamedJobs) break;
    options.job_name = name + '-' + std::to_string(number);
    session = JobSession::Begin(options, {}, starter);
  }
  if (!session.ok()) return session;
  if (!session.value().other_job().empty()) return Error{OtherAgentMessage(session.value())};
  if (options.job_name != name) {
    LogWarning("job.unnamed", "job_name is not set, and " + Quoted(name) + " is in use by " + other + ": this job is " +
                                  Quoted(options.job_name) + "; set job_name, or PERSIA_JOB_NAME for all processes of one job");
  }
  return session;
}

// After an error the command runs without metrics, and one line is logged. With --strict, the command is not started.
ExecPlan MakePlan(const CommandLine& line, const Config& config) {
  constexpr char kNotStarted[] = "; the command is not started (--strict)";
  constexpr char kWithoutMetrics[] = "; the command runs without metrics";
  ExecPlan plan;
  plan.refused = RefusedBySettings(config, line.strict, "the command is not started");
  if (plan.refused) return plan;
  AgentOptions options = config.options;
  auto session = BeginExec(options, StarterOf(line));
  if (!session.ok()) {
    plan.refused = line.strict && config.options.enable_metrics;
    LogError("directory.refused", session.error() + (plan.refused ? kNotStarted : kWithoutMetrics));
    return plan;
  }
  if (const std::string& error = session.value().state_error(); !error.empty()) {
    plan.refused = line.strict && config.options.enable_metrics;
    LogError("directory.refused", error + (plan.refused ? kNotStarted : ""));
    if (plan.refused) return plan;
  }
  plan.environment = session.value().WorkerEnvironment();
  plan.environment.emplace_back(kDirectoryOfExec, session.value().directory().path());
  if (!config.options.enable_metrics) {
    LogInfo("metrics.disabled", "metrics are disabled (enable_metrics: false); the command runs, nothing is collected");
    return plan;
  }
  const auto others = session.value().FileOfOthers();
  if (others.ok())
    plan.others = others.value();
  else
    LogWarning("agent.others", others.error() + "; another exec of this job may end the run while this one goes on");
  plan.collects = true;
  // The start-up hook of the Python package. The environment's own value stays.
  if (constexpr char kHook[] = "PERSIA_METRICS_TORCHELASTIC"; std::getenv(kHook) == nullptr)
    plan.environment.emplace_back(kHook, "1");
  for (const std::string_view variable : line.instruments) plan.environment.emplace_back(variable, "1");
  bool pipe_is_read = false;
  if (session.value().other_agent()) {
    pipe_is_read = EmitPipeHasReader(config.options);
  } else {
    auto pipe = OpenEmitPipe(config.options);
    if (!pipe.ok()) LogError("fifo", pipe.error() + "; the command runs without it");
    plan.pipe = pipe.ok() ? std::move(pipe).value() : nullptr;
    pipe_is_read = plan.pipe != nullptr;
  }
  if (pipe_is_read)
    for (auto& variable : EmitEnvironment(config.options.fifo)) plan.environment.push_back(std::move(variable));
  return plan;
}

// Null, after a log line, on failure.
Preparation* MapPreparation(int memory) {
  void* const mapped = mmap(nullptr, sizeof(Preparation), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped != MAP_FAILED) return static_cast<Preparation*>(mapped);
  LogError("exec.prepare", SystemError("cannot map the supervisor's memory").message);
  return nullptr;
}

}  // namespace

JobStarter StarterOf(const CommandLine& line) {
  return {.process = ProcessText(getppid()), .command = CommandText(line.command)};
}

void TellCommand(const CommandLine& line, int memory) {
  if (Preparation* const preparation = MapPreparation(memory)) preparation->command = static_cast<uint32_t>(line.command_begin);
}

int RefuseExec(int exit_code, int memory) {
  Preparation* const preparation = MapPreparation(memory);
  if (preparation == nullptr) return kExitFailed;
  preparation->exit_code = exit_code;
  preparation->format = supervisor::kFormat;
  return kExitDone;
}

int PrepareExec(const CommandLine& line, const Config& given, const ConfigSources& sources, int memory) {
  if (line.command.empty()) {
    std::fputs("persia-metrics-agent exec: the command is missing: persia-metrics-agent exec [OPTIONS] -- COMMAND\n", stderr);
    return RefuseExec(kExitUsage, memory);
  }
  Preparation* const preparation = MapPreparation(memory);
  if (preparation == nullptr) return kExitFailed;
  const std::optional<Config> inside = SettingsInside(sources);
  const Config& config = inside ? *inside : given;
  const ExecPlan plan = MakePlan(line, config);
  if (plan.refused) return RefuseExec(kExitRefused, memory);
  std::string text;
  for (const auto& [name, value] : plan.environment) text += name + "=" + value + '\0';
  if (plan.pipe != nullptr) {
    preparation->pipe = static_cast<uint32_t>(text.size());
    text += config.options.fifo + '\0';
  }
  if (!plan.others.empty()) {
    preparation->others = static_cast<uint32_t>(text.size());
    text += plan.others + '\0';
  }
  if (text.size() > sizeof preparation->text) {
    LogError("exec.prepare", "the variables for the command have " + std::to_string(text.size()) + " bytes, more than " +
                                 std::to_string(sizeof preparation->text) + "; the command runs without metrics");
    return kExitFailed;
  }
  preparation->exit_code = -1;
  preparation->has_agent = plan.collects ? 1 : 0;
  preparation->created_pipe = plan.pipe != nullptr && plan.pipe->Keep() ? 1 : 0;
  preparation->finish_timeout_ms = static_cast<uint32_t>((config.options.linger + config.options.FinishTimeout()).count());
  preparation->log_level = static_cast<uint32_t>(config.options.log_level);
  preparation->logs_json = config.options.log_format == LogFormat::kJson ? 1 : 0;
  preparation->variables = static_cast<uint32_t>(plan.environment.size());
  std::memcpy(preparation->text, text.data(), text.size());
  preparation->format = supervisor::kFormat;
  return kExitDone;
}

}  // namespace persia::agent

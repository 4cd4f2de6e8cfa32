#include "cli/help_texts.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace persia::agent {
namespace {

using Verb = CommandLine::Verb;

constexpr char kUsualExamples[] = R"(
Examples:
  persia-metrics-agent exec --job dlrm --instrument torch -- torchrun train.py
  persia-metrics-agent top

`persia-metrics-agent COMMAND --help` has the usual flags of a command, `--help-all` all of them.)";
constexpr char kExamples[] = R"(
Examples:
  # Run a training job and push its metrics to a gateway:
  persia-metrics-agent exec --job dlrm --gateway metrics_gateway:9091 -- python3 train.py

  # The same, with the phases, steps and samples of PyTorch:
  persia-metrics-agent exec --job dlrm --instrument torch -- torchrun train.py

  # Collect from workers that are started elsewhere, until the last of them has ended:
  persia-metrics-agent run --job dlrm --exit-when-idle 30

  # Print the metrics that would be pushed:
  persia-metrics-agent once --job dlrm

  # Print the name that a metric is exposed with, and the rule that applies:
  persia-metrics-agent explain torchelastic/workers.trainer.flakiness

  # Compare two runs by their summaries, which exec --report FILE.json has written:
  persia-metrics-agent report --compare before.json after.json

  # Watch jobs in a terminal:
  persia-metrics-agent top
  persia-metrics-agent top trainer-0:19091 dns+trainers:19091

A flag overrides the environment variable, the variable overrides the file, and the file overrides the default. The file is
the one given by --config, else by PERSIA_GLOBAL_CONFIG, else ./global_config.yaml if it exists. The agent reads its section
PersiaMetricsConfig.

Exit codes:
  exec: the command's own; 128+n if signal n ended it; 126 if it cannot be run, 127 if it is not found; 125 if --strict
  refused to start it. Other commands: 0 success, 1 failure, 2 usage error (command line, settings).)";
constexpr char kExecFooter[] = R"(
The agent never prevents or ends the command. A setting with an error falls back to its default, with a line in the log; if it
decides where data goes or who may read it, that output is off. If the directory cannot be used, the command runs without
metrics. With --strict, the command is not started after an error in the settings or the directory.)";
constexpr char kRunFooter[] = R"(
A setting with an error falls back to its default, with a line in the log; if it decides where data goes or who may read it,
that output is off. With --strict, the agent ends with exit code 2.)";

constexpr char kTopFooter[] = R"(
Keys: q end, arrows and PageUp/PageDown select, Enter shows only this job, s sort, r reverse, / filter, p pause, ? help.)";

// By the usual help. Flags of the job's agent, and of `once` and `explain`.
constexpr std::string_view kUsualOfAgent[] = {
    "job_name", "gateway_address", "push_interval_seconds", "listen_address", "report_file", "labels", "log_level"};
constexpr std::string_view kUsualOfOnce[] = {"job_name", "metrics_dir"};
constexpr std::string_view kUsualOfExplain[] = {"job_name", "metrics_dir", "mapping_file"};

std::span<const std::string_view> UsualOf(Verb verb) {
  switch (verb) {
    case Verb::kRun:
    case Verb::kExec:
      return kUsualOfAgent;
    case Verb::kOnce:
      return kUsualOfOnce;
    case Verb::kExplain:
      return kUsualOfExplain;
    default:
      return {};
  }
}

std::string SettingsWithoutFlag() {
  std::string text = "\nSecrets have no flag, because other users can see a program's flags:";
  for (const Setting& setting : Settings())
    if (setting.flag.empty()) text += "\n  $" + std::string(setting.environment) + ", in the file " + std::string(setting.key);
  return text;
}

}  // namespace

const char* DescriptionOf(CommandLine::Verb verb) {
  switch (verb) {
    case Verb::kRun:
      return "Collect and push for a job that something else starts, until a signal";
    case Verb::kExec:
      return "Run the job's command, collect and push while it runs, and exit with its exit code";
    case Verb::kOnce:
      return "Print the job's metrics as text, once";
    case Verb::kCheckConfig:
      return "Check flags, environment and file; print the errors, or the settings in effect";
    case Verb::kReport:
      return "Print the summary of a run, from its file, or compare two runs";
    case Verb::kTop:
      return "Show jobs and their ranks in the terminal, from the agents' pages";
    default:
      return "Print how a metric is exposed, and which rule applies";
  }
}

bool IsUsual(CommandLine::Verb verb, const Setting& setting) {
  return !setting.key.empty() && std::ranges::count(UsualOf(verb), setting.key) > 0;
}

std::string DescriptionOf(const Setting& setting, HelpLevel level) {
  std::string text = std::string(setting.help) + " [" + std::string(setting.default_text) + "]";
  if (level == HelpLevel::kUsual) return text;
  if (!setting.environment.empty()) {
    text += "\n$" + std::string(setting.environment);
    for (const std::string_view name : setting.other_environment) text += ", $" + std::string(name);
  }
  return text;
}

std::string FooterOf(CommandLine::Verb verb, HelpLevel level) {
  if (verb == Verb::kTop) return kTopFooter;
  if (verb == Verb::kReport || level == HelpLevel::kUsual) return "";
  switch (verb) {
    case Verb::kRun:
      return SettingsWithoutFlag() + "\n" + kRunFooter;
    case Verb::kExec:
      return SettingsWithoutFlag() + "\n" + kExecFooter;
    default:
      return SettingsWithoutFlag();
  }
}

std::string ProgramFooter(HelpLevel level) { return level == HelpLevel::kUsual ? kUsualExamples : kExamples; }

}  // namespace persia::agent

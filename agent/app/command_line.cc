#include "app/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string_view>

#include "app/nearest.h"
#include "app/settings.h"
#include "app/text.h"
#include "app/version.h"

namespace persia::agent {
namespace {

constexpr std::string_view kVerbs[] = {"run", "exec", "once", "check-config", "explain"};
constexpr char kExamples[] = R"(
Examples:
  # Run a training job with its metrics pushed to a gateway:
  persia-metrics-agent exec --job dlrm --gateway metrics_gateway:9091 -- python3 train.py

  # Stand beside workers that somebody else starts, until the last of them has ended:
  persia-metrics-agent run --job dlrm --exit-when-idle 30

  # See what would be pushed:
  persia-metrics-agent once --job dlrm

  # See how a metric is named, and by which rule:
  persia-metrics-agent explain torchelastic/workers.trainer.flakiness

Settings are looked for in this order: flag, environment variable, file, default. The file is the one that --config
names, else PERSIA_GLOBAL_CONFIG, else ./global_config.yaml if there is one; its section PersiaMetricsConfig is read.

Exit codes:
  exec: the command's own, 128+n if signal n ended it, 126 if it cannot be run, 127 if there is none; 125 if --strict
  refused to start it. Others: 0 done, 1 failed, 2 not understood (command line, settings).)";
constexpr char kExecFooter[] = R"(
Nothing of the agent's keeps the command from starting or ends it: with settings that are refused, a directory that
cannot be used or a gateway that is away, one line says so and the command runs. --strict turns that around for what is
known before the start.)";

// Flags that are no settings.
constexpr char kConfigFlag[] = "--config";
constexpr char kStrictFlag[] = "--strict";
constexpr char kIdleFlag[] = "--exit-when-idle";

// What has no flag, since everyone can see a process's flags.
std::string SettingsWithoutFlag() {
  std::string text = "\nSecrets have no flag, since everybody sees a program's flags:";
  for (const Setting& setting : Settings()) {
    if (setting.flag.empty()) {
      text += "\n  $" + std::string(setting.environment) + ", in the file " + std::string(setting.key);
    }
  }
  return text;
}

// What stands behind exec's flags is not the library's, so it does not know of it.
class Help : public CLI::Formatter {
 public:
  Help() {
    column_width(36);
    label("SUBCOMMAND", "COMMAND");
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    if (app->get_name() == "exec") {
      usage.insert(usage.find('\n'), " -- COMMAND [ARGUMENT...]");
    }
    return usage;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
};

// The library's help with single blank lines.
std::string HelpOf(const CLI::App& app, const std::string& program) {
  std::string text = app.help(program);
  for (size_t at = 0; (at = text.find("\n\n\n")) != std::string::npos;) {
    text.erase(at, 1);
  }
  return text;
}

// Where a verb's flags are written to.
struct Typed {
  std::vector<std::vector<std::string>> settings{Settings().size()};
  std::string config_file;
  bool strict = false;
  std::string idle;
  std::vector<std::string> metrics;
  std::string metric_type;
};

std::string Describe(const Setting& setting) {
  std::string text = std::string(setting.help) + " [" + std::string(setting.default_text) + "]";
  if (!setting.environment.empty()) {
    text += "\n$" + std::string(setting.environment);
    if (!setting.second_environment.empty()) {
      text += ", $" + std::string(setting.second_environment);
    }
  }
  return text;
}

void AddSettings(CLI::App& verb, Typed& typed) {
  verb.add_option(kConfigFlag, typed.config_file, "The file of settings\n$PERSIA_GLOBAL_CONFIG")
      ->type_name("FILE")
      ->group("Job");
  for (size_t i = 0; i < Settings().size(); ++i) {
    const Setting& setting = Settings()[i];
    if (setting.flag.empty()) {
      continue;
    }
    verb.add_option(std::string(setting.flag), typed.settings[i], Describe(setting))
        ->type_name(std::string(setting.placeholder))
        ->group(std::string(setting.group))
        ->allow_extra_args(false)
        ->take_all();
  }
}

CLI::App* AddVerb(CLI::App& app, std::string_view name, const std::string& description, Typed& typed) {
  CLI::App* verb = app.add_subcommand(std::string(name), description);
  verb->group("Commands");
  verb->allow_extras();
  verb->set_help_flag("-h,--help", "Print this help");
  verb->formatter(std::make_shared<Help>());
  AddSettings(*verb, typed);
  verb->footer(SettingsWithoutFlag());
  return verb;
}

// Takes the job's command off the end of exec's arguments: what stands behind `--`, else from the first word on that is
// neither a flag nor a flag's value.
void TakeCommand(std::vector<std::string>& arguments, std::vector<std::string>& command) {
  auto begin = arguments.begin() + 1;
  for (; begin != arguments.end() && *begin != "--" && begin->starts_with("-"); ++begin) {
    const bool has_value =
        begin->find('=') == std::string::npos && *begin != kStrictFlag && *begin != "-h" && *begin != "--help";
    if (has_value && begin + 1 != arguments.end() && *(begin + 1) != "--") {
      ++begin;
    }
  }
  const bool separator = begin != arguments.end() && *begin == "--";
  command.assign(begin + (separator ? 1 : 0), arguments.end());
  arguments.erase(begin, arguments.end());
}

std::string UnknownArgument(const std::string& argument, const CLI::App& verb) {
  if (!argument.starts_with("-")) {
    return "unexpected argument " + Quoted(argument);
  }
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    names.push_back(option->get_name());
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return "unknown flag " + Quoted(name) + DidYouMean(name, candidates);
}

// A number of seconds, or of what the letter behind it says.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  double unit = 1;
  if (!text.empty() && !IsDigit(text.back())) {
    unit = text.back() == 's' ? 1 : text.back() == 'm' ? 60 : text.back() == 'h' ? 3600 : -1;
    text.remove_suffix(1);
  }
  double number = 0;
  if (unit < 0 || !ParseNumber(text, number) || !(number >= 0 && number * unit <= 86400)) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(std::llround(number * unit * 1000));
}

// What is wrong with the first argument, which must be a verb or ask for something to print.
std::string CheckFirst(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPrinting[] = {"-h", "--help", "--version"};
  if (arguments.empty()) {
    return "a command is missing (run, exec, once, check-config, explain); --help tells more";
  }
  const std::string& first = arguments[0];
  if (!first.starts_with("-")) {
    const bool known = std::find(std::begin(kVerbs), std::end(kVerbs), first) != std::end(kVerbs);
    return known ? ""
                 : "unknown command " + Quoted(first) + " (run, exec, once, check-config, explain)" + DidYouMean(first, kVerbs);
  }
  if (std::find(std::begin(kPrinting), std::end(kPrinting), first) == std::end(kPrinting)) {
    return "unexpected flag " + Quoted(first) +
           " before the command (run, exec, once, check-config, explain); flags stand behind it";
  }
  return "";
}

void FillIn(const Typed& typed, CommandLine& line) {
  for (size_t i = 0; i < Settings().size(); ++i) {
    const Setting& setting = Settings()[i];
    for (const std::string& value : typed.settings[i]) {
      line.settings.emplace_back(setting.flag, value);
    }
  }
  line.config_file = typed.config_file;
  line.strict = typed.strict;
  line.metrics = typed.metrics;
  if (!typed.metric_type.empty()) {
    line.metric_type = typed.metric_type;
  }
  if (!typed.idle.empty()) {
    line.exit_when_idle = ParseDuration(typed.idle);
    if (!line.exit_when_idle) {
      line.errors.push_back(std::string(kIdleFlag) + ": " + Quoted(typed.idle) +
                            " is not a duration up to a day (30, 30s, 5m, 1h)");
    }
  }
}

CommandLine::Verb VerbOf(const std::string& name) {
  static constexpr CommandLine::Verb kMeaning[] = {CommandLine::Verb::kRun, CommandLine::Verb::kExec, CommandLine::Verb::kOnce,
                                                   CommandLine::Verb::kCheckConfig, CommandLine::Verb::kExplain};
  return kMeaning[std::find(std::begin(kVerbs), std::end(kVerbs), name) - std::begin(kVerbs)];
}

}  // namespace

CommandLine ParseCommandLine(std::vector<std::string> arguments) {
  CommandLine line;
  if (std::string error = CheckFirst(arguments); !error.empty()) {
    line.errors.push_back(std::move(error));
    return line;
  }

  CLI::App app("Collects the metrics of a training job's processes and pushes them to a Prometheus PushGateway.",
               "persia-metrics-agent");
  app.set_help_flag("-h,--help", "Print this help; `COMMAND --help` lists the settings");
  app.set_version_flag("--version", std::string("persia-metrics-agent ") + kVersion, "Print the version");
  app.formatter(std::make_shared<Help>());
  app.require_subcommand(0, 1);
  app.footer(kExamples);
  Typed typed;
  AddVerb(app, "run", "Collect and push beside a job that is started elsewhere, until a signal", typed)
      ->add_option(kIdleFlag, typed.idle,
                   "End, and the run with it, when no worker has been alive for so long: 30s, 5m [never]")
      ->type_name("DURATION")
      ->group("Job");
  CLI::App* exec =
      AddVerb(app, "exec", "Run the job's command, collect and push while it runs, and end with its exit code", typed);
  exec->add_flag(kStrictFlag, typed.strict, "Do not start the command if its metrics cannot be collected")->group("Job");
  exec->footer(SettingsWithoutFlag() + "\n" + kExecFooter);
  AddVerb(app, "once", "Print the job's metrics as text, once", typed);
  AddVerb(app, "check-config", "Check flags, environment and file; print what is wrong, or what would be used", typed);
  CLI::App* explain = AddVerb(app, "explain", "Print which rule names a metric, and what comes out", typed);
  explain->add_option("metrics", typed.metrics, "Metrics as the program names them")->type_name("GROUP/NAME")->group("Labels");
  explain->add_option("--type", typed.metric_type, "What the metrics are: stream, counter, gauge or histogram [stream]")
      ->type_name("TYPE")
      ->group("Labels");

  if (arguments[0] == "exec") {
    line.verb = CommandLine::Verb::kExec;
    TakeCommand(arguments, line.command);
    // Known even if the rest is not understood: it decides what that means.
    typed.strict = std::find(arguments.begin(), arguments.end(), kStrictFlag) != arguments.end();
  }
  try {
    std::reverse(arguments.begin(), arguments.end());  // as the library wants them
    app.parse(arguments);
    const CLI::App& verb = *app.get_subcommands().front();
    line.verb = VerbOf(verb.get_name());
    bool after_flag = false;  // then it may be the flag's value
    for (const std::string& extra : app.remaining(/*recurse=*/true)) {
      if (extra.starts_with("-") || !after_flag) {
        line.errors.push_back(UnknownArgument(extra, verb));
      }
      after_flag = extra.starts_with("-");
    }
  } catch (const CLI::CallForHelp&) {
    line.verb = CommandLine::Verb::kPrint;
    line.text = app.get_subcommands().empty() ? HelpOf(app, "") : HelpOf(*app.get_subcommands().front(), app.get_name());
  } catch (const CLI::CallForVersion& version) {
    line.verb = CommandLine::Verb::kPrint;
    line.text = std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    line.errors.emplace_back(error.what());
    if (!app.get_subcommands().empty()) {
      line.verb = VerbOf(app.get_subcommands().front()->get_name());
    }
  }
  FillIn(typed, line);
  return line;
}

}  // namespace persia::agent

#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string_view>

#include "base/text.h"
#include "base/version.h"
#include "cli/argument_words.h"
#include "cli/help_texts.h"
#include "config/config_draft.h"
#include "config/settings.h"

namespace persia::agent {
namespace {

using Verb = CommandLine::Verb;

constexpr Choice<Verb> kVerbs[] = {
    {"run", Verb::kRun},         {"exec", Verb::kExec},     {"once", Verb::kOnce}, {"check-config", Verb::kCheckConfig},
    {"explain", Verb::kExplain}, {"report", Verb::kReport}, {"top", Verb::kTop}};
constexpr char kProgram[] = "persia-metrics-agent";
constexpr char kVerbList[] = "run, exec, once, check-config, explain, report, top";

// Flags that are not settings.
constexpr char kConfigFlag[] = "--config";
constexpr char kStrictFlag[] = "--strict";
constexpr char kIdleFlag[] = "--exit-when-idle";
constexpr char kInstrumentFlag[] = "--instrument";
// What the Python package can instrument, and the variable that says so.
constexpr Choice<std::string_view> kLibraries[] = {{"torch", "PERSIA_METRICS_TORCH"},
                                                   {"prometheus_client", "PERSIA_METRICS_PROMETHEUS_CLIENT"}};
constexpr char kHelpAllFlag[] = "--help-all";
constexpr char kUsualGroup[] = "Options";  // CLI11's own

constexpr std::chrono::hours kMaxIdle(24);
// Of `top`.
constexpr std::chrono::milliseconds kMinInterval(100);
constexpr std::chrono::hours kMaxInterval(1);

// CLI11's help, with exec's command, which CLI11 does not parse.
class Help : public CLI::Formatter {
 public:
  Help() {
    column_width(36);
    label("SUBCOMMAND", "COMMAND");
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    if (app->get_name() == "exec") usage.insert(usage.find('\n'), " -- COMMAND [ARGUMENT...]");
    return usage;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
};

// CLI11's help with single blank lines.
std::string HelpText(const CLI::App& app, const std::string& program) {
  std::string text = app.help(program);
  for (size_t at = 0; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

// The flags of `top`.
struct TopFlags {
  CLI::Option* addresses = nullptr;
  CLI::Option* once = nullptr;
  CLI::Option* interval = nullptr;
  CLI::Option* username = nullptr;
  CLI::Option* password_file = nullptr;
  CLI::Option* ca_file = nullptr;
  CLI::Option* server_name = nullptr;
  CLI::Option* insecure = nullptr;
};

// The flags of a verb; null: it has no such flag.
struct Flags {
  std::vector<CLI::Option*> settings;  // as Settings()
  CLI::Option* config_file = nullptr;
  CLI::Option* strict = nullptr;
  CLI::Option* idle = nullptr;
  CLI::Option* instrument = nullptr;
  CLI::Option* metrics = nullptr;
  CLI::Option* metric_type = nullptr;
  CLI::Option* files = nullptr;
  CLI::Option* compares = nullptr;
  TopFlags top;
};

// A missing value becomes an empty one, so that an error in one flag leaves the others alone.
CLI::Option* AddOption(CLI::App& verb, std::string_view flag, const std::string& description, std::string_view placeholder,
                       std::string_view group) {
  return verb.add_option(std::string(flag), CLI::callback_t(), description)
      ->type_name(std::string(placeholder))
      ->group(std::string(group))
      ->expected(0, 1)
      ->take_all();
}

CLI::Option* AddSwitch(CLI::App& verb, std::string_view flag, const std::string& description, std::string_view group) {
  return verb.add_flag(std::string(flag), description)->group(std::string(group))->take_all();
}

// All words of the command line that no flag takes.
CLI::Option* AddWords(CLI::App& verb, const char* name, const char* description, const char* placeholder, const char* group) {
  return verb.add_option(name, CLI::callback_t(), description)
      ->type_name(placeholder)
      ->group(group)
      ->expected(0, CLI::detail::expected_max_vector_size)
      ->allow_extra_args()
      ->take_all();
}

void AddSettings(Verb verb, HelpLevel level, CLI::App& app, Flags& flags) {
  const bool all = level == HelpLevel::kAll;
  flags.config_file = AddOption(app, kConfigFlag, all ? "File of settings\n$PERSIA_GLOBAL_CONFIG" : "File of settings", "FILE",
                                all ? "Job" : kUsualGroup);
  for (const Setting& setting : Settings()) {
    CLI::Option*& option = flags.settings.emplace_back();
    if (setting.flag.empty()) continue;
    const std::string_view group = all ? setting.group : IsUsual(verb, setting) ? kUsualGroup : "";  // "": not shown
    const std::string text = DescriptionOf(setting, level);
    option = setting.kind == ValueKind::kBoolean
                 ? AddSwitch(app, setting.flag, text + "\nAlone: true; else =true or =false", group)
                 : AddOption(app, setting.flag, text, setting.placeholder, group);
  }
}

TopFlags AddTopFlags(HelpLevel level, CLI::App& app) {
  const char* const access = level == HelpLevel::kAll ? "Access" : "";
  TopFlags top;
  top.addresses = AddWords(app, "addresses",
                           "Agents: HOST:PORT, a URL, or dns+NAME:PORT for all addresses of a name [the jobs of this user on "
                           "this host]",
                           "ADDR", "Jobs");
  top.once = AddSwitch(app, "--once", "Print one frame as text; the default if stdout is no terminal", "Jobs");
  top.interval = AddOption(app, "--interval", "Time between two polls of an agent: 500ms, 2s [1s]", "DURATION", "Jobs");
  top.username = AddOption(app, "--username", "User of the agents' pages", "NAME", access);
  top.password_file = AddOption(app, "--password-file", "File with the password of that user", "FILE", access);
  top.ca_file = AddOption(app, "--ca-file", "CA certificates for https, as PEM [the system's]", "FILE", access);
  top.server_name = AddOption(app, "--server-name", "Name in the agents' certificates [the host]", "NAME", access);
  top.insecure = AddSwitch(app, "--insecure-skip-verify", "Accept any certificate", access);
  return top;
}

// Adds the flags of the verb to its parser.
Flags AddFlags(Verb verb, HelpLevel level, CLI::App& app) {
  Flags flags;
  app.allow_extras();
  app.set_help_flag("-h,--help", "Print this help");
  app.set_help_all_flag(kHelpAllFlag, "Print all flags, with their variables");
  app.formatter(std::make_shared<Help>());
  app.footer(FooterOf(verb, level));
  if (verb == Verb::kTop) {
    flags.settings.resize(Settings().size());
    flags.top = AddTopFlags(level, app);
    return flags;
  }
  if (verb == Verb::kReport) {
    flags.settings.resize(Settings().size());
    flags.files = AddWords(app, "files", "Summaries that exec or run wrote by --report FILE.json", "FILE", "Runs");
    flags.compares = AddSwitch(app, "--compare", "Print two runs, and the differences from the first to the second", "Runs");
    return flags;
  }
  const char* const group = level == HelpLevel::kAll ? "Job" : kUsualGroup;
  if (verb == Verb::kRun) {
    flags.idle = AddOption(app, kIdleFlag, "End, and end the run, when no worker has been alive for this long: 30s, 5m [never]",
                           "DURATION", group);
    flags.strict = AddSwitch(app, kStrictFlag, "End with exit code 2 after an error in the settings", group);
  } else if (verb == Verb::kExec) {
    app.prefix_command();
    flags.instrument =
        AddOption(app, kInstrumentFlag,
                  "Instrument the command's Python processes, if the Python package is installed. torch: phases, "
                  "steps and samples of PyTorch; prometheus_client: its metrics; may be repeated [none]",
                  "LIBRARY", group);
    flags.strict = AddSwitch(app, kStrictFlag, "Do not start the command if its metrics cannot be collected", group);
  } else if (verb == Verb::kExplain) {
    flags.metrics = AddWords(app, "metrics", "Metrics as the program names them", "GROUP/NAME", kUsualGroup);
    flags.metric_type =
        AddOption(app, "--type", "Type of the metrics: stream, counter, gauge or histogram [as in the processes of the job]",
                  "TYPE", kUsualGroup);
  }
  AddSettings(verb, level, app, flags);
  return flags;
}

// `refusal`: what a misspelt flag leads to; null: all errors of the command line are refused anyway.
ConfigError UnknownArgument(const std::string& argument, const CLI::App& verb, const char* refusal) {
  if (!IsFlag(argument))
    return {.text = "unexpected argument " + Quoted(argument), .consequence = "it is ignored", .lasting = true};
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) names.push_back(option->get_name());
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const Setting* meant = DecidingSetting(name);
  const std::string suggestion = DidYouMean(name, candidates);
  const bool is_refused = refusal != nullptr && !suggestion.empty();
  return {.text = "unknown flag " + Quoted(name) + suggestion,
          .consequence = is_refused ? refusal : "it is ignored",
          .off = meant == nullptr ? Output::kNone : meant->decides,
          .lasting = true,
          .is_misspelt_flag = is_refused};
}

// What a misspelt flag leads to. Null: all errors of the command line do.
const char* HintOf(Verb verb) {
  return verb == Verb::kExec ? "the command is not started" : verb == Verb::kRun ? "the agent ends" : nullptr;
}

std::optional<std::chrono::milliseconds> ParseIdleLimit(const std::string& text) {
  const auto limit = ParseDuration(text);
  return limit.ok() && limit.value() <= kMaxIdle ? std::optional(limit.value()) : std::nullopt;
}

std::optional<Verb> VerbOf(std::string_view word) {
  const Result<Verb> verb = ParseChoice(word, kVerbs);
  return verb.ok() ? std::optional(verb.value()) : std::nullopt;
}

// The error of the first argument; empty if it is a verb, or asks for help or version.
std::string CheckFirst(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPrinting[] = {"-h", "--help", kHelpAllFlag, "--version"};
  const std::string list = std::string(" (") + kVerbList + ")";
  if (arguments.empty()) return "a command is missing" + list + "; see --help";
  const std::string& first = arguments[0];
  if (VerbOf(first) || std::find(std::begin(kPrinting), std::end(kPrinting), first) != std::end(kPrinting)) return "";
  if (first.starts_with("-"))
    return "unexpected flag " + Quoted(first) + " before the command" + list + "; flags follow the command";
  std::vector<std::string_view> verbs;
  for (const Choice<Verb>& verb : kVerbs) verbs.push_back(verb.word);
  return "unknown command " + Quoted(first) + list + DidYouMean(first, verbs);
}

// The values of a flag, in the order given.
std::vector<std::string> ValuesOf(const CLI::Option* option) {
  std::vector<std::string> values = option == nullptr ? std::vector<std::string>() : option->results();
  std::replace(values.begin(), values.end(), std::string(kEmptyValue), std::string());
  return values;
}

std::optional<std::string> LastValueOf(const CLI::Option* option) {
  const std::vector<std::string> values = ValuesOf(option);
  return values.empty() ? std::nullopt : std::optional(values.back());
}

void TakeTopFlags(const TopFlags& flags, CommandLine& line) {
  TopArguments& top = line.top;
  top.addresses = ValuesOf(flags.addresses);
  top.once = LastValueOf(flags.once).has_value();
  top.username = LastValueOf(flags.username).value_or("");
  top.password_file = LastValueOf(flags.password_file).value_or("");
  top.ca_file = LastValueOf(flags.ca_file).value_or("");
  top.server_name = LastValueOf(flags.server_name).value_or("");
  top.insecure = LastValueOf(flags.insecure).has_value();
  if (const auto text = LastValueOf(flags.interval)) {
    const auto interval = ParseDuration(*text);
    if (interval.ok() && interval.value() >= kMinInterval && interval.value() <= kMaxInterval)
      top.interval = interval.value();
    else
      line.errors.push_back({.text = "--interval: " + Quoted(*text) + " is not a duration from 100ms to 1h (500ms, 2s, 1m)"});
  }
}

void TakeReportFlags(const Flags& flags, CommandLine& line) {
  line.report.files = ValuesOf(flags.files);
  line.report.compares = LastValueOf(flags.compares).has_value();
  const size_t given = line.report.files.size();
  if (line.report.compares && given != 2)
    line.errors.push_back({.text = "report --compare needs two files, not " + std::to_string(given)});
  else if (!line.report.compares && given != 1)
    line.errors.push_back({.text = "report needs one file, not " + std::to_string(given) + "; two with --compare"});
}

void TakeFlags(const Flags& flags, CommandLine& line) {
  if (line.verb == Verb::kReport) {
    TakeReportFlags(flags, line);
    return;
  }
  if (line.verb == Verb::kTop) {
    TakeTopFlags(flags.top, line);
    return;
  }
  for (size_t i = 0; i < Settings().size(); ++i)
    for (const std::string& value : ValuesOf(flags.settings[i])) line.settings.emplace_back(Settings()[i].flag, value);
  line.config_file = LastValueOf(flags.config_file);
  line.strict = LastValueOf(flags.strict).has_value();
  line.metrics = ValuesOf(flags.metrics);
  line.metric_type = LastValueOf(flags.metric_type).value_or(line.metric_type);
  for (const std::string& library : ValuesOf(flags.instrument)) {
    const Result<std::string_view> variable = ParseChoice(library, kLibraries);
    if (variable.ok()) {
      line.instruments.push_back(variable.value());
      continue;
    }
    line.errors.push_back({.text = std::string(kInstrumentFlag) + ": " + variable.error(),
                           .consequence = "it is not instrumented",
                           .lasting = true});
  }
  if (const auto idle = LastValueOf(flags.idle)) {
    line.exit_when_idle = ParseIdleLimit(*idle);
    if (!line.exit_when_idle) {
      line.errors.push_back(
          {.text = std::string(kIdleFlag) + ": " + Quoted(*idle) + " is not a duration up to a day (30, 30s, 5m, 1h)",
           .consequence = "the agent runs until a signal",
           .lasting = true});
    }
  }
}

// Parses until no flag is unknown. `words` are without the verb.
void ParseVerb(const std::vector<std::string>& arguments, CommandLine& line) {
  std::vector<Word> words = WordsOf(arguments, line.verb);
  for (;;) {
    CLI::App app(DescriptionOf(line.verb), arguments[0]);
    const Flags flags = AddFlags(line.verb, HelpLevel::kUsual, app);
    std::vector<std::string> reversed;  // CLI11 parses from the back
    for (auto word = words.rbegin(); word != words.rend(); ++word) reversed.push_back(word->text);
    try {
      app.parse(reversed);
    } catch (const CLI::CallForHelp&) {
      line.text = HelpText(app, kProgram);
      line.verb = Verb::kPrint;
      return;
    } catch (const CLI::CallForAllHelp&) {
      CLI::App all(DescriptionOf(line.verb), arguments[0]);
      AddFlags(line.verb, HelpLevel::kAll, all);
      line.text = HelpText(all, kProgram);
      line.verb = Verb::kPrint;
      return;
    } catch (const CLI::ParseError& error) {
      line.errors.push_back({.text = error.what(), .consequence = "it is ignored", .lasting = true});
    }
    const std::vector<std::string> rest = app.remaining();
    if (!rest.empty() && IsFlag(rest.front())) {
      line.errors.push_back(UnknownArgument(rest.front(), app, HintOf(line.verb)));
      std::vector<std::string> with_value;
      for (const CLI::Option* option : app.get_options())
        if (option->get_expected_max() > 0) with_value.push_back(option->get_name());
      RemoveUnknown(rest.front(), with_value, line.verb, words);
      continue;
    }
    TakeFlags(flags, line);
    const size_t separator = !rest.empty() && rest.front() == "--" ? 1 : 0;
    if (line.verb != Verb::kExec) {
      for (size_t i = separator; i < rest.size(); ++i) line.errors.push_back(UnknownArgument(rest[i], app, nullptr));
    } else if (rest.size() > separator) {
      // The rest is the end of the given words: after its first word, nothing was parsed.
      const size_t begin = words[words.size() - rest.size() + separator].index;
      line.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(begin), arguments.end());
      line.command_begin = begin + 1;
    }
    return;
  }
}

}  // namespace

CommandLine ParseCommandLine(std::vector<std::string> arguments) {
  CommandLine line;
  if (std::string error = CheckFirst(arguments); !error.empty()) {
    line.errors.push_back({.text = std::move(error)});
    return line;
  }
  if (const auto verb = VerbOf(arguments[0])) {
    line.verb = *verb;
    ParseVerb(arguments, line);
    return line;
  }
  line.verb = Verb::kPrint;
  if (arguments[0] == "--version") {
    line.text = std::string(kProgram) + " " + kVersion + "\n";
    return line;
  }
  CLI::App app("Collects the metrics of a training job's processes and pushes them to a Prometheus PushGateway.", kProgram);
  app.set_help_flag("-h,--help", "Print this help");
  app.set_help_all_flag(kHelpAllFlag, "Print more examples, and what concerns all commands");
  app.set_version_flag("--version", kVersion, "Print the version");
  app.formatter(std::make_shared<Help>());
  app.footer(ProgramFooter(arguments[0] == kHelpAllFlag ? HelpLevel::kAll : HelpLevel::kUsual));
  for (const Choice<Verb>& verb : kVerbs)
    app.add_subcommand(std::string(verb.word), DescriptionOf(verb.value))->group("Commands");
  line.text = HelpText(app, "");
  return line;
}

}  // namespace persia::agent

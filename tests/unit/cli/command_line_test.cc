#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using namespace std::chrono_literals;
using Verb = CommandLine::Verb;

std::vector<std::string> ErrorsOf(const CommandLine& line) {
  std::vector<std::string> texts;
  for (const ConfigError& error : line.errors) texts.push_back(error.text);
  return texts;
}

TEST(CommandLineTest, ExecTakesFlagsThenTheCommand) {
  const CommandLine line = ParseCommandLine({"exec", "--job", "dlrm", "--strict", "--", "python3", "train.py", "--job", "x"});
  EXPECT_EQ(line.verb, Verb::kExec);
  EXPECT_THAT(ErrorsOf(line), IsEmpty());
  EXPECT_THAT(line.settings, ElementsAre(Pair("--job", "dlrm")));
  EXPECT_TRUE(line.strict);
  EXPECT_THAT(line.command, ElementsAre("python3", "train.py", "--job", "x"));
  EXPECT_EQ(line.command_begin, 6U) << "in argv, with the program's name";
}

TEST(CommandLineTest, ExecInstrumentsLibrariesThatItKnows) {
  EXPECT_THAT(ParseCommandLine({"exec", "--", "make"}).instruments, IsEmpty());
  const CommandLine known = ParseCommandLine({"exec", "--instrument=torch", "--instrument=prometheus_client", "make"});
  EXPECT_THAT(ErrorsOf(known), IsEmpty());
  EXPECT_THAT(known.instruments, ElementsAre("PERSIA_METRICS_TORCH", "PERSIA_METRICS_PROMETHEUS_CLIENT"));
  EXPECT_THAT(known.command, ElementsAre("make"));
  const CommandLine unknown = ParseCommandLine({"exec", "--instrument", "tocrh", "--", "make"});
  EXPECT_THAT(ErrorsOf(unknown),
              ElementsAre("--instrument: \"tocrh\" is not one of: torch, prometheus_client; did you mean \"torch\"?"));
  EXPECT_THAT(unknown.instruments, IsEmpty());
  EXPECT_THAT(unknown.command, ElementsAre("make"));
  EXPECT_THAT(ErrorsOf(ParseCommandLine({"run", "--instrument=torch"})), ElementsAre(HasSubstr("--instrument")));
}

TEST(CommandLineTest, ReportTakesOneFileOrTwoToCompare) {
  const CommandLine one = ParseCommandLine({"report", "a.json"});
  EXPECT_EQ(one.verb, Verb::kReport);
  EXPECT_THAT(ErrorsOf(one), IsEmpty());
  EXPECT_THAT(one.report.files, ElementsAre("a.json"));
  EXPECT_FALSE(one.report.compares);
  const CommandLine two = ParseCommandLine({"report", "--compare", "a.json", "b.json"});
  EXPECT_THAT(ErrorsOf(two), IsEmpty());
  EXPECT_THAT(two.report.files, ElementsAre("a.json", "b.json"));
  EXPECT_TRUE(two.report.compares);
  EXPECT_THAT(ErrorsOf(ParseCommandLine({"report"})), ElementsAre("report needs one file, not 0; two with --compare"));
  EXPECT_THAT(ErrorsOf(ParseCommandLine({"report", "a", "b"})),
              ElementsAre("report needs one file, not 2; two with --compare"));
  EXPECT_THAT(ErrorsOf(ParseCommandLine({"report", "a", "--compare"})), ElementsAre("report --compare needs two files, not 1"));
  EXPECT_THAT(ErrorsOf(ParseCommandLine({"report", "a", "--job", "x"})), ::testing::Not(IsEmpty()));
}

TEST(CommandLineTest, TheCommandBeginsWhereTheFlagsEnd) {
  struct {
    std::vector<std::string> arguments;  // behind exec
    size_t begin;                        // of the command among them
  } const cases[] = {
      {{"make"}, 0},
      {{"--", "make"}, 1},
      {{"--", "--", "make"}, 1},
      {{"--", "--help"}, 1},
      {{"run", "--job", "x"}, 0},
      {{"make", "--", "-j"}, 0},
      {{"--job", "run", "make"}, 2},
      {{"--job", "dlrm", "--log-level=debug", "--strict", "make", "--help"}, 4},
      {{"--web.enable-lifecycle", "make", "true"}, 1},
      {{"--web.enable-lifecycle", "--", "make"}, 2},
      {{"--web.enable-lifecycle=false", "make"}, 1},
      {{"--web.enable-lifecycle", "false", "make"}, 2},
      {{"--enable-metrics", "no", "--job", "x", "make"}, 4},
      {{"--web.enable-lifecycle", "true"}, 1},
      {{"--web.enable-lifecycle", "--strict", "yes", "y"}, 2},
      {{"make", "--enable-metrics", "true", "x"}, 0},
      {{"--gateway=", "make", "all"}, 1},
      {{"--gateway=", "--", "make"}, 2},
      {{"--job", "--", "make"}, 2},
      {{"--events-file", "-", "make"}, 2},
      {{"--jbo", "dlrm", "--gateway", "gw", "make"}, 4},
      {{"--jbo=dlrm", "make"}, 1},
      {{"--stict", "make", "all"}, 1},
      {{"--zzz", "3", "--gateway", "gw", "--", "make"}, 5},
      {{"--zzz", "make", "all"}, 1},
      {{"-x", "make"}, 1},
      {{"--job", "dlrm", "--label", "[a]=[b,c]", "make", "[a,b]"}, 4},
  };
  for (const auto& one : cases) {
    std::vector<std::string> arguments = {"exec"};
    arguments.insert(arguments.end(), one.arguments.begin(), one.arguments.end());
    const CommandLine line = ParseCommandLine(arguments);
    const std::vector<std::string> command(one.arguments.begin() + static_cast<std::ptrdiff_t>(one.begin), one.arguments.end());
    EXPECT_EQ(line.command, command) << ::testing::PrintToString(one.arguments);
    EXPECT_EQ(line.command_begin, one.begin + 2) << ::testing::PrintToString(one.arguments);
    EXPECT_EQ(line.verb, Verb::kExec) << ::testing::PrintToString(one.arguments);
  }
  for (const auto& without : {std::vector<std::string>{"exec"}, {"exec", "--"}, {"exec", "--strict"}}) {
    EXPECT_THAT(ParseCommandLine(without).command, IsEmpty());
    EXPECT_EQ(ParseCommandLine(without).command_begin, 0U);
  }
}

TEST(CommandLineTest, AFlagWithAnErrorLeavesTheOthersAlone) {
  const CommandLine line = ParseCommandLine({"exec", "--jbo", "dlrm", "--strict", "--gateway", "gw:1", "--job", "--", "make"});
  EXPECT_THAT(ErrorsOf(line), ElementsAre("unknown flag \"--jbo\"; did you mean \"--job\"?"));
  EXPECT_THAT(line.command, ElementsAre("make"));
  EXPECT_TRUE(line.strict);
  EXPECT_THAT(line.settings, ElementsAre(Pair("--job", ""), Pair("--gateway", "gw:1")));
  EXPECT_EQ(line.errors[0].off, Output::kNone);
}

TEST(CommandLineTest, AMisspeltFlagOfACommandThatGoesOnAfterErrorsIsMarked) {
  const auto error = [](std::vector<std::string> arguments) { return ParseCommandLine(std::move(arguments)).errors.at(0); };
  EXPECT_EQ(error({"exec", "--jbo=x", "--", "make"}).Line(),
            "unknown flag \"--jbo\"; did you mean \"--job\"? the command is not started");
  EXPECT_EQ(error({"run", "--jbo=x"}).Line(), "unknown flag \"--jbo\"; did you mean \"--job\"? the agent ends");
  EXPECT_TRUE(error({"run", "--jbo=x"}).is_misspelt_flag);
  EXPECT_FALSE(error({"run", "--no-such-flag"}).is_misspelt_flag) << "perhaps of a newer version";
  EXPECT_FALSE(error({"once", "--jbo=x"}).is_misspelt_flag) << "each error is refused";
}

TEST(CommandLineTest, AnUnknownFlagThatMayNameTheGatewaySwitchesItOff) {
  const auto off = [](const std::string& flag) { return ParseCommandLine({"exec", flag + "=x", "make"}).errors.at(0).off; };
  EXPECT_EQ(off("--gatway"), Output::kGateway);
  EXPECT_EQ(off("--gateway-address"), Output::kGateway);
  EXPECT_EQ(off("--web.config.fiel"), Output::kPages);
  EXPECT_EQ(off("--web.config-file"), Output::kPages);
  EXPECT_EQ(off("--web.enable-lifecyle"), Output::kNone);
  EXPECT_EQ(off("--lable"), Output::kNone);
}

TEST(CommandLineTest, ASwitchNeedsNoValue) {
  const auto settings = [](std::vector<std::string> arguments) { return ParseCommandLine(std::move(arguments)).settings; };
  EXPECT_THAT(settings({"run", "--web.enable-lifecycle"}), ElementsAre(Pair("--web.enable-lifecycle", "true")));
  EXPECT_THAT(settings({"run", "--web.enable-lifecycle=false"}), ElementsAre(Pair("--web.enable-lifecycle", "false")));
  EXPECT_THAT(settings({"run", "--enable-metrics", "no"}), ElementsAre(Pair("--enable-metrics", "no")));
  EXPECT_THAT(settings({"run", "--web.enable-lifecycle", "--job=x"}),
              ElementsAre(Pair("--job", "x"), Pair("--web.enable-lifecycle", "true")));
  EXPECT_THAT(settings({"run", "--job="}), ElementsAre(Pair("--job", "")));
}

TEST(CommandLineTest, ListsKeepTheirOrder) {
  EXPECT_THAT(ParseCommandLine({"run", "--label", "a=1", "--label=b=2"}).settings,
              ElementsAre(Pair("--label", "a=1"), Pair("--label", "b=2")));
}

TEST(CommandLineTest, DurationsHaveUnits) {
  const auto idle = [](const std::string& text) { return ParseCommandLine({"run", "--exit-when-idle", text}).exit_when_idle; };
  EXPECT_EQ(idle("30"), 30s);
  EXPECT_EQ(idle("0.5s"), 500ms);
  EXPECT_EQ(idle("5m"), 5min);
  EXPECT_EQ(idle("1h"), 1h);
  for (const char* bad : {"s", "x", "-1", "30d", "25h", "nan"}) {
    EXPECT_EQ(idle(bad), std::nullopt) << bad;
  }
  EXPECT_THAT(ErrorsOf(ParseCommandLine({"run", "--exit-when-idle", "soon"})),
              ElementsAre("--exit-when-idle: \"soon\" is not a duration up to a day (30, 30s, 5m, 1h)"));
}

struct Mistake {
  std::vector<std::string> arguments;
  Verb verb;
  std::string error;
};

class CommandLineRefuses : public ::testing::TestWithParam<Mistake> {};

TEST_P(CommandLineRefuses, WithWhatWasMeant) {
  const CommandLine line = ParseCommandLine(GetParam().arguments);
  EXPECT_EQ(line.verb, GetParam().verb);
  EXPECT_THAT(ErrorsOf(line), ElementsAre(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, CommandLineRefuses,
    ::testing::Values(
        Mistake{{}, Verb::kNone, "a command is missing (run, exec, once, check-config, explain, report, top); see --help"},
        Mistake{{"rnu"},
                Verb::kNone,
                "unknown command \"rnu\" (run, exec, once, check-config, explain, report, top); did you mean \"run\"?"},
        Mistake{{"run", "--gatway=x"}, Verb::kRun, "unknown flag \"--gatway\"; did you mean \"--gateway\"?"},
        Mistake{{"run", "--gatway", "x"}, Verb::kRun, "unknown flag \"--gatway\"; did you mean \"--gateway\"?"},
        Mistake{{"run", "now"}, Verb::kRun, "unexpected argument \"now\""},
        Mistake{{"once", "--exit-when-idle", "3"}, Verb::kOnce, "unknown flag \"--exit-when-idle\""},
        Mistake{{"--job", "x", "run"},
                Verb::kNone,
                "unexpected flag \"--job\" before the command (run, exec, once, check-config, explain, report, top); flags "
                "follow the command"}));

TEST(CommandLineTest, VersionIsPrinted) {
  const CommandLine line = ParseCommandLine({"--version"});
  EXPECT_EQ(line.verb, Verb::kPrint);
  EXPECT_THAT(line.text, ::testing::MatchesRegex("persia-metrics-agent [0-9.]+\n"));
}

TEST(CommandLineTest, TheUsualHelpIsShort) {
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  EXPECT_LE(lines(ParseCommandLine({"--help"}).text), 22);
  for (const char* verb : {"run", "exec", "once", "check-config", "explain", "report", "top"}) {
    const std::string text = ParseCommandLine({verb, "--help"}).text;
    EXPECT_LE(lines(text), 20) << text;
    EXPECT_THAT(text, HasSubstr("--help"));
  }
  const std::string exec = ParseCommandLine({"exec", "--help"}).text;
  for (const char* flag : {"--instrument", "--job", "--gateway", "--listen", "--help-all"}) EXPECT_THAT(exec, HasSubstr(flag));
  EXPECT_THAT(ParseCommandLine({"explain", "--help"}).text, Not(HasSubstr("--gateway")));
}

TEST(CommandLineTest, AllOfTheHelpKnowsEverySetting) {
  for (const char* verb : {"run", "exec", "once", "check-config"}) {
    const CommandLine line = ParseCommandLine({verb, "--help-all"});
    EXPECT_EQ(line.verb, Verb::kPrint);
    for (const Setting& setting : Settings()) {
      EXPECT_THAT(line.text, HasSubstr(std::string(setting.environment)));
      if (setting.flag.empty()) {
        EXPECT_THAT(line.text, HasSubstr("in the file " + std::string(setting.key)));
        continue;
      }
      EXPECT_THAT(line.text, HasSubstr(std::string(setting.flag) + " "));
      EXPECT_THAT(line.text, HasSubstr("[" + std::string(setting.default_text) + "]"));
    }
  }
}

TEST(CommandLineTest, HelpOfTheCommandBehindExecIsTheCommands) {
  EXPECT_EQ(ParseCommandLine({"exec", "--", "make", "--help"}).verb, Verb::kExec);
  EXPECT_EQ(ParseCommandLine({"exec", "--help"}).verb, Verb::kPrint);
}

TEST(Settings, WhatIsSecretHasNoFlagAndIsNotTold) {
  size_t secrets = 0;
  for (const Setting& setting : Settings()) {
    if (!setting.secret) {
      EXPECT_FALSE(setting.flag.empty()) << setting.key;
      continue;
    }
    ++secrets;
    EXPECT_EQ(setting.flag, "");
    AgentOptions options;
    EXPECT_TRUE(setting.set("hunter2", options).ok());
    EXPECT_EQ(setting.get(options), "(set)");
    const Status refused = setting.set("hunter2\n", options);
    EXPECT_FALSE(refused.ok());
    EXPECT_THAT(refused.error(), ::testing::Not(HasSubstr("hunter2")));
  }
  EXPECT_EQ(secrets, 2u);
}

TEST(Settings, SayTheirDefaultsAndTakeWhatTheyGive) {
  for (const Setting& setting : Settings()) {
    AgentOptions options;
    const std::string value = setting.get(options);
    if (value.empty()) continue;
    EXPECT_EQ(value, setting.default_text) << setting.flag;
    EXPECT_TRUE(setting.set(value, options).ok()) << setting.flag;
    EXPECT_EQ(setting.get(options), value);
  }
}

}  // namespace
}  // namespace persia::agent

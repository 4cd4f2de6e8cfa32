#include "app/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/settings.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace std::chrono_literals;
using Verb = CommandLine::Verb;

TEST(CommandLineTest, ExecTakesFlagsThenTheCommand) {
  const CommandLine line = ParseCommandLine({"exec", "--job", "dlrm", "--strict", "--", "python3", "train.py", "--job", "x"});
  EXPECT_EQ(line.verb, Verb::kExec);
  EXPECT_THAT(line.errors, IsEmpty());
  EXPECT_THAT(line.settings, ElementsAre(Pair("--job", "dlrm")));
  EXPECT_TRUE(line.strict);
  EXPECT_THAT(line.command, ElementsAre("python3", "train.py", "--job", "x"));
}

TEST(CommandLineTest, ExecFindsItsCommandWithoutSeparator) {
  const CommandLine line = ParseCommandLine({"exec", "--job", "dlrm", "--log-level=debug", "--strict", "make", "--help"});
  EXPECT_THAT(line.errors, IsEmpty());
  EXPECT_THAT(line.command, ElementsAre("make", "--help"));
}

TEST(CommandLineTest, ExecKnowsItsCommandWhateverElseIsWrong) {
  const CommandLine line = ParseCommandLine({"exec", "--jbo", "dlrm", "--strict", "--", "make"});
  EXPECT_THAT(line.errors, ElementsAre("unknown flag \"--jbo\"; did you mean \"--job\"?"));
  EXPECT_THAT(line.command, ElementsAre("make"));
  EXPECT_TRUE(line.strict);
  EXPECT_THAT(ParseCommandLine({"exec", "--job", "--", "make"}).command, ElementsAre("make"));
  EXPECT_THAT(ParseCommandLine({"exec", "--job", "--", "make"}).errors, ElementsAre(HasSubstr("--job")));
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
  for (const char* bad : {"", "s", "x", "-1", "30d", "25h", "nan"}) {
    EXPECT_EQ(idle(bad), std::nullopt) << bad;
  }
  EXPECT_THAT(ParseCommandLine({"run", "--exit-when-idle", "soon"}).errors,
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
  EXPECT_THAT(line.errors, ElementsAre(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, CommandLineRefuses,
    ::testing::Values(
        Mistake{{}, Verb::kNone, "a command is missing (run, exec, once, check-config, explain); --help tells more"},
        Mistake{
            {"rnu"}, Verb::kNone, "unknown command \"rnu\" (run, exec, once, check-config, explain); did you mean \"run\"?"},
        Mistake{{"run", "--gatway=x"}, Verb::kRun, "unknown flag \"--gatway\"; did you mean \"--gateway\"?"},
        Mistake{{"run", "--gatway", "x"}, Verb::kRun, "unknown flag \"--gatway\"; did you mean \"--gateway\"?"},
        Mistake{{"run", "now"}, Verb::kRun, "unexpected argument \"now\""},
        Mistake{{"once", "--exit-when-idle", "3"}, Verb::kOnce, "unknown flag \"--exit-when-idle\""},
        Mistake{
            {"--job", "x", "run"},
            Verb::kNone,
            "unexpected flag \"--job\" before the command (run, exec, once, check-config, explain); flags stand behind it"}));

TEST(CommandLineTest, VersionIsPrinted) {
  const CommandLine line = ParseCommandLine({"--version"});
  EXPECT_EQ(line.verb, Verb::kPrint);
  EXPECT_THAT(line.text, ::testing::MatchesRegex("persia-metrics-agent [0-9.]+\n"));
}

TEST(CommandLineTest, HelpOfACommandKnowsEverySetting) {
  for (const char* verb : {"run", "exec", "once", "check-config"}) {
    const CommandLine line = ParseCommandLine({verb, "--help"});
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

TEST(Settings, SayTheirDefaults) {
  const AgentOptions defaults;
  for (const Setting& setting : Settings()) {
    const std::string value = setting.get(defaults);
    EXPECT_TRUE(value.empty() || value == setting.default_text) << setting.flag << ": " << value;
  }
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

TEST(Settings, TakeWhatTheyGive) {
  for (const Setting& setting : Settings()) {
    AgentOptions options;
    const std::string value = setting.get(options);
    if (!value.empty()) {
      EXPECT_TRUE(setting.set(value, options).ok()) << setting.flag;
      EXPECT_EQ(setting.get(options), value);
    }
  }
}

}  // namespace
}  // namespace persia::agent

#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "config/values.h"
#include "net/http_server.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace std::chrono_literals;

Config Parse(const std::string& text) { return ParseConfig("f.yaml", text); }

// Settings inside our section.
std::string Section(const std::string& lines) { return "PersiaMetricsConfig:\n" + lines; }

TEST(Variables, AMisspeltOneIsTold) {
  ConfigSources sources;
  sources.environment = [](const char*) { return std::nullopt; };
  sources.variables = {"PERSIA_METRICS_GATEWAY",     "PERSIA_JOBNAME",  "PERSIA_METRICS_UNHEARD_OF_NAME",
                       "PERSIA_RANKS_OF_A_CLUSTER",  "PERSIA_JOB_NAME", "PERSIA_ROLE",
                       "PERSIA_METRICS_GATEWAY_ADDR"};
  EXPECT_THAT(
      LoadConfig(sources).notes,
      ElementsAre(R"(unknown variable "PERSIA_METRICS_GATEWAY"; did you mean "PERSIA_METRICS_GATEWAY_ADDR"? It is ignored)",
                  R"(unknown variable "PERSIA_JOBNAME"; did you mean "PERSIA_JOB_NAME"? It is ignored)",
                  R"(unknown variable "PERSIA_METRICS_UNHEARD_OF_NAME"; it is ignored)"))
      << "PersiaML's own are not ours to judge";
}

TEST(ConfigFile, TakesPersiaMlsLaterNesting) {
  const Config config =
      Parse("common_config:\n  intent: Train\n  metrics_config:\n    job_name: later\n    push_interval_sec: 5\n");
  EXPECT_THAT(config.ErrorTexts(), IsEmpty());
  EXPECT_EQ(config.options.job_name, "later");
  EXPECT_EQ(config.options.push_interval, 5s);
}

TEST(ConfigFile, LeavesOtherSectionsAlone) {
  const Config config = Parse(
      "common_config: {checkpointing_config: {num_workers: 8}}\n"
      "embedding_worker_config: &x\n  forward_buffer_size: 1000\n"
      "embedding_parameter_server_config:\n  - *x\n  - job_nam\n");
  EXPECT_THAT(config.ErrorTexts(), IsEmpty());
  EXPECT_EQ(config.options.job_name, "default");
}

TEST(ConfigFile, TakesDurationsSizesAndSwitchesAsPeopleWriteThem) {
  const Config config = Parse(Section(R"(
  push_interval_seconds: 1m30s
  push_timeout_seconds: "500ms"
  finish_timeout_seconds: 5
  max_segment_bytes: 64MiB
  max_foreign_bytes: "1GB"
  history_max_bytes: 2000k
  log_level: warn
  enable_lifecycle:
)"));
  EXPECT_THAT(config.ErrorTexts(), IsEmpty());
  EXPECT_EQ(config.options.push_interval, 90s);
  EXPECT_EQ(config.options.push_timeout, 500ms);
  EXPECT_EQ(config.options.FinishTimeout(), 5s);
  EXPECT_EQ(config.options.max_segment_bytes, 64U << 20);
  EXPECT_EQ(config.options.max_foreign_bytes, 1'000'000'000U);
  EXPECT_EQ(config.options.history_max_bytes, 2'000'000U);
  EXPECT_EQ(config.options.log_level, LogLevel::kWarning);
  EXPECT_TRUE(config.options.enable_lifecycle);
}

TEST(ConfigFile, WithoutAFinishTimeoutItFollowsThePushTimeout) {
  EXPECT_EQ(Parse(Section("  push_timeout_seconds: 3\n")).options.FinishTimeout(), 4s);
}

TEST(ConfigFile, TakesTextAsItIsWritten) {
  EXPECT_EQ(Parse(Section("  job_name: 1.10\n")).options.job_name, "1.10");
  EXPECT_EQ(Parse(Section("  job_name: 'no'\n")).options.job_name, "no");
}

TEST(ConfigFile, TakesAListOfNames) {
  const std::vector<std::string> names = {"a.example", "b"};
  EXPECT_EQ(Parse(Section("  web_external_host: [a.example, 'b']\n")).options.web_external_hosts, names);
  EXPECT_EQ(Parse(Section("  web_external_host: a.example, b\n")).options.web_external_hosts, names);
}

TEST(ConfigFile, FollowsAliases) {
  const Config config = Parse("name: &name dlrm\nPersiaMetricsConfig:\n  job_name: *name\n");
  EXPECT_THAT(config.ErrorTexts(), IsEmpty());
  EXPECT_EQ(config.options.job_name, "dlrm");
}

TEST(ListenAddress, OfIpv6IsTakenIfTheWebServerHasIt) {
  AgentOptions options;
  EXPECT_EQ(ParseListenAddress("[::1]:19091", options).ok(), HttpServer::CheckAddress("[::1]:19091").ok());
  EXPECT_THAT(ParseListenAddress("::1:19091", options).error(), HasSubstr("\"::1:19091\" is not an IP address and a port"));
}

struct Refusal {
  std::string text;
  std::string error;
};

std::string KeysOfAllSettings() {
  std::string keys;
  for (const Setting& setting : Settings()) {
    if (!setting.key.empty()) keys += (keys.empty() ? "" : ", ") + std::string(setting.key);
  }
  return keys;
}

class ConfigFileRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(ConfigFileRefuses, WithPlaceAndReason) {
  EXPECT_THAT(Parse(GetParam().text).ErrorTexts(), ElementsAre(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, ConfigFileRefuses,
    ::testing::Values(Refusal{Section("  job_nam: x\n"), R"(f.yaml:2:3: unknown setting "job_nam"; did you mean "job_name"?)"},
                      Refusal{Section("  zzz: 1\n"), "f.yaml:2:3: unknown setting \"zzz\" (" + KeysOfAllSettings() + ")"},
                      Refusal{Section("  ? [a]\n  : b\n"), "f.yaml:2:5: expected a setting's name, found a list"},
                      Refusal{Section("  job_name: a\n  job_name: b\n"),
                              R"(f.yaml:3:3: "job_name" is given twice: first in line 2)"},
                      Refusal{Section("  push_interval_seconds: 1\n  push_interval_sec: 2\n"),
                              R"(f.yaml:3:3: "push_interval_sec" is given twice: first in line 2 as "push_interval_seconds")"},
                      Refusal{"PersiaMetricsConfig: {}\nPersiaMetricsConfig: {}\n",
                              R"(f.yaml:2:1: the section "PersiaMetricsConfig" is given twice: first in line 1)"},
                      Refusal{"PersiaMetricsConfig: {}\ncommon_config: {metrics_config: {}}\n",
                              "f.yaml:2:33: the file has PersiaMetricsConfig and common_config: metrics_config; leave one out"},
                      Refusal{"PersiaMetricConfig: {}\n",
                              R"(f.yaml:1:1: unknown section "PersiaMetricConfig"; did you mean "PersiaMetricsConfig"?)"},
                      Refusal{Section("  labels: {team: a, team: b}\n"), R"(f.yaml:2:21: labels: "team" is given twice)"}));

INSTANTIATE_TEST_SUITE_P(
    Types, ConfigFileRefuses,
    ::testing::Values(
        Refusal{Section("  enable_metrics: \"true\"\n"),
                R"(f.yaml:2:19: enable_metrics: expected true or false, found the text "true"; leave out the quotes)"},
        Refusal{Section("  enable_metrics: 1\n"), R"(f.yaml:2:19: enable_metrics: "1" is a number; expected true or false)"},
        Refusal{
            Section("  enable_metrics: ture\n"),
            R"(f.yaml:2:19: enable_metrics: "ture" is not one of: true, false, 1, 0, yes, no, on, off; did you mean "true"?)"},
        Refusal{Section("  job_name:\n"), "f.yaml:2:3: job_name: the value is missing; expected a text"},
        Refusal{Section("  job_name: [a, b]\n"), "f.yaml:2:13: job_name: expected a text, found a list"},
        Refusal{Section("  push_interval_seconds: '5'\n"),
                R"(f.yaml:2:26: push_interval_seconds: expected a number, found the text "5"; leave out the quotes)"},
        Refusal{Section("  labels: [a]\n"), "f.yaml:2:11: labels: expected a map (team: ads), found a list"},
        Refusal{Section("  labels: {team: [a]}\n"), "f.yaml:2:18: labels: team: expected a text, found a list"},
        Refusal{Section("  labels: {team: }\n"), "f.yaml:2:18: labels: team: expected a text, found nothing"},
        Refusal{"- a\n", "f.yaml:1:1: expected sections (PersiaMetricsConfig: ...), found a list"},
        Refusal{"just a line\n", "f.yaml:1:1: expected sections (PersiaMetricsConfig: ...), found a value"},
        Refusal{"PersiaMetricsConfig: [a]\n", "f.yaml:1:22: expected settings (enable_metrics: true ...), found a list"},
        Refusal{"", "f.yaml:1:1: the file is empty; expected a section PersiaMetricsConfig"}));

INSTANTIATE_TEST_SUITE_P(
    Values, ConfigFileRefuses,
    ::testing::Values(
        Refusal{Section("  push_interval_seconds: 10x\n"),
                R"(f.yaml:2:26: push_interval_seconds: "10x" is not a duration (10s, 1m30s, or seconds: 0.1 to 86400))"},
        Refusal{Section("  push_interval_seconds: 0\n"),
                R"(f.yaml:2:26: push_interval_seconds: "0" is out of range (seconds, 0.1 to 86400))"},
        Refusal{Section("  push_timeout_seconds: -1\n"),
                R"(f.yaml:2:25: push_timeout_seconds: "-1" is not a duration (10s, 1m30s, or seconds: 0.1 to 300))"},
        Refusal{Section("  on_job_end: kep\n"),
                R"(f.yaml:2:15: on_job_end: "kep" is not one of: keep, delete; did you mean "keep"?)"},
        Refusal{Section("  job_name: ''\n"), "f.yaml:2:13: job_name: a job's name must not be empty"},
        Refusal{Section("  job_name: \"a\\nb\"\n"), R"(f.yaml:2:13: job_name: "a\nb" has a control character in it)"},
        Refusal{
            Section("  metrics_dir: here\n"),
            "f.yaml:2:16: metrics_dir: \"here\" is not an absolute path: workers that start in other directories must find it "
            "too"},
        Refusal{Section("  gateway_address:\n    - a:1\n    - b:1\n"),
                "f.yaml:3:5: gateway_address: gateway address \"a:1,b:1\": it is a list, and an agent pushes to one gateway; "
                "give one address, and other agents another one (a comma in a path is %2C)"},
        Refusal{Section("  gateway_address: dns+gw:9091\n"),
                "f.yaml:2:20: gateway_address: gateway address \"dns+gw:9091\": dns+ stands for each address of a name, and "
                "an agent pushes to one gateway; leave dns+ out, or give one address, and other agents another one"},
        Refusal{Section("  web_external_host:\n    - a\n    - b:1\n"),
                "f.yaml:4:7: web_external_host: \"b:1\" is not a host name without scheme and port (metrics.example.com, "
                ".example.com)"},
        Refusal{Section("  web_external_host: []\n"),
                "f.yaml:2:22: web_external_host: the list is empty; expected a text, or a list of texts"},
        Refusal{Section("  web_external_host: [a, [b]]\n"), "f.yaml:2:26: web_external_host: expected a text, found a list"},
        Refusal{
            Section("  gateway_address: \"a:1\\nb\"\n"),
            "f.yaml:2:20: gateway_address: gateway address \"a:1 b\": it has a space or a control character; leave it out, or "
            "percent-encode it in the path"},
        Refusal{Section("  listen_address: 127.0.0.1\n"),
                "f.yaml:2:19: listen_address: \"127.0.0.1\" is not an IP address and a port (127.0.0.1:19091; [::1]:19091; "
                ":19091 for "
                "all IPv4 addresses; port 0 for any free one); off: no pages"},
        Refusal{Section("  labels: {\"a\\tb\": b}\n"),
                "f.yaml:2:12: labels: \"a\\tb\" is not a label's name (letters, digits and _, no digit first, not beginning "
                "with __)"},
        Refusal{Section("  labels: {job: b}\n"),
                "f.yaml:2:12: labels: \"job\" is a label of Prometheus or of the agent itself (not: job, instance, ip_addr, "
                "role, agent, "
                "le, quantile, __*)"},
        Refusal{Section("  max_segment_bytes: 12\n"),
                R"(f.yaml:2:22: max_segment_bytes: "12" is out of range (bytes, 65536 to 1099511627776))"},
        Refusal{Section("  max_segment_bytes: much\n"),
                R"(f.yaml:2:22: max_segment_bytes: "much" is not a size (64MiB, 1GB, or bytes: 65536 to 1099511627776))"}));

INSTANTIATE_TEST_SUITE_P(
    Syntax, ConfigFileRefuses,
    ::testing::Values(Refusal{Section("  job_name: [a\n"), "f.yaml:2:1: not valid YAML: end of sequence flow not found"},
                      Refusal{Section("  job_name: 'a\n"), "f.yaml:2:15: not valid YAML: illegal EOF in scalar"},
                      Refusal{"a: 1\n---\nb: 2\n",
                              "f.yaml:3:1: a second document begins here, or the line does not belong to the lines above it; "
                              "one document is expected"},
                      Refusal{"- x\ny: 1\n",
                              "f.yaml:2:1: a second document begins here, or the line does not belong to the lines above it; "
                              "one document is expected"},
                      Refusal{"a: &a [*a]\n", "f.yaml:1:8: not valid YAML: an alias that contains itself"},
                      Refusal{std::string(100, '['), "f.yaml:1:33: not valid YAML: nested deeper than 64 levels"}));

TEST(ConfigFile, RefusesAnAliasWithoutItsAnchor) {
  // yaml-cpp 0.8 adds the name, which 0.7 leaves out.
  const std::string error = "f.yaml:2:13: not valid YAML: the referenced anchor is not defined";
  EXPECT_THAT(Parse(Section("  job_name: *nothing\n")).ErrorTexts(), ElementsAre(AnyOf(error, error + ": nothing")));
}

TEST(ConfigFile, TellsAllErrorsAtOnce) {
  EXPECT_THAT(Parse(Section("  job_nam: a\n  on_job_end: b\n")).ErrorTexts(),
              ElementsAre(HasSubstr("f.yaml:2:3: "), HasSubstr("f.yaml:3:15: ")));
}

TEST(ConfigFile, AliasesThatMultiplyTakeNoMemory) {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before + "]\n";
  }
  EXPECT_THAT(Parse(text + Section("  job_name: x\n")).ErrorTexts(), IsEmpty());
}

TEST(ConfigFile, ChainOfAliasesIsAsDeepAsNestedLists) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 20000; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_THAT(Parse(text).ErrorTexts(), ElementsAre(HasSubstr("nested deeper than 64 levels")));
}

// The sources of the settings: files in a new directory, flags and variables as given.
class ConfigOrder : public ::testing::Test {
 protected:
  std::string File(const std::string& text) {
    const std::string path = directory_ / "global_config.yaml";
    std::ofstream(path) << text;
    return path;
  }
  Config Load() {
    sources_.environment = [this](const char* name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional(found->second);
    };
    return LoadConfig(sources_);
  }

  const TemporaryDirectory temporary_;
  const std::filesystem::path directory_ = temporary_.path();
  ConfigSources sources_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ConfigOrder, TorchrunsNoneIsNoRunId) {
  environment_ = {{"TORCHELASTIC_RUN_ID", "none"}};
  EXPECT_EQ(Load().options.run_id, "");
}

TEST_F(ConfigOrder, PasswordInAnAddressIsNotQuoted) {
  sources_.flags = {{"--gateway", "http://user:hunter2@gateway:9091"}};
  const Config config = Load();
  ASSERT_EQ(config.errors.size(), 1u);
  EXPECT_THAT(config.errors[0].text, ::testing::Not(HasSubstr("hunter2")));
}

TEST_F(ConfigOrder, LabelsOfFlagsReplaceThoseOfTheFile) {
  sources_.file = File(Section("  labels: {a: file, b: file}\n"));
  sources_.flags = {{"--label", "a=flag"}, {"--label", "c=flag"}};
  EXPECT_THAT(Load().options.labels, ElementsAre(Pair("a", "flag"), Pair("c", "flag")));
}

TEST_F(ConfigOrder, FileIsNamedByPersiaMlsVariable) {
  environment_["PERSIA_GLOBAL_CONFIG"] = File(Section("  job_name: x\n"));
  EXPECT_EQ(Load().options.job_name, "x");
  EXPECT_EQ(Load().file, environment_["PERSIA_GLOBAL_CONFIG"]);
}

TEST_F(ConfigOrder, MissingFileIsAnErrorOnlyIfSomebodyNamedIt) {
  EXPECT_THAT(Load().ErrorTexts(), IsEmpty());
  sources_.file = "/no/such/file";
  EXPECT_THAT(Load().ErrorTexts(), ElementsAre("/no/such/file: cannot be read: No such file or directory"));
}

TEST_F(ConfigOrder, WhatIsNoSmallFileIsRefusedUnread) {
  sources_.file = directory_.string();
  EXPECT_THAT(Load().ErrorTexts(), ElementsAre(HasSubstr(": is a directory; expected a YAML file")));
}

// A reloader of a file, beside a flag; the fixture keeps the options that it applies.
class ReloaderTest : public ::testing::Test {
 protected:
  ReloaderTest() {
    Write("job_name: first\n  push_interval_seconds: 10\n");
    sources_ = {.flags = {{"--label", "team=ads"}}, .environment = [](const char*) { return std::nullopt; }, .file = file_};
    current_ = LoadConfig(sources_).options;
    current_.log_level = LogLevel::kOff;
  }
  void Write(const std::string& settings) { std::ofstream(file_) << "PersiaMetricsConfig:\n  log_level: off\n  " << settings; }
  Reloader Make() {
    return Reloader({.sources = sources_,
                     .current = current_,
                     .apply = [this](const AgentOptions& options) { applied_.push_back(options); },
                     .note = [this](bool good, size_t errors) { noted_.emplace_back(good, errors); }});
  }

  const TemporaryDirectory directory_;
  const std::string file_ = directory_ / "config.yaml";
  ConfigSources sources_;
  AgentOptions current_;
  std::vector<AgentOptions> applied_;
  std::vector<std::pair<bool, size_t>> noted_;
};

TEST_F(ReloaderTest, HandsOnWhatMayChangeAndKeepsTheRest) {
  Reloader reloader = Make();
  Write("job_name: second\n  push_interval_seconds: 3\n");
  EXPECT_THAT(reloader.Reload(), IsEmpty());
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0].push_interval, 3s);
  EXPECT_EQ(applied_[0].job_name, "first");
  EXPECT_THAT(applied_[0].labels, ElementsAre(std::pair("team", "ads")));
  EXPECT_THAT(noted_, ElementsAre(std::pair(true, 0U)));
}

TEST_F(ReloaderTest, OneErrorRefusesAll) {
  Reloader reloader = Make();
  Write("push_interval_seconds: 3\n  web_config_file: /nowhere/web.yaml\n");
  EXPECT_THAT(reloader.Reload(), ElementsAre(HasSubstr("/nowhere/web.yaml")));
  Write("push_interval_seconds: 3\n  max_series: none\n");
  EXPECT_THAT(reloader.Reload(), ElementsAre(HasSubstr("max_series: \"none\"")));
  EXPECT_THAT(applied_, IsEmpty());
  EXPECT_THAT(noted_, ElementsAre(std::pair(false, 1U), std::pair(false, 1U)));
}

TEST_F(ReloaderTest, AnErrorInAFlagRefusesNothing) {
  sources_.flags.emplace_back("--push-timeout", "soon");
  Reloader reloader = Make();
  Write("push_interval_seconds: 3\n");
  EXPECT_THAT(reloader.Reload(), IsEmpty());
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0].push_interval, 3s);
  Write("push_interval_seconds: often\n");
  EXPECT_THAT(reloader.Reload(), ElementsAre(HasSubstr("push_interval_seconds"))) << "the flag's error is not repeated";
  EXPECT_THAT(noted_, ElementsAre(std::pair(true, 1U), std::pair(false, 2U)));
}

}  // namespace
}  // namespace persia::agent

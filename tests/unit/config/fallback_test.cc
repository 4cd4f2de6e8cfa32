// The effect of a wrong setting: its default is used, or the one output is off whose receivers or readers it decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Flags = std::vector<std::pair<std::string, std::string>>;

class Fallback : public ::testing::Test {
 protected:
  // The agent's section of the file.
  Config Load(const std::string& section, Flags flags = {}, std::map<std::string, std::string> environment = {}) {
    return LoadText("PersiaMetricsConfig:\n" + section, std::move(flags), std::move(environment));
  }
  Config LoadText(const std::string& text, Flags flags = {}, std::map<std::string, std::string> environment = {}) {
    std::ofstream(file_) << text;
    return LoadConfig({.flags = std::move(flags),
                       .environment = [environment = std::move(environment)](const char* name) -> std::optional<std::string> {
                         const auto found = environment.find(name);
                         return found == environment.end() ? std::nullopt : std::optional(found->second);
                       },
                       .file = file_});
  }
  // Settings that have one error each.
  std::string ConsequenceOf(const std::string& section, Flags flags = {}, std::map<std::string, std::string> environment = {}) {
    const Config config = Load(section, std::move(flags), std::move(environment));
    EXPECT_THAT(config.errors, SizeIs(1)) << section;
    return config.errors.empty() ? "" : config.errors.front().consequence;
  }

  const TemporaryDirectory directory_;
  const std::string file_ = directory_ / "config.yaml";
};

TEST_F(Fallback, AWrongValueLeavesTheDefaultAndAllElse) {
  const Config config = Load("  push_interval_seconds: often\n  job_name: dlrm\n",
                             {{"--log-level", "wran"}, {"--label", "team=ads"}}, {{"REPLICA_INDEX", "two"}});
  ASSERT_THAT(config.errors, SizeIs(3));
  EXPECT_EQ(config.errors[0].Line(),
            file_ +
                ":2:26: push_interval_seconds: \"often\" is not a duration (10s, 1m30s, or seconds: 0.1 to "
                "86400); the default is used: 10");
  EXPECT_EQ(config.errors[1].consequence, "the default is used: 0");
  EXPECT_THAT(config.errors[2].Line(), HasSubstr("did you mean \"warn\"? the default is used: info"));
  EXPECT_EQ(config.options.push_interval, 10s);
  EXPECT_EQ(config.options.job_name, "dlrm");
  EXPECT_THAT(config.options.labels, SizeIs(1));
  EXPECT_TRUE(config.options.Pushes());
  EXPECT_FALSE(config.options.listen_address.empty());
}

TEST_F(Fallback, AWeakerSourceIsPreferredToTheDefault) {
  EXPECT_EQ(ConsequenceOf("  push_interval_seconds: 3\n", {{"--push-interval", "often"}}), "3 is used instead");
  EXPECT_EQ(Load("  push_interval_seconds: 3\n", {{"--push-interval", "often"}}).options.push_interval, 3s);
}

TEST_F(Fallback, WhatDecidesAboutTheGatewaySwitchesItOffAlone) {
  const char* const sections[] = {
      "  gateway_address: 'gw:0'\n",
      "  gateway_address: [gw]\n  gateway_adress: gw\n",
      "  gateway: gw\n",
      "  gateway_ca_file: [a]\n",
      "  gateway_pasword: hunter2\n",
      "  gateway_username: u\n",
      "  gateway_address: http://gw\n  gateway_ca_file: /ca.pem\n",
      "  gateway_address: gw\n  gateway_address: gw-2\n",
  };
  for (const char* section : sections) {
    const Config config = Load(section);
    ASSERT_THAT(config.errors, SizeIs(1)) << section;
    EXPECT_THAT(config.errors[0].consequence, HasSubstr("nothing is pushed to a gateway")) << section;
    EXPECT_EQ(config.errors[0].off, Output::kGateway) << section;
    EXPECT_FALSE(config.options.Pushes()) << section;
    EXPECT_EQ(config.options.listen_address, "127.0.0.1:19091") << section;
  }
}

TEST_F(Fallback, AStrongerSourceSettlesAboutAnOutput) {
  EXPECT_EQ(Load("  gateway_address: 'gw:0'\n", {{"--gateway", "gw:1"}}).options.gateway_address, "gw:1");
  EXPECT_EQ(ConsequenceOf("  gateway_address: 'gw:0'\n", {{"--gateway", "gw:1"}}), "gw:1 is used instead");
  EXPECT_FALSE(Load("  gateway_address: gw:1\n", {{"--gateway", "gw:0"}}).options.Pushes());
  EXPECT_FALSE(Load("  gateway_address: gw:1\n", {}, {{"PERSIA_METRICS_GATEWAY_ADDR", "gw:0"}}).options.Pushes());
  EXPECT_EQ(Load("  gateway_adress: gw\n", {{"--gateway", "gw:1"}}).options.gateway_address, "gw:1");
}

TEST_F(Fallback, AFileOfPasswordsThatCannotBeReadClosesThePages) {
  const std::string web = directory_ / "web.yaml";
  std::ofstream(web) << "basic_auth_users:\n  alice: secret\n";
  const Config config = Load("  web_config_file: " + web + "\n");
  EXPECT_THAT(config.errors, SizeIs(1));
  EXPECT_EQ(config.errors[0].consequence, "the pages are not served");
  EXPECT_EQ(config.options.listen_address, "");
  EXPECT_TRUE(config.options.Pushes());
  EXPECT_EQ(Load("  web_config_fiel: /web.yaml\n").options.listen_address, "");
}

TEST_F(Fallback, AnUnknownNameIsIgnored) {
  EXPECT_EQ(ConsequenceOf("  job_nam: dlrm\n"), "it is ignored");
  EXPECT_EQ(ConsequenceOf("  something: 1\n"), "it is ignored");
}

TEST_F(Fallback, OfAFileThatCannotBeParsedTheOutputsAreOffThatItMentions) {
  const Config plain = LoadText("PersiaMetricsConfig:\n\tjob_name: x\n");
  EXPECT_THAT(plain.errors, SizeIs(1));
  EXPECT_EQ(plain.errors[0].consequence, "its settings are not used");
  EXPECT_TRUE(plain.options.Pushes());
  EXPECT_FALSE(plain.options.listen_address.empty());
  const Config gateway = LoadText("PersiaMetricConfig:\n  gateway_address: gw\n");
  EXPECT_EQ(gateway.errors[0].consequence, "its settings are not used, and nothing is pushed to a gateway");
  EXPECT_FALSE(gateway.options.Pushes());
  EXPECT_FALSE(gateway.options.listen_address.empty());
  EXPECT_EQ(LoadText("PersiaMetricConfig:\n  gateway_address: gw\n", {{"--gateway", "gw:1"}}).options.gateway_address, "gw:1");
}

TEST_F(Fallback, AMissingFileMayHoldAnything) {
  const auto none = [](const char*) { return std::nullopt; };
  const Config config = LoadConfig({.flags = {}, .environment = none, .file = "/no/such/file"});
  EXPECT_FALSE(config.options.Pushes());
  EXPECT_EQ(config.options.listen_address, "");
  EXPECT_THAT(LoadConfig({.flags = {}, .environment = none, .file = ""}).ErrorTexts(),
              ElementsAre("--config: the value is missing"));
}

TEST_F(Fallback, AnEmptyFileHasNoSettings) {
  for (const char* text : {"", "# gateway_address: gw\n"}) {
    const Config config = LoadText(text);
    ASSERT_THAT(config.errors, SizeIs(1));
    EXPECT_EQ(config.errors[0].consequence, "it has no settings");
    EXPECT_TRUE(config.options.Pushes());
    EXPECT_FALSE(config.options.listen_address.empty());
  }
}

TEST_F(Fallback, AnErrorInATargetCostsTheTargetOrASetting) {
  const auto names = [](const Config& config) {
    std::vector<std::string> list;
    for (const RemoteWriteTarget& target : config.options.remote_write) list.push_back(target.name);
    return list;
  };
  const std::string good = "  remote_write:\n    - {url: http://good/w, name: good}\n";
  const char* const fatal[] = {
      "{url: h/w, name: bad}",
      "{url: http://h/w, name: bad, headers: {Content-Type: x}}",
      "{url: http://h/w, name: bad, pasword: hunter2}",
      "{url: http://h/w, name: bad, username: u}",
      "{url: http://h/w, name: bad, ca_file: /ca.pem}",
      "{url: http://h/w, name: good}",
      "{url: http://h/w, name: bad, write_relabel_configs: [{action: hashmod}]}",
  };
  for (const char* target : fatal) {
    const Config config = Load(good + "    - " + target + "\n");
    EXPECT_THAT(names(config), ElementsAre("good")) << target;
    ASSERT_FALSE(config.errors.empty()) << target;
    EXPECT_EQ(config.errors[0].consequence, "nothing is sent to this target") << target;
    EXPECT_TRUE(config.options.Pushes());
  }
  const Config mild = Load(good + "    - {url: http://h/w, name: mild, remote_timeout: soon, queue_max_bytes: 1}\n");
  EXPECT_THAT(names(mild), ElementsAre("good", "mild"));
  ASSERT_THAT(mild.errors, SizeIs(2));
  EXPECT_EQ(mild.errors[0].consequence, "its default is used");
  EXPECT_EQ(mild.options.remote_write[1].timeout, 30s);
  EXPECT_THAT(names(Load("", {{"--remote-write", "http://a/w"}, {"--remote-write", "b"}})), ElementsAre("a:80"));
}

TEST_F(Fallback, AWrongRuleCostsTheRule) {
  const std::string mapping = directory_ / "mapping.yaml";
  std::ofstream(mapping) << "mappings:\n- {match: a.*, name: a_$3}\n- {match: b, name: good}\n";
  const Config config = Load("  mapping_file: " + mapping + "\n");
  ASSERT_THAT(config.errors, SizeIs(1));
  EXPECT_THAT(config.errors[0].Line(), HasSubstr(mapping + ":2:22: name: \"a_$3\""));
  EXPECT_THAT(config.errors[0].Line(), HasSubstr("the rest of the file applies"));
  EXPECT_EQ(config.options.mapping->Expose({"", "b"})->name, "good");
  std::ofstream(mapping, std::ios::trunc).flush();
  const Config empty = Load("  mapping_file: " + mapping + "\n");
  ASSERT_THAT(empty.errors, SizeIs(1));
  EXPECT_EQ(empty.errors[0].consequence, "no rule applies");
  EXPECT_EQ(empty.options.mapping, nullptr);
}

TEST_F(Fallback, OnlyAReloadsErrorsAreNotLasting) {
  const Config config = Load("  max_series: many\n", {{"--max-series", "more"}}, {{"REPLICA_INDEX", "two"}});
  std::vector<bool> lasting;
  for (const ConfigError& error : config.errors) lasting.push_back(error.lasting);
  EXPECT_THAT(lasting, ElementsAre(false, true, true));
}

}  // namespace
}  // namespace persia::agent

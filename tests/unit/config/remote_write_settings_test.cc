// The targets of remote write, as settings.
#include "config/remote_write_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/settings.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

Config Load(const std::string& targets, std::vector<std::pair<std::string, std::string>> flags = {},
            std::map<std::string, std::string> environment = {}) {
  const TemporaryDirectory directory;
  const std::string file = directory / "targets.yaml";
  std::ofstream(file) << "PersiaMetricsConfig:\n  remote_write:\n" << targets;
  return LoadConfig({.flags = std::move(flags),
                     .environment = [&](const char* name) -> std::optional<std::string> {
                       const auto found = environment.find(name);
                       return found == environment.end() ? std::nullopt : std::optional(found->second);
                     },
                     .file = file});
}

std::string Told(const AgentOptions& options) {
  for (const Setting& setting : Settings()) {
    if (setting.key == "remote_write") return setting.get(options);
  }
  return "(no such setting)";
}

TEST(RemoteWriteSettings, EachKeyIsTaken) {
  const Config config = Load(R"(
    - url: https://db:8428/api/v1/write?extra_label=a=b
      name: victoria
      headers: {X-Scope-OrgID: team}
      ca_file: /ca.pem
      server_name: db.example.com
      username: u
      password: hunter2
      timeout_seconds: 5
      send_interval_seconds: 60
      queue_max_bytes: 1048576
      queue_max_age_seconds: 3600
      max_shards: 2
      max_samples_per_send: 500
      write_relabel_configs:
        - {source_labels: [__name__, job], separator: "@", regex: "a.*@b", action: drop}
        - {regex: feat, action: labeldrop}
        - {target_label: cluster, replacement: eu}
    - url: http://prometheus:9090/api/v1/write
)");
  ASSERT_THAT(config.ErrorTexts(), IsEmpty());
  const auto& targets = config.options.remote_write;
  ASSERT_THAT(targets, SizeIs(2));
  EXPECT_EQ(targets[0].url, "https://db:8428/api/v1/write?extra_label=a=b");
  EXPECT_EQ(targets[0].name, "victoria");
  EXPECT_THAT(targets[0].headers, ElementsAre(Pair("X-Scope-OrgID", "team")));
  EXPECT_EQ(targets[0].access.ca_file, "/ca.pem");
  EXPECT_EQ(targets[0].access.server_name, "db.example.com");
  EXPECT_EQ(targets[0].access.username, "u");
  EXPECT_EQ(targets[0].access.password, "hunter2");
  EXPECT_EQ(targets[0].timeout, std::chrono::seconds(5));
  EXPECT_EQ(targets[0].send_interval, std::chrono::minutes(1));
  EXPECT_EQ(targets[0].queue_max_bytes, 1U << 20);
  EXPECT_EQ(targets[0].queue_max_age, std::chrono::hours(1));
  EXPECT_EQ(targets[0].max_shards, 2U);
  EXPECT_EQ(targets[0].max_samples, 500U);
  const RelabelConfig drop{
      .action = RelabelAction::kDrop, .source_labels = {"__name__", "job"}, .separator = "@", .regex = "a.*@b"};
  const RelabelConfig label_drop{.action = RelabelAction::kLabelDrop, .regex = "feat"};
  const RelabelConfig replace{.target_label = "cluster", .replacement = "eu"};
  EXPECT_EQ(targets[0].relabel, (std::vector<RelabelConfig>{drop, label_drop, replace}));
  RemoteWriteTarget plain;
  plain.url = "http://prometheus:9090/api/v1/write";
  plain.name = "prometheus:9090";
  EXPECT_EQ(targets[1], plain) << "all else by default";
  EXPECT_THAT(Told(config.options), Not(HasSubstr("hunter2")));
  EXPECT_THAT(Told(config.options), HasSubstr("victoria at https://db:8428"));
}

TEST(RemoteWriteSettings, AnErrorNamesItsPlace) {
  struct {
    const char* targets;
    const char* error;
  } const cases[] = {
      {"    http://h/w\n", ":3:5: remote_write: expected a list (- url: http://...), found a value"},
      {"    - http://h/w\n", "remote_write: expected a map"},
      {"    - name: db\n", ":3:7: remote_write: a target needs a url"},
      {"    - url: h:1/w\n", "url: \"h:1/w\" is not a URL"},
      {"    - url: ftp://h/w\n", "unknown scheme \"ftp\""},
      {"    - url: http://u:hunter2@h/w\n", "a URL must not have a user and password"},
      {"    - {url: http://h/w, nmae: db}\n", "unknown key \"nmae\"; did you mean \"name\"?"},
      {"    - {url: http://h/w, max_shards: 0}\n", "\"0\" is not a number from 1 to 64"},
      {"    - {url: http://h/w, timeout_seconds: soon}\n", "\"soon\" is not a duration (10s, 1m30s, or seconds: 0.1 to 300)"},
      {"    - {url: http://h/w, queue_max_bytes: 1000}\n", "\"1000\" is out of range (bytes, 1048576 to"},
      {"    - {url: http://h/w, queue_max_age_seconds: 1}\n", "\"1\" is out of range (seconds, 60 to 2592000)"},
      {"    - {url: http://h/w, max_samples_per_send: 1}\n", "100 to 100000"},
      {"    - {url: http://h/w, headers: {Content-Type: x}}\n", "\"Content-Type\" is a header that the protocol"},
      {"    - {url: http://h/w, headers: {'a b': x}}\n", "\"a b\" is not a header's name"},
      {"    - {url: http://h/w, headers: {X-A: \"x\\ny\"}}\n", "\"X-A\" has a value that is empty or has control"},
      {"    - {url: http://h/w, username: u}\n", "remote_write \"h:80\": username is set, but neither password"},
      {"    - {url: http://h/w, ca_file: /f}\n", "url \"http://h/w\" is one without TLS"},
      {"    - {url: http://h/w, password: [hunter2]}\n", "password: expected a text, found a list"},
      {"    - url: http://h/w\n    - url: http://h/other\n", "two targets have this name"},
      {"    - {url: http://h/w, write_relabel_configs: {action: drop}}\n", "write_relabel_configs: expected a list"},
      {"    - {url: http://h/w, write_relabel_configs: [{action: hashmod}]}\n", "\"hashmod\" is not one of: replace, keep"},
      {"    - {url: http://h/w, write_relabel_configs: [{regex: x, action: drop}]}\n", "the actions keep and drop need some"},
      {"    - {url: http://h/w, write_relabel_configs: [{source_labels: [a], regex: '(', action: drop}]}\n", "regex: \"(\""},
      {"    - {url: http://h/w, write_relabel_configs: [{source_labels: a, action: drop}]}\n", "expected a list of labels"},
  };
  for (const auto& one : cases) {
    const std::vector<std::string> errors = Load(one.targets).ErrorTexts();
    EXPECT_THAT(errors, Contains(HasSubstr(one.error))) << one.targets;
    for (const std::string& error : errors) EXPECT_THAT(error, Not(HasSubstr("hunter2")));
  }
}

TEST(RemoteWriteSettings, FlagsAndEnvironmentReplaceTheList) {
  const std::string file = "    - url: http://file/w\n";
  const auto urls = [](const Config& config) {
    std::vector<std::string> list;
    for (const RemoteWriteTarget& target : config.options.remote_write) list.push_back(target.url);
    return list;
  };
  EXPECT_THAT(urls(Load(file)), ElementsAre("http://file/w"));
  EXPECT_THAT(urls(Load(file, {}, {{"PERSIA_METRICS_REMOTE_WRITE_URL", "http://env/w"}})), ElementsAre("http://env/w"));
  EXPECT_THAT(urls(Load(file, {{"--remote-write", "http://a/w"}, {"--remote-write", "http://b/w"}},
                        {{"PERSIA_METRICS_REMOTE_WRITE_URL", "http://env/w"}})),
              ElementsAre("http://a/w", "http://b/w"));
  EXPECT_THAT(Load(file, {{"--remote-write", "a"}}).ErrorTexts(), ElementsAre(HasSubstr("--remote-write: \"a\" is not a URL")));
  EXPECT_THAT(Load("").ErrorTexts(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent

// The targets of remote write, as settings.
#include "config/remote_write_settings.h"

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
using ::testing::StartsWith;

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

TEST(RemoteWriteSettings, AnEntryOfPrometheusIsTaken) {
  const Config config = Load(R"(
    - url: https://db:8428/api/v1/write?extra_label=a=b
      name: victoria
      remote_timeout: 1m30s
      headers: {X-Scope-OrgID: team}
      basic_auth: {username: u, password: hunter2}
      tls_config: {ca_file: /ca.pem, server_name: db.example.com, insecure_skip_verify: false, min_version: TLS12, max_version: TLS13}
      proxy_url: http://proxy.example:3128
      no_proxy: 10.0.0.0/8,.example.com
      follow_redirects: false
      enable_http2: false
      send_exemplars: false
      send_native_histograms: true
      protobuf_message: prometheus.WriteRequest
      queue_config:
        min_shards: 1
        max_samples_per_send: 500
        min_backoff: 30ms
        max_backoff: 10s
        sample_age_limit: 1h
        retry_on_http_429: true
      metadata_config: {send: true, send_interval: 2m, max_samples_per_send: 50}
      write_relabel_configs:
        - {source_labels: [__name__, job], separator: "@", regex: "a.*@b", action: Drop}
        - {regex: feat, action: labeldrop}
        - {target_label: cluster, replacement: eu}
        - {source_labels: [instance], target_label: instance, action: Uppercase}
      send_interval_seconds: 60
      queue_max_bytes: 1048576
    - url: http://prometheus:9090/api/v1/write
)");
  ASSERT_THAT(config.ErrorTexts(), IsEmpty());
  EXPECT_THAT(config.notes, IsEmpty());
  const auto& targets = config.options.remote_write;
  ASSERT_THAT(targets, SizeIs(2));
  RemoteWriteTarget full;
  full.url = "https://db:8428/api/v1/write?extra_label=a=b";
  full.name = "victoria";
  full.timeout = std::chrono::seconds(90);
  full.headers = {{"X-Scope-OrgID", "team"}};
  full.access.username = "u";
  full.access.password = "hunter2";
  full.access.ca_file = "/ca.pem";
  full.access.server_name = "db.example.com";
  full.access.min_version = TlsVersion::k12;
  full.access.max_version = TlsVersion::k13;
  full.proxy.url = "http://proxy.example:3128";
  full.proxy.no_proxy = "10.0.0.0/8,.example.com";
  full.follow_redirects = false;
  full.max_samples = 500;
  full.min_backoff = std::chrono::milliseconds(30);
  full.max_backoff = std::chrono::seconds(10);
  full.sample_age_limit = std::chrono::hours(1);
  full.metadata_interval = std::chrono::minutes(2);
  full.max_metadata = 50;
  full.relabel = {{.action = RelabelAction::kDrop, .source_labels = {"__name__", "job"}, .separator = "@", .regex = "a.*@b"},
                  {.action = RelabelAction::kLabelDrop, .regex = "feat"},
                  {.target_label = "cluster", .replacement = "eu"},
                  {.action = RelabelAction::kUppercase, .source_labels = {"instance"}, .target_label = "instance"}};
  full.send_native_histograms = true;
  full.send_interval = std::chrono::minutes(1);
  full.queue_max_bytes = 1U << 20;
  EXPECT_EQ(targets[0], full);
  RemoteWriteTarget plain;
  plain.url = "http://prometheus:9090/api/v1/write";
  plain.name = "prometheus:9090";
  EXPECT_EQ(targets[1], plain) << "all else by default";
  EXPECT_THAT(Told(config.options), Not(HasSubstr("hunter2")));
  EXPECT_THAT(Told(config.options), HasSubstr("victoria at https://db:8428"));
}

std::vector<std::string> Names(const Config& config) {
  std::vector<std::string> names;
  for (const RemoteWriteTarget& target : config.options.remote_write) names.push_back(target.name);
  return names;
}

RemoteWriteTarget One(const std::string& keys) {
  const Config config = Load("    - {url: 'https://h/w', " + keys + "}\n");
  EXPECT_THAT(config.ErrorTexts(), IsEmpty()) << keys;
  EXPECT_THAT(config.notes, IsEmpty()) << keys;
  EXPECT_THAT(config.options.remote_write, SizeIs(1)) << keys;
  return config.options.remote_write.empty() ? RemoteWriteTarget() : config.options.remote_write.front();
}

TEST(RemoteWriteSettings, EachFormOfAccessIsTaken) {
  EXPECT_EQ(One("authorization: {credentials: t}").access.bearer_token, "t");
  EXPECT_EQ(One("authorization: {credentials: t}").access.token_type, "Bearer");
  EXPECT_EQ(One("authorization: {type: Token, credentials_file: /t}").access.bearer_token_file, "/t");
  EXPECT_EQ(One("authorization: {type: Token, credentials_file: /t}").access.token_type, "Token");
  EXPECT_EQ(One("bearer_token_file: /t").access.bearer_token_file, "/t");
  EXPECT_EQ(One("basic_auth: {username_file: /u, password_file: /p}").access.username_file, "/u");
  EXPECT_EQ(One("basic_auth: {username: token}").access.username, "token") << "Prometheus needs no password";
  EXPECT_TRUE(One("tls_config: {insecure_skip_verify: true}").access.insecure_skip_verify);
  const GatewayAccessOptions inlined =
      One("tls_config: {ca: '-----BEGIN X', cert: '-----BEGIN Y', key: '-----BEGIN Z'}").access;
  EXPECT_EQ(inlined.ca + inlined.cert + inlined.key, "-----BEGIN X-----BEGIN Y-----BEGIN Z");
  EXPECT_TRUE(One("proxy_from_environment: true").proxy.from_environment);
  EXPECT_EQ(One("proxy_url: 'socks5://u:p@[::1]:1080/'").proxy.url, "socks5://u:p@[::1]:1080/");
  EXPECT_EQ(One("queue_config: {sample_age_limit: 0s}").sample_age_limit.count(), 0);
  EXPECT_FALSE(One("metadata_config: {send: false}").sends_metadata);
  EXPECT_EQ(One("write_relabel_configs: , queue_config: , tls_config: , headers: ").max_samples, 10'000U) << "commented out";
}

// The usual setup of two tenants. A name keeps its queue, whatever the order of the targets.
TEST(RemoteWriteSettings, TargetsOnOneHostHaveDifferentNames) {
  const std::string a = "    - {url: http://h/w, headers: {X-Scope-OrgID: a}}\n";
  const std::string b = "    - {url: http://h/w, headers: {X-Scope-OrgID: b}}\n";
  const Config config = Load(a + b + "    - url: http://other/w\n");
  EXPECT_THAT(config.ErrorTexts(), IsEmpty());
  const std::vector<std::string> names = Names(config);
  ASSERT_THAT(names, ElementsAre(StartsWith("h:80-"), StartsWith("h:80-"), "other:80"));
  EXPECT_NE(names[0], names[1]);
  EXPECT_THAT(Names(Load(b + a)), ElementsAre(names[1], names[0]));
  EXPECT_THAT(Names(Load(a)), ElementsAre("h:80"));
  EXPECT_THAT(names[0], "h:80-5a45d9cb") << "the same in each release: it names the queue";
}

TEST(RemoteWriteSettings, WhatPrometheusReadsIsRead) {
  EXPECT_TRUE(One("proxy_from_environment: True").proxy.from_environment);
  EXPECT_TRUE(One("proxy_from_environment: ON").proxy.from_environment);
  EXPECT_FALSE(One("follow_redirects: No").follow_redirects);
  EXPECT_EQ(One("proxy_url: 'proxy:3128'").proxy.url, "proxy:3128");
  EXPECT_EQ(One("proxy_url: 'http://u:p@proxy:3128/path'").proxy.url, "http://u:p@proxy:3128/path");
  EXPECT_EQ(One("proxy_url: 'socks5h://proxy'").proxy.url, "socks5h://proxy");
  EXPECT_EQ(One("proxy_url: ''").proxy.url, "");
  EXPECT_EQ(One("remote_timeout: 2d").timeout, std::chrono::hours(48));
  const RemoteWriteTarget slow = One("queue_config: {min_backoff: 30s}");
  EXPECT_EQ(slow.min_backoff, std::chrono::seconds(30));
  EXPECT_EQ(slow.max_backoff, std::chrono::seconds(30));
  EXPECT_EQ(One("queue_config: {max_backoff: 10ms}").min_backoff, std::chrono::milliseconds(10));
  EXPECT_EQ(One("name: ''").name, "h:443");
  EXPECT_EQ(One("oauth2: ").name, "h:443") << "commented out";
  const RemoteWriteTarget relabelled =
      One("write_relabel_configs: [{source_labels: , regex: , replacement: , target_label: a}]");
  ASSERT_THAT(relabelled.relabel, SizeIs(1));
  EXPECT_EQ(relabelled.relabel[0], (RelabelConfig{.target_label = "a"}));
}

// As in Prometheus: the file of settings may be started from anywhere.
TEST(RemoteWriteSettings, RelativeFilesAreBesideTheFileThatNamesThem) {
  const TemporaryDirectory directory;
  const std::string file = directory / "targets.yaml";
  std::ofstream(file)
      << "PersiaMetricsConfig:\n  remote_write:\n"
         "    - {url: 'https://h/w', basic_auth: {username: u, password_file: secrets/p}, tls_config: {ca_file: /ca}}\n";
  const Config config = LoadConfig({.flags = {}, .environment = [](const char*) { return std::nullopt; }, .file = file});
  ASSERT_THAT(config.options.remote_write, SizeIs(1));
  EXPECT_EQ(config.options.remote_write[0].access.password_file, directory / "secrets/p");
  EXPECT_EQ(config.options.remote_write[0].access.ca_file, "/ca");
}

TEST(RemoteWriteSettings, AKeyWithoutEffectIsANote) {
  struct {
    const char* keys;
    const char* note;
  } const cases[] = {
      {"queue_config: {capacity: 10000}",
       ":3:42: queue_config: capacity: has no effect: samples wait on disk; their limit is queue_max_bytes"},
      {"queue_config: {max_shards: 200}",
       "max_shards: has no effect: one request at a time is sent; raise max_samples_per_send"},
      {"queue_config: {min_shards: 2}", "min_shards: has no effect: one request at a time is sent; raise max_samples_per_send"},
      {"queue_config: {batch_send_deadline: 5s}", "batch_send_deadline: has no effect: each collection is sent at once"},
      {"queue_config: {retry_on_http_429: false}", "retry_on_http_429: has no effect"},
      {"send_exemplars: true", "send_exemplars: has no effect"},
      {"enable_http2: true", "enable_http2: has no effect: requests are HTTP/1.1"},
      {"round_robin_dns: true", "round_robin_dns: has no effect"},
      {"tls_config: {ca_file: /f}", "tls_config: has no effect: url is one without TLS"},
      {"basic_auth: {}", "basic_auth: has no effect: username or username_file is missing"},
      {"authorization: {}", "authorization: has no effect: credentials or credentials_file is missing"},
      {"authorization: {type: Bearer}", "authorization: has no effect: credentials or credentials_file is missing"},
  };
  for (const auto& one : cases) {
    const Config config = Load("    - {url: 'http://h/w', " + std::string(one.keys) + "}\n");
    EXPECT_THAT(config.ErrorTexts(), IsEmpty()) << one.keys;
    EXPECT_THAT(config.options.remote_write, SizeIs(1)) << one.keys;
    EXPECT_THAT(config.notes, ElementsAre(HasSubstr(one.note)));
  }
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
      {"    - url: ftp://h/w\n", "the scheme is unknown (http, https)"},
      {"    - url: http://u:hunter2@h/w\n", "a URL must not have a user and password"},
      {"    - {url: http://h/w, nmae: db}\n", "unknown key \"nmae\"; did you mean \"name\"?"},
      {"    - {url: http://h/w, queue_config: {max_backof: 2s}}\n",
       "queue_config: unknown key \"max_backof\"; did you mean \"max_backoff\"?"},
      {"    - {url: http://h/w, queue_config: {max_backoff: 0s}}\n",
       ":3:53: queue_config: max_backoff: \"0s\" is out of range"},
      {"    - {url: http://h/w, queue_config: {min_backoff: 3s, max_backoff: 2s}}\n", "min_backoff is above max_backoff"},
      {"    - {url: http://h/w, queue_config: {sample_age_limit: 1s}}\n", "\"1s\" is out of range (0s, or 60 s to 2592000 s)"},
      {"    - {url: http://h/w, queue_config: {max_samples_per_send: 0}}\n", "1 to 100000"},
      {"    - {url: http://h/w, basic_auth: {username: u, password: }}\n", "password: the value is missing"},
      {"    - {url: http://h/w, queue_config: [1]}\n", "queue_config: expected a map (max_backoff: 5s ...), found a list"},
      {"    - {url: http://h/w, remote_timeout: soon}\n", "\"soon\" is not a duration (30s, 1m30s, 1d12h)"},
      {"    - {url: http://h/w, remote_timeout: 30}\n", "\"30\" is not a duration"},
      {"    - {url: http://h/w, metadata_config: {send: maybe}}\n", "metadata_config: send: \"maybe\""},
      {"    - {url: http://h/w, queue_max_bytes: 1000}\n", "\"1000\" is out of range (bytes, 1048576 to"},
      {"    - {url: http://h/w, protobuf_message: io.prometheus.write.v2.Request}\n", "leave protobuf_message out"},
      {"    - {url: http://h/w, headers: {Content-Type: x}}\n", "\"Content-Type\" is a header that the protocol"},
      {"    - {url: http://h/w, headers: {Authorization: hunter2}}\n",
       "\"Authorization\" is set by basic_auth or authorization"},
      {"    - {url: http://h/w, headers: {'a b': x}}\n", "\"a b\" is not a header's name"},
      {"    - {url: http://h/w, headers: {X-A: \"x\\ny\"}}\n", "\"X-A\" has a value that is empty or has control"},
      {"    - {url: \"http://u:hunter2@h/w\\n\"}\n", "url: \"***\" has a control character in it"},
      {"    - {url: \"http://h/w?token=hunter2\\r\"}\n", "url: \"***\" has a control character in it"},
      {"    - {url: \"http://u:hunter2@h/w\xff\"}\n", "not valid"},
      {"    - {url: http://h/w, authorization: {type: 'Bearer hunter2'}}\n",
       "authorization: type: is not a type of authorization"},
      {"    - {url: http://h/w, basic_auth: {password: hunter2}}\n", ":3:25: basic_auth: username or username_file is missing"},
      {"    - {url: http://h/w, basic_auth: {username: u, password: hunter2, password_file: /p}}\n",
       "basic_auth: password and password_file are both set; leave one out"},
      {"    - {url: http://h/w, basic_auth: {username: u, password: [hunter2]}}\n", "password: expected a text, found a list"},
      {"    - {url: http://h/w, basic_auth: {username: u}, authorization: {credentials: hunter2}}\n",
       "basic_auth and authorization are both set"},
      {"    - {url: http://h/w, authorization: {type: Basic, credentials: hunter2}}\n", "has its own section: basic_auth"},
      {"    - {url: https://h/w, tls_config: {cert_file: /c}}\n", "tls_config: key or key_file is missing"},
      {"    - {url: https://h/w, tls_config: {key: hunter2}}\n", "tls_config: key: is not in PEM form"},
      {"    - {url: https://h/w, tls_config: {min_version: TLS13, max_version: TLS12}}\n", "min_version is above max_version"},
      {"    - {url: https://h/w, tls_config: {min_version: SSL3}}\n", "\"SSL3\" is not one of: TLS10, TLS11"},
      {"    - {url: http://h/w, proxy_url: 'u:hunter2@proxy:x'}\n", "proxy_url: the port is not a number from 1 to 65535"},
      {"    - {url: http://h/w, proxy_url: 'ftp://u:hunter2@proxy:1'}\n",
       "proxy_url: the scheme is unknown (http, https, socks5, socks5h); expected http://host:port"},
      {"    - {url: http://h/w, proxy_url: 'http://proxy/?hunter2'}\n", "a proxy's URL has no query and no fragment"},
      {"    - {url: http://h/w, no_proxy: a}\n", "no_proxy is set, but proxy_url is not"},
      {"    - {url: http://h/w, proxy_url: 'http://p', proxy_from_environment: true}\n", "are both set; leave one out"},
      {"    - {url: http://h/w, sigv4: {secret_key: hunter2}}\n",
       "sigv4: the agent does not sign requests; set url to a proxy"},
      {"    - {url: http://h/w, oauth2: {client_secret: hunter2}}\n", "oauth2: the agent fetches no tokens"},
      {"    - {url: http://h/w, azuread: {cloud: x}}\n", "azuread: the agent fetches no tokens"},
      {"    - {url: http://h/w, username: u}\n", "username: belongs into basic_auth"},
      {"    - {url: http://h/w, ca_file: /f}\n", "ca_file: belongs into tls_config"},
      {"    - {url: http://h/w, max_samples_per_send: 3}\n", "max_samples_per_send: belongs into queue_config"},
      {"    - url: http://h/w\n    - url: http://h/w\n", ":4:7: remote_write: an earlier target has the name \"h:80-"},
      {"    - {url: http://h/w, name: db}\n    - {url: http://i/w, name: db}\n",
       ":4:7: remote_write: an earlier target has the name \"db\"; give this one another name"},
      {"    - {url: http://h/w, write_relabel_configs: {action: drop}}\n", "write_relabel_configs: expected a list"},
      {"    - {url: http://h/w, write_relabel_configs: [{source_labels: [a], modulus: 8, target_label: b, action: hashmod}]}\n",
       "action: \"hashmod\" is not one of: replace, keep, drop, labelmap, labeldrop, labelkeep, lowercase, uppercase"},
      {"    - {url: http://h/w, write_relabel_configs: [{source_labels: [a], regex: '(', action: drop}]}\n", "regex: \"(\""},
      {"    - {url: http://h/w, write_relabel_configs: [{source_labels: a, action: drop}]}\n", "expected a list of labels"},
  };
  for (const auto& one : cases) {
    const std::vector<std::string> errors = Load(one.targets).ErrorTexts();
    EXPECT_THAT(errors, Contains(HasSubstr(one.error))) << one.targets;
    for (const std::string& error : errors) EXPECT_THAT(error, Not(HasSubstr("hunter2")));
  }
}

// Not also of the fields that are judged by it.
TEST(RemoteWriteSettings, AWrongActionIsOneError) {
  const auto errors = [](const std::string& rule) {
    return Load("    - {url: http://h/w, write_relabel_configs: [" + rule + "]}\n").ErrorTexts();
  };
  EXPECT_THAT(errors("{action: Hash}"), ElementsAre(HasSubstr("action: \"Hash\" is not one of: replace, keep")));
  EXPECT_THAT(errors("{action: hashmod, source_labels: [a], target_label: b, modulus: 8}"),
              ElementsAre(HasSubstr("action: \"hashmod\" is not one of: replace, keep")));
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
  const Config two = Load("", {{"--remote-write", "http://a/w"}, {"--remote-write", "http://a/v"}});
  EXPECT_THAT(two.ErrorTexts(), IsEmpty());
  EXPECT_THAT(Names(two), ElementsAre(StartsWith("a:80-"), StartsWith("a:80-")));
  EXPECT_THAT(Load("", {{"--remote-write", "http://a/w"}, {"--remote-write", "http://a/w"}}).ErrorTexts(),
              ElementsAre(StartsWith("remote_write: an earlier target has the name \"a:80-")));
  EXPECT_THAT(Load("").ErrorTexts(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent

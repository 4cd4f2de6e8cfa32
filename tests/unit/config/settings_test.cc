// Every setting, in a table that is written by hand: its names, its default, the values that it takes and refuses. The test
// takes nothing of it from the agent's own table, so that an error there fails.
//
// A new setting needs a row here: EverySetting.HasARow says which is missing.
#include "config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/config.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

// A value of the options as text, independent of the agent's own printing.
std::string Shown(const std::string& value) { return value; }
std::string Shown(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += value + ";";
  return text;
}
std::string Shown(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += name + "=" + value + ";";
  return text;
}
std::string Shown(const std::vector<RemoteWriteTarget>& targets) {
  std::string text;
  for (const RemoteWriteTarget& target : targets) text += target.name + " at " + target.url + ";";
  return text;
}
std::string Shown(milliseconds value) { return std::to_string(value.count()) + " ms"; }
std::string Shown(const std::optional<milliseconds>& value) { return value ? Shown(*value) : "none"; }
template <class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) std::string Shown(T value) {
  return std::to_string(static_cast<uint64_t>(value));
}

// `yaml` is for values that the file has in another form than flags and variables have.
struct Accepted {
  std::string text;
  std::string shown;
  std::string yaml{};
};
struct Refused {
  std::string text;
  std::string yaml{};
};

struct Row {
  std::string key{};
  std::string alias{};
  std::string flag{};
  std::string environment{};
  std::vector<std::string> other_environment{};  // the strongest first
  std::string default_text{};                    // as documented
  std::string default_value{};
  std::string documented{};  // of its allowed values, in config/README.md
  // At least two, so that one can override the other. Of a number, both bounds.
  std::vector<Accepted> good{};
  // Of a number, one below and one above the bounds.
  std::vector<Refused> bad{};
  std::string allowed{};       // in the error of each bad value
  bool quotes = true;          // the error quotes the value; false: it must not
  std::string also{};          // other settings without which this one is an error
  std::string switches_off{};  // by an error in it
  std::string (*read)(const AgentOptions& options) = nullptr;

  [[nodiscard]] const std::string& name() const { return key.empty() ? flag : key; }
};

// As an error quotes it: a long text is cut.
std::string QuotedInErrors(const std::string& text) {
  constexpr size_t kMost = 80;
  return text.size() > kMost ? '"' + text.substr(0, kMost) + "...\"" : '"' + text + '"';
}

#define PERSIA_READ(member) [](const AgentOptions& o) { return Shown(o.member); }

// Written in YAML as an error quotes it.
const Refused kControl = {"a\tb", R"("a\tb")"};
const std::string kHasControl = "has a control character in it";
const std::string kWords = "is not one of: ";
const std::string kBooleans = kWords + "true, false, 1, 0, yes, no, on, off";

Row OfFile(Row row) {
  row.default_text = "none";
  row.documented = row.documented.empty() ? "A file" : row.documented;
  row.good = {
      {"/etc/a b.pem", "/etc/a b.pem"}, {"relative.pem", "relative.pem"}, {std::string(4096, 'f'), std::string(4096, 'f')}};
  row.bad = {kControl, {std::string(4097, 'f')}};
  return row;
}

Row OfSwitch(Row row) {
  const bool is_on = row.default_text == "true";
  row.default_value = is_on ? "1" : "0";
  row.documented = "`true`, `false`";
  row.good = {{"false", "0"}, {"true", "1"}, {"Yes", "1"}, {"off", "0"}};
  row.bad = {{"maybe"}, {"2"}};
  row.allowed = kBooleans;
  return row;
}

// clang-format off
const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
    OfSwitch({.key = "enable_metrics", .flag = "--enable-metrics", .environment = "PERSIA_METRICS_ENABLED", .default_text = "true",
     .read = PERSIA_READ(enable_metrics)}),
    {.key = "job_name", .flag = "--job", .environment = "PERSIA_JOB_NAME", .default_text = "default", .default_value = "default (not set)",
     .good = {{"dlrm v1.0", "dlrm v1.0"}, {"1.10", "1.10"}, {std::string(255, 'j'), std::string(255, 'j')}, {"日本", "日本"}},
     .bad = {{std::string(256, 'j')}, {std::string(86, '/')}}, .allowed = "is too long for a job's name (255 bytes", 
     .read = [](const AgentOptions& o) { return o.job_name + (o.has_job_name ? "" : " (not set)"); }},
    {.key = "push_interval_seconds", .alias = "push_interval_sec", .flag = "--push-interval", .environment = "PERSIA_METRICS_PUSH_INTERVAL",
     .default_text = "10", .default_value = "10000 ms", .documented = "0.1 to 86400 s",
     .good = {{"0.1", "100 ms"}, {"86400", "86400000 ms"}, {"1m30s", "90000 ms"}, {"24h", "86400000 ms"}},
     .bad = {{"0.099"}, {"86400.001"}, {"0"}, {"-1"}, {"10x"}}, .allowed = "0.1 to 86400)", .read = PERSIA_READ(push_interval)},
    {.key = "gateway_address", .flag = "--gateway", .environment = "PERSIA_METRICS_GATEWAY_ADDR", .default_text = "metrics_gateway:9091",
     .default_value = "metrics_gateway:9091 (not set)", .documented = "`host:port`, a URL, or `off`",
     .good = {{"gw:1", "gw:1"}, {"https://gw.example:443/push", "https://gw.example:443/push"}, {"gw-1:65535", "gw-1:65535"}, {"off", "off"}},
     .bad = {{"gw:0"}, {"gw:65536"}}, .allowed = "the port is not a number from 1 to 65535", .switches_off = "gateway_address",
     .read = [](const AgentOptions& o) { return o.gateway_address + (o.has_gateway_address || !o.Pushes() ? "" : " (not set)"); }},
    {.key = "push_timeout_seconds", .flag = "--push-timeout", .default_text = "10", .default_value = "10000 ms", .documented = "0.1 to 300 s",
     .good = {{"100ms", "100 ms"}, {"5m", "300000 ms"}}, .bad = {{"99ms"}, {"5m1ms"}, {"-1"}}, .allowed = "0.1 to 300)",
     .read = PERSIA_READ(push_timeout)},
    {.key = "finish_timeout_seconds", .flag = "--finish-timeout", .environment = "PERSIA_METRICS_FINISH_TIMEOUT",
     .default_text = "push_timeout_seconds + 1", .default_value = "none", .documented = "0 to 3600 s",
     .good = {{"0", "0 ms"}, {"3600", "3600000 ms"}}, .bad = {{"-0.001"}, {"3600.001"}}, .allowed = "0 to 3600)", .read = PERSIA_READ(finish_timeout)},
    {.key = "linger_seconds", .flag = "--linger", .environment = "PERSIA_METRICS_LINGER", .default_text = "0", .default_value = "0 ms",
     .documented = "0 to 86400 s", .good = {{"86400", "86400000 ms"}, {"0", "0 ms"}}, .bad = {{"-1"}, {"86401"}}, .allowed = "0 to 86400)",
     .read = PERSIA_READ(linger)},
    {.key = "push_format", .flag = "--push-format", .default_text = "auto", .default_value = Shown(PushFormat::Choice::kAuto),
     .documented = "`text`, `protobuf`",
     .good = {{"text", Shown(PushFormat::Choice::kText)}, {"protobuf", Shown(PushFormat::Choice::kProtobuf)},
              {"auto", Shown(PushFormat::Choice::kAuto)}},
     .bad = {{"Text"}, {"json"}}, .allowed = kWords + "auto, text, protobuf", .read = PERSIA_READ(push_format)},
    OfFile({.key = "gateway_ca_file", .flag = "--gateway-ca-file", .environment = "PERSIA_METRICS_GATEWAY_CA_FILE",
     .also = "gateway_address: https://gw", .switches_off = "gateway_address", .read = PERSIA_READ(gateway_access.ca_file)}),
    OfFile({.key = "gateway_cert_file", .flag = "--gateway-cert-file", .environment = "PERSIA_METRICS_GATEWAY_CERT_FILE",
     .also = "gateway_address: https://gw\n  gateway_key_file: /k", .switches_off = "gateway_address",
     .read = PERSIA_READ(gateway_access.cert_file)}),
    OfFile({.key = "gateway_key_file", .flag = "--gateway-key-file", .environment = "PERSIA_METRICS_GATEWAY_KEY_FILE",
     .also = "gateway_address: https://gw\n  gateway_cert_file: /c", .switches_off = "gateway_address",
     .read = PERSIA_READ(gateway_access.key_file)}),
    {.key = "gateway_server_name", .flag = "--gateway-server-name", .environment = "PERSIA_METRICS_GATEWAY_SERVER_NAME", .default_text = "none",
     .good = {{"gw.example", "gw.example"}, {"10.0.0.7", "10.0.0.7"}, {std::string(253, 's'), std::string(253, 's')}},
     .bad = {{std::string(254, 's')}, {"gw:1"}, {"*", "\"*\""}}, .allowed = "is not a host name or an IPv4 address", .also = "gateway_address: https://gw",
     .switches_off = "gateway_address", .read = PERSIA_READ(gateway_access.server_name)},
    {.key = "gateway_username", .flag = "--gateway-username", .environment = "PERSIA_METRICS_GATEWAY_USERNAME", .default_text = "none",
     .documented = "No colon", .good = {{"trainer", "trainer"}, {"a b", "a b"}}, .bad = {{"u:hunter2"}}, .allowed = "has a colon", .quotes = false,
     .also = "gateway_password_file: /p", .switches_off = "gateway_address", .read = PERSIA_READ(gateway_access.username)},
    {.key = "gateway_password", .environment = "PERSIA_METRICS_GATEWAY_PASSWORD", .default_text = "none",
     .good = {{"hunter2", "hunter2"}, {std::string(16384, 's'), std::string(16384, 's')}}, .bad = {{std::string(16385, 's')}, kControl},
     .allowed = "is empty, longer than 16384 bytes or has control characters", .quotes = false, .also = "gateway_username: u",
     .switches_off = "gateway_address", .read = PERSIA_READ(gateway_access.password)},
    OfFile({.key = "gateway_password_file", .flag = "--gateway-password-file", .environment = "PERSIA_METRICS_GATEWAY_PASSWORD_FILE",
     .documented = "File with that password", .also = "gateway_username: u", .switches_off = "gateway_address",
     .read = PERSIA_READ(gateway_access.password_file)}),
    {.key = "gateway_bearer_token", .environment = "PERSIA_METRICS_GATEWAY_BEARER_TOKEN", .default_text = "none",
     .good = {{"token", "token"}, {std::string(16384, 's'), std::string(16384, 's')}}, .bad = {{std::string(16385, 's')}, kControl},
     .allowed = "is empty, longer than 16384 bytes or has control characters", .quotes = false, .switches_off = "gateway_address",
     .read = PERSIA_READ(gateway_access.bearer_token)},
    OfFile({.key = "gateway_bearer_token_file", .flag = "--gateway-bearer-token-file",
     .environment = "PERSIA_METRICS_GATEWAY_BEARER_TOKEN_FILE", .documented = "File with that token",
     .switches_off = "gateway_address", .read = PERSIA_READ(gateway_access.bearer_token_file)}),
    {.key = "gateway_proxy_url", .flag = "--gateway-proxy-url", .environment = "PERSIA_METRICS_GATEWAY_PROXY_URL", .default_text = "none",
     .documented = "without a scheme http", .good = {{"http://proxy:3128", "http://proxy:3128"}, {"socks5://u:hunter2@[::1]:1080", "socks5://u:hunter2@[::1]:1080"},
     {"proxy:3128", "proxy:3128"}}, .bad = {{"ftp://u:hunter2@proxy"}, {"http://proxy:0"}}, .allowed = "expected http://host:port, https://host:port or socks5://host:port",
     .quotes = false, .switches_off = "gateway_address", .read = PERSIA_READ(gateway_proxy.url)},
    OfSwitch({.key = "gateway_proxy_from_environment", .flag = "--gateway-proxy-from-environment",
     .environment = "PERSIA_METRICS_GATEWAY_PROXY_FROM_ENVIRONMENT", .default_text = "false", .switches_off = "gateway_address",
     .read = PERSIA_READ(gateway_proxy.from_environment)}),
    {.key = "remote_write", .flag = "--remote-write", .environment = "PERSIA_METRICS_REMOTE_WRITE_URL", .default_text = "none",
     .good = {{"http://a:1/w", "a:1 at http://a:1/w;", "[{url: 'http://a:1/w'}]"}, {"https://b/w", "b:443 at https://b/w;", "[{url: 'https://b/w'}]"}},
     .bad = {{"ftp://a/w", "[{url: 'ftp://a/w'}]"}}, .allowed = "http", .read = PERSIA_READ(remote_write)},
    {.key = "metrics_dir", .flag = "--metrics-dir", .environment = "PERSIA_METRICS_DIR", .default_text = "/dev/shm/persia-metrics-<uid>/<job>",
     .documented = "An absolute path", .good = {{"/m", "/m"}, {"/", "/"}}, .bad = {{"here"}, {"./m"}}, .allowed = "is not an absolute path",
     .read = PERSIA_READ(metrics_dir)},
    {.key = "metrics_dir_group", .flag = "--metrics-dir-group", .environment = "PERSIA_METRICS_DIR_GROUP", .default_text = "none", .good = {{"staff", "staff"}, {"50", "50"}},
     .bad = {kControl}, .allowed = kHasControl, .read = PERSIA_READ(metrics_dir_group)},
    {.key = "max_segment_bytes", .flag = "--max-segment-bytes", .default_text = "1073741824", .default_value = "1073741824",
     .documented = "65536 to 2^40 bytes", .good = {{"65536", "65536"}, {"1099511627776", "1099511627776"}, {"64MiB", "67108864"}},
     .bad = {{"65535"}, {"1099511627777"}, {"-65536"}}, .allowed = "65536 to 1099511627776)", .read = PERSIA_READ(max_segment_bytes)},
    {.key = "state_dir", .flag = "--state-dir", .environment = "PERSIA_METRICS_STATE_DIR", .default_text = "beside the segments",
     .documented = "An absolute path", .good = {{"/s", "/s"}, {"/var/lib/a b", "/var/lib/a b"}}, .bad = {{"s"}, {"~/s"}},
     .allowed = "is not an absolute path", .read = PERSIA_READ(state_dir)},
    {.key = "gauge_ttl_seconds", .flag = "--gauge-ttl", .default_text = "300", .default_value = "300000 ms", .documented = "0 to 31536000 s",
     .good = {{"0", "0 ms"}, {"31536000", "31536000000 ms"}}, .bad = {{"-1"}, {"31536001"}}, .allowed = "0 to 31536000)",
     .read = PERSIA_READ(gauge_ttl)},
    {.key = "hang_after_seconds", .flag = "--hang-after", .default_text = "by the job's rhythm", .default_value = "none",
     .documented = "0 (never) to 86400 s", .good = {{"0", "0 ms"}, {"86400", "86400000 ms"}}, .bad = {{"-1"}, {"86401"}}, .allowed = "0 to 86400)",
     .read = PERSIA_READ(hang_after)},
    OfSwitch({.key = "machine_metrics", .flag = "--machine-metrics", .environment = "PERSIA_METRICS_MACHINE", .default_text = "true",
     .read = PERSIA_READ(machine_metrics)}),
    {.key = "max_series", .flag = "--max-series", .default_text = "200000", .default_value = "200000", .documented = "1 to 10^8",
     .good = {{"1", "1"}, {"100000000", "100000000"}}, .bad = {{"0"}, {"100000001"}, {"1.5"}}, .allowed = "is not a number from 1 to 100000000",
     .read = PERSIA_READ(max_series)},
    {.key = "max_series_per_instance", .flag = "--max-series-per-instance", .default_text = "50000", .default_value = "50000",
     .documented = "1 to 10^8", .good = {{"1", "1"}, {"100000000", "100000000"}}, .bad = {{"0"}, {"100000001"}, {"many"}},
     .allowed = "is not a number from 1 to 100000000", .read = PERSIA_READ(max_series_per_instance)},
    {.key = "max_foreign_bytes", .flag = "--max-foreign-bytes", .default_text = "268435456", .default_value = "268435456",
     .documented = "2^25 to 2^40 bytes", .good = {{"33554432", "33554432"}, {"1099511627776", "1099511627776"}, {"1G", "1000000000"}},
     .bad = {{"33554431"}, {"1099511627777"}}, .allowed = "33554432 to 1099511627776)", .read = PERSIA_READ(max_foreign_bytes)},
    {.key = "listen_address", .flag = "--listen", .environment = "PERSIA_METRICS_LISTEN_ADDR", .default_text = "127.0.0.1:19091",
     .default_value = "127.0.0.1:19091 (default)", .documented = "`:port` for all IPv4 addresses, port 0 for any free port, `off`",
     .good = {{"0.0.0.0:9000", "0.0.0.0:9000"}, {":65535", ":65535", "':65535'"}, {"127.0.0.1:0", "127.0.0.1:0"}, {"off", ""}},
     .bad = {{"127.0.0.1"}, {"127.0.0.1:65536"}, {"example.com:80"}}, .allowed = "off: no pages",
     .read = [](const AgentOptions& o) { return o.listen_address + (o.listen_address_is_default ? " (default)" : ""); }},
    OfSwitch({.key = "enable_lifecycle", .flag = "--web.enable-lifecycle", .default_text = "false", .read = PERSIA_READ(enable_lifecycle)}),
    {.key = "history_seconds", .flag = "--history", .default_text = "1800", .default_value = "1800000 ms",
     .documented = "0 (not at all) to 604800 s", .good = {{"0", "0 ms"}, {"604800", "604800000 ms"}}, .bad = {{"-1"}, {"604801"}},
     .allowed = "0 to 604800)", .read = PERSIA_READ(history)},
    {.key = "history_max_bytes", .flag = "--history-max-bytes", .default_text = "67108864", .default_value = "67108864",
     .documented = "2^20 to 2^36 bytes", .good = {{"1048576", "1048576"}, {"68719476736", "68719476736"}, {"2000k", "2000000"}},
     .bad = {{"1048575"}, {"68719476737"}}, .allowed = "1048576 to 68719476736)", .read = PERSIA_READ(history_max_bytes)},
    [] {
      Row row = OfFile({.key = "report_file", .flag = "--report", .environment = "PERSIA_METRICS_REPORT", .read = PERSIA_READ(report_file)});
      row.default_text = "a file in ~/.local/state/persia-metrics";
      return row;
    }(),
    OfFile({.key = "web_config_file", .flag = "--web.config.file", .environment = "PERSIA_METRICS_WEB_CONFIG_FILE",
     .switches_off = "listen_address", .read = PERSIA_READ(web_config_file)}),
    {.key = "web_external_host", .flag = "--web.external-host", .environment = "PERSIA_METRICS_WEB_EXTERNAL_HOST", .default_text = "none",
     .good = {{"Metrics.example.com", "metrics.example.com;"}, {"a, .b.example", "a;.b.example;"}}, .bad = {{"http://a"}, {"a:80"}, {".."}},
     .allowed = "is not a host name without scheme and port", .read = PERSIA_READ(web_external_hosts)},
    {.key = "fifo", .flag = "--fifo", .environment = "PERSIA_METRICS_FIFO", .default_text = "none", .documented = "An absolute path",
     .good = {{"/tmp/f", "/tmp/f"}, {"/g", "/g"}}, .bad = {{"f"}, {"-", "\"-\""}}, .allowed = "is not an absolute path", .read = PERSIA_READ(fifo)},
    {.key = "events_file", .flag = "--events-file", .environment = "PERSIA_METRICS_EVENTS_FILE", .default_text = "none",
     .documented = "An absolute path, or `-` for stdout", .good = {{"-", "-", "'-'"}, {"/e.json", "/e.json"}}, .bad = {{"e.json"}, {"--"}},
     .allowed = "is not an absolute path", .read = PERSIA_READ(events_file)},
    {.key = "stderr_tail", .flag = "--stderr-tail", .default_text = "0", .default_value = "0", .documented = "0 (none) to 100",
     .good = {{"100", "100"}, {"0", "0"}}, .bad = {{"-1"}, {"101"}}, .allowed = "is not a number from 0 to 100", .read = PERSIA_READ(stderr_tail)},
    {.key = "gpu", .flag = "--gpu", .environment = "PERSIA_METRICS_GPU", .default_text = "auto", .default_value = Shown(GpuMode::kAuto),
     .documented = "`auto`, `off`", .good = {{"off", Shown(GpuMode::kOff)}, {"auto", Shown(GpuMode::kAuto)}}, .bad = {{"on"}, {"none"}},
     .allowed = kWords + "auto, off", .read = PERSIA_READ(gpu)},
    {.key = "labels", .flag = "--label", .default_text = "none", .documented = "A map in the file; the flag takes `name=value`",
     .good = {{"team=ads", "team=ads;", "{team: ads}"}, {"region=a=b", "region=a=b;", "{region: a=b}"}},
     .bad = {{"job=x", "{job: x}"}, {"__a=x", "{__a: x}"}, {"le=x", "{le: x}"}}, .allowed = "label", .quotes = false, .read = PERSIA_READ(labels)},
    {.key = "mapping_file", .flag = "--mapping-file", .environment = "PERSIA_METRICS_MAPPING_FILE", .default_text = "bundled",
     .documented = "`bundled`: the rules of `mapping.yaml`, built into the agent; `none`",
     .good = {{"none", "none"}, {PERSIA_CONFIG_DIR "/mapping.yaml", PERSIA_CONFIG_DIR "/mapping.yaml"}, {"bundled", ""}}, .bad = {kControl},
     .allowed = kHasControl, .read = PERSIA_READ(mapping_file)},
    {.key = "on_job_end", .flag = "--on-job-end", .default_text = "keep", .default_value = Shown(OnJobEnd::kKeep),
     .documented = "`delete`: they are deleted", .good = {{"delete", Shown(OnJobEnd::kDelete)}, {"keep", Shown(OnJobEnd::kKeep)}},
     .bad = {{"kep"}, {"Keep"}}, .allowed = kWords + "keep, delete", .read = PERSIA_READ(on_job_end)},
    {.key = "on_instance_end", .flag = "--on-instance-end", .default_text = "delete", .default_value = Shown(OnInstanceEnd::kDelete),
     .documented = "`keep`: it stays", .good = {{"keep", Shown(OnInstanceEnd::kKeep)}, {"delete", Shown(OnInstanceEnd::kDelete)}},
     .bad = {{"drop"}, {"DELETE"}}, .allowed = kWords + "delete, keep", .read = PERSIA_READ(on_instance_end)},
    {.key = "run_id", .flag = "--run-id", .environment = "PERSIA_RUN_ID", .other_environment = {"TORCHELASTIC_RUN_ID"},
     .default_text = "the unfinished run, else generated", .documented = "torchrun's `none` counts as not set",
     .good = {{"run-7", "run-7"}, {std::string(256, 'r'), std::string(256, 'r')}, {"none", ""}}, .bad = {{std::string(257, 'r')}},
     .allowed = "is too long for a run id (at most 256 bytes)", .read = PERSIA_READ(run_id)},
    {.flag = "--replica", .environment = "REPLICA_INDEX",
     .other_environment = {"RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"},
     .default_text = "0", .default_value = "0",
     .good = {{"2147483647", "2147483647"}, {"0", "0"}}, .bad = {{"-1"}, {"2147483648"}, {"two"}}, .allowed = "is not a number from 0 to 2147483647",
     .read = PERSIA_READ(replica)},
    {.key = "ip_addr", .flag = "--ip-addr", .environment = "PERSIA_IP_ADDR", .default_text = "the address towards the gateway",
     .good = {{"10.0.0.7", "10.0.0.7"}, {"node-7", "node-7"}}, .bad = {kControl, {std::string(4097, 'i')}}, .read = PERSIA_READ(ip_addr)},
    {.key = "log_level", .flag = "--log-level", .default_text = "info", .default_value = Shown(LogLevel::kInfo),
     .documented = "`debug`, `info`, `warning` or `warn`, `error`, `off`",
     .good = {{"debug", Shown(LogLevel::kDebug)}, {"warn", Shown(LogLevel::kWarning)}, {"warning", Shown(LogLevel::kWarning)},
              {"error", Shown(LogLevel::kError)}, {"off", Shown(LogLevel::kOff)}, {"info", Shown(LogLevel::kInfo)}},
     .bad = {{"wran"}, {"INFO"}}, .allowed = kWords + "debug, info, warning, warn, error, off", .read = PERSIA_READ(log_level)},
    {.key = "log_format", .flag = "--log-format", .default_text = "text", .default_value = Shown(LogFormat::kText),
     .documented = "`text`, or `json`", .good = {{"json", Shown(LogFormat::kJson)}, {"text", Shown(LogFormat::kText)}}, .bad = {{"xml"}, {"Json"}},
     .allowed = kWords + "text, json", .read = PERSIA_READ(log_format)},
  };
  return rows;
}
// clang-format on

// Each member that a setting sets, by the setting's name.
std::map<std::string, std::string> AllValues(const AgentOptions& options) {
  std::map<std::string, std::string> values;
  for (const Row& row : Rows()) values[row.name()] = row.read(options);
  return values;
}

// Where a setting can be given, the weakest first.
struct Source {
  enum Kind { kFile, kVariable, kFlag } kind;
  std::string name;
};

std::vector<Source> SourcesOf(const Row& row) {
  std::vector<Source> sources{{Source::kFile, row.key}};
  std::transform(row.other_environment.rbegin(), row.other_environment.rend(), std::back_inserter(sources),
                 [](const std::string& name) {
                   return Source{Source::kVariable, name};
                 });
  sources.push_back({Source::kVariable, row.environment});
  sources.push_back({Source::kFlag, row.flag});
  std::erase_if(sources, [](const Source& source) { return source.name.empty(); });
  return sources;
}

struct Given {
  Source source;
  std::string text;
  std::string yaml;
};

class EverySetting : public ::testing::Test {
 protected:
  // The row's setting with these values, and the settings that it needs.
  Config Load(const Row& row, const std::vector<Given>& values) {
    std::string section = row.also.empty() ? "" : "  " + row.also + "\n";
    ConfigSources sources{.flags = {}, .environment = nullptr, .file = file_, .checks_pages = false};
    std::map<std::string, std::string> variables;
    for (const auto& [source, text, yaml] : values) {
      if (source.kind == Source::kFile) section += "  " + source.name + ": " + (yaml.empty() ? text : yaml) + "\n";
      if (source.kind == Source::kFlag) sources.flags.emplace_back(source.name, text);
      if (source.kind == Source::kVariable) variables[source.name] = text;
    }
    std::ofstream(file_) << "PersiaMetricsConfig:\n" << section;
    sources.environment = [variables](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    return LoadConfig(sources);
  }

  const TemporaryDirectory directory_;
  const std::string file_ = directory_ / "config.yaml";
};

// Null: it has no row.
const Setting* SettingOf(const Row& row) {
  for (const Setting& setting : Settings()) {
    if ((setting.key.empty() ? setting.flag : setting.key) == row.name()) return &setting;
  }
  return nullptr;
}

TEST_F(EverySetting, HasARow) {
  std::vector<std::string> rows;
  for (const Row& row : Rows()) rows.push_back(row.name());
  std::vector<std::string> settings;
  for (const Setting& setting : Settings()) settings.emplace_back(setting.key.empty() ? setting.flag : setting.key);
  EXPECT_THAT(rows, UnorderedElementsAreArray(settings))
      << "For a new setting add a row to Rows() in tests/unit/config/settings_test.cc: its names, its default, values that it "
         "takes and "
         "refuses (of a number: both bounds, and a value beyond each), and the member of AgentOptions that it sets.";
  for (const Row& row : Rows()) {
    const Setting* const setting = SettingOf(row);
    EXPECT_GE(row.good.size(), 2U) << row.name();
    EXPECT_GE(row.bad.size(), setting != nullptr && setting->kind == ValueKind::kNumber ? 2U : 1U) << row.name();
  }
}

TEST_F(EverySetting, HasItsNamesAndItsDefault) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name());
    EXPECT_EQ(row.read(AgentOptions{}), row.default_value);
    const Setting* const setting = SettingOf(row);
    if (setting == nullptr) continue;  // HasARow tells
    EXPECT_EQ(setting->key, row.key);
    EXPECT_EQ(setting->alias, row.alias);
    EXPECT_EQ(setting->flag, row.flag);
    EXPECT_EQ(setting->environment, row.environment);
    const auto& others = setting->other_environment;
    EXPECT_EQ(std::vector<std::string>(others.begin(), others.end()), row.other_environment);
    EXPECT_EQ(setting->default_text, row.default_text);
    AgentOptions options;
    const std::string before = setting->get(options);
    if (before.empty()) continue;  // its default is documented in words
    EXPECT_EQ(before, row.default_text);
    EXPECT_TRUE(setting->set(row.default_text, options).ok());
    EXPECT_EQ(setting->get(options), before);
  }
}

TEST_F(EverySetting, IsDocumented) {
  std::stringstream text;
  text << std::ifstream(PERSIA_CONFIG_DIR "/README.md").rdbuf();
  const std::string readme = text.str();
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name());
    const size_t at = readme.find("\n| " + (row.key.empty() ? "| `" + row.flag : "`" + row.key) + "`");
    if (at == std::string::npos) {
      ADD_FAILURE() << "the table of config/README.md has no row of it";
      continue;
    }
    const std::string line = readme.substr(at + 1, readme.find('\n', at + 1) - at - 1);
    std::vector<std::string> names = row.other_environment;
    names.insert(names.end(), {row.key, row.alias, row.flag, row.environment});
    for (const std::string& name : names) {
      EXPECT_THAT(line, HasSubstr(name.empty() ? "" : "`" + name + "`"));
    }
    EXPECT_THAT(line, HasSubstr(row.default_text));
    EXPECT_THAT(line, HasSubstr(row.documented));
  }
}

TEST_F(EverySetting, TakesGoodValuesFromEachSourceAndSetsNothingElse) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name());
    std::vector<Source> sources = SourcesOf(row);
    if (!row.alias.empty()) sources.push_back({Source::kFile, row.alias});
    std::map<std::string, std::string> expected = AllValues(Load(row, {}).options);
    // Without its value, what it needs may be an error that switches the gateway off.
    expected["gateway_address"] =
        row.also.find("https://gw") != std::string::npos ? "https://gw" : "metrics_gateway:9091 (not set)";
    for (const auto& [text, shown, yaml] : row.good) {
      expected[row.name()] = shown;
      for (const Source& source : sources) {
        const Config config = Load(row, {{source, text, yaml}});
        EXPECT_THAT(config.ErrorTexts(), IsEmpty()) << source.name << " " << text;
        EXPECT_EQ(AllValues(config.options), expected) << source.name << " " << text;
      }
    }
  }
}

TEST_F(EverySetting, OfAStrongerSourceOverridesThatOfAWeakerOne) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name());
    const std::vector<Source> sources = SourcesOf(row);
    for (size_t i = 1; i < sources.size(); ++i) {
      for (const auto& [weak, strong] : {std::pair(row.good[0], row.good[1]), std::pair(row.good[1], row.good[0])}) {
        const Config config = Load(row, {{sources[i - 1], weak.text, weak.yaml}, {sources[i], strong.text, strong.yaml}});
        EXPECT_THAT(config.ErrorTexts(), IsEmpty());
        EXPECT_EQ(row.read(config.options), strong.shown) << sources[i].name << " over " << sources[i - 1].name;
      }
    }
  }
}

TEST_F(EverySetting, RefusesBadValuesFromEachSourceWithItsNameAndTheirText) {
  for (const Row& row : Rows()) {
    for (const auto& [text, yaml] : row.bad) {
      for (const Source& source : SourcesOf(row)) {
        SCOPED_TRACE(source.name + " " + text);
        const Config config = Load(row, {{source, text, yaml}});
        const std::string error = config.errors.empty() ? "accepted" : config.errors.front().text;
        const std::string place = source.kind == Source::kFile ? file_ + ":" : source.name + ": ";
        EXPECT_THAT(error, StartsWith(place));
        EXPECT_THAT(error, HasSubstr(row.key == "remote_write" ? "" : source.name + ": "));
        EXPECT_THAT(error, HasSubstr(row.allowed));
        const bool is_plain = yaml.empty() || yaml.front() != '"';
        if (row.quotes) {
          EXPECT_THAT(error, HasSubstr(is_plain ? QuotedInErrors(text) : yaml));
        } else if (row.key != "labels") {  // its errors quote the name alone
          EXPECT_THAT(error, Not(HasSubstr(text)));
        }
        EXPECT_EQ(row.read(config.options), row.switches_off == row.name() ? "off" : row.default_value);
        EXPECT_EQ(config.options.Pushes(), row.switches_off != "gateway_address");
        EXPECT_EQ(config.options.listen_address.empty(), row.switches_off == "listen_address");
      }
    }
  }
}

}  // namespace
}  // namespace persia::agent

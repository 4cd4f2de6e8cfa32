#include "app/settings.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/gateway_settings.h"
#include "app/nearest.h"
#include "app/text.h"
#include "lib/src/job_directory.h"
#include "net/gateway_address.h"

namespace persia::agent {
namespace {

constexpr size_t kLongestFileName = 255;

template <class T>
struct Word {
  std::string_view text;
  T value;
};

template <class T, size_t N>
Status SetWord(std::string_view text, const Word<T> (&words)[N], T& into) {
  std::vector<std::string_view> allowed;
  std::string list;
  for (const Word<T>& word : words) {
    if (word.text == text) {
      into = word.value;
      return Done{};
    }
    allowed.push_back(word.text);
    list += (list.empty() ? "" : ", ") + std::string(word.text);
  }
  return Bad(text, "is not one of: " + list + DidYouMean(text, allowed));
}

Status SetSeconds(std::string_view text, double least, double most, std::string_view range, std::chrono::milliseconds& into) {
  double seconds = 0;
  if (!ParseNumber(text, seconds)) {
    return Bad(text, "is not a number of seconds (" + std::string(range) + ")");
  }
  if (!(seconds >= least && seconds <= most)) {
    return Bad(text, "is out of range (seconds, " + std::string(range) + ")");
  }
  into = std::chrono::milliseconds(std::llround(seconds * 1000));
  return Done{};
}

Status SetBoolean(std::string_view text, bool& into) {
  static constexpr Word<bool> kWords[] = {{"true", true}, {"false", false}, {"1", true},  {"0", false},
                                          {"yes", true},  {"no", false},    {"on", true}, {"off", false}};
  return SetWord(text, kWords, into);
}
Status SetEnabled(std::string_view text, AgentOptions& options) { return SetBoolean(text, options.enable_metrics); }
Status SetEnableLifecycle(std::string_view text, AgentOptions& options) { return SetBoolean(text, options.enable_lifecycle); }

Status SetJobName(std::string_view text, AgentOptions& options) {
  if (Status status = CheckText(text, "a job's name"); !status.ok()) {
    return status;
  }
  if (metrics::EncodeJobName(text).size() > kLongestFileName) {
    return Bad(text, "is too long for a job's name (255 bytes, of which all but letters, digits, '_', '-', '.' count three)");
  }
  options.job_name = text;
  return Done{};
}

Status SetPushInterval(std::string_view text, AgentOptions& options) {
  return SetSeconds(text, 0.1, 86400, "0.1 to 86400", options.push_interval);
}
Status SetConnectTimeout(std::string_view text, AgentOptions& options) {
  return SetSeconds(text, 0.1, 300, "0.1 to 300", options.connect_timeout);
}
Status SetPushTimeout(std::string_view text, AgentOptions& options) {
  return SetSeconds(text, 0.1, 300, "0.1 to 300", options.push_timeout);
}

Status SetGatewayAddress(std::string_view text, AgentOptions& options) {
  if (const auto address = GatewayAddress::Parse(text); !address.ok()) {
    return Error{OneLine(address.error())};  // it repeats the text, which may have lines of its own
  }
  options.gateway_address = text;
  return Done{};
}

Status SetPath(std::string_view text, std::string& into) {
  if (Status status = CheckText(text, "a directory"); !status.ok()) {
    return status;
  }
  if (text.front() != '/') {
    return Bad(text, "is not an absolute path: workers that start in other directories must find it too");
  }
  into = text;
  return Done{};
}
Status SetMetricsDir(std::string_view text, AgentOptions& options) { return SetPath(text, options.metrics_dir); }
Status SetStateDir(std::string_view text, AgentOptions& options) { return SetPath(text, options.state_dir); }

Status SetCount(std::string_view text, uint64_t least, uint64_t most, std::string_view what, uint64_t& into) {
  uint64_t count = 0;
  if (!ParseNumber(text, count) || count < least || count > most) {
    return Bad(text,
               "is not a number of " + std::string(what) + " (" + std::to_string(least) + " to " + std::to_string(most) + ")");
  }
  into = count;
  return Done{};
}

Status SetMaxPushBytes(std::string_view text, AgentOptions& options) {
  return SetCount(text, 65536, 1ULL << 32, "bytes", options.max_push_bytes);
}
Status SetMaxSegmentBytes(std::string_view text, AgentOptions& options) {
  return SetCount(text, 1 << 16, 1ULL << 40, "bytes", options.max_segment_bytes);
}

Status SetGaugeTtl(std::string_view text, AgentOptions& options) {
  return SetSeconds(text, 0, 31536000, "0 to 31536000", options.gauge_ttl);
}

Status SetMaxSeries(std::string_view text, AgentOptions& options) {
  return SetCount(text, 1, 100'000'000, "series", options.max_series);
}
Status SetMaxSeriesPerInstance(std::string_view text, AgentOptions& options) {
  return SetCount(text, 1, 100'000'000, "series", options.max_series_per_instance);
}
Status SetMaxLabelValueBytes(std::string_view text, AgentOptions& options) {
  return SetCount(text, 16, 65536, "bytes", options.max_label_value_bytes);
}

Status SetMetricsDirGroup(std::string_view text, AgentOptions& options) {
  if (Status status = CheckText(text, "a group"); !status.ok()) {
    return status;
  }
  options.metrics_dir_group = text;
  return Done{};
}

// What is refused here is refused before anything has begun; the web server itself would only say so at its start.
Status CheckListenAddress(std::string_view text) {
  if (text.find('[') != std::string_view::npos || std::count(text.begin(), text.end(), ':') > 1) {
    return Bad(text, "is an IPv6 address, which the web server of this build cannot serve (127.0.0.1:19091, :19091, off)");
  }
  const size_t colon = text.find(':');
  const std::string host(text.substr(0, colon));
  uint32_t port = 0;
  in_addr parsed{};
  if (colon == std::string_view::npos || !ParseNumber(text.substr(colon + 1), port) || port > 65535 ||
      (!host.empty() && host != "localhost" && inet_pton(AF_INET, host.c_str(), &parsed) != 1)) {
    return Bad(text,
               "is not an IPv4 address and a port (127.0.0.1:19091; :19091 for all addresses; port 0 for any free one; off)");
  }
  return Done{};
}

Status SetListenAddress(std::string_view text, AgentOptions& options) {
  if (text != "off") {
    if (Status status = CheckListenAddress(text); !status.ok()) {
      return status;
    }
  }
  options.listen_address = text == "off" ? "" : text;
  options.listen_address_is_default = false;
  return Done{};
}

Status SetWebConfigFile(std::string_view text, AgentOptions& options) {
  if (Status status = CheckText(text, "a file's name"); !status.ok()) {
    return status;
  }
  options.web_config_file = text;
  return Done{};
}

Status AddLabel(std::string_view text, AgentOptions& options) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Bad(text, "is not a label (name=value)");
  }
  const std::string name(text.substr(0, equals));
  const std::string_view value = text.substr(equals + 1);
  if (name.empty() || IsDigit(name[0]) ||
      !std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); })) {
    return Bad(name, "is not a label's name (letters, digits and '_', not beginning with a digit)");
  }
  static constexpr std::string_view kTaken[] = {"job", "instance", "ip_addr", "role", "agent", "le", "quantile"};
  if (name.starts_with("__") || std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken)) {
    return Bad(name,
               "is a label of Prometheus or of the agent itself (not: job, instance, ip_addr, role, agent, le, quantile, __*)");
  }
  if (Status status = CheckText(value, "a label's value"); !status.ok()) {
    return status;
  }
  const auto place = std::lower_bound(options.labels.begin(), options.labels.end(), name,
                                      [](const auto& label, const std::string& wanted) { return label.first < wanted; });
  if (place != options.labels.end() && place->first == name) {
    return Bad(name, "is given twice");
  }
  options.labels.insert(place, {name, std::string(value)});
  return Done{};
}

Status SetOnJobEnd(std::string_view text, AgentOptions& options) {
  static constexpr Word<OnJobEnd> kWords[] = {{"keep", OnJobEnd::kKeep}, {"delete", OnJobEnd::kDelete}};
  return SetWord(text, kWords, options.on_job_end);
}
Status SetOnInstanceEnd(std::string_view text, AgentOptions& options) {
  static constexpr Word<OnInstanceEnd> kWords[] = {{"delete", OnInstanceEnd::kDelete}, {"keep", OnInstanceEnd::kKeep}};
  return SetWord(text, kWords, options.on_instance_end);
}

Status SetRunId(std::string_view text, AgentOptions& options) {
  if (Status status = CheckText(text, "a run id"); !status.ok()) {
    return status;
  }
  if (text.size() > 256) {
    return Bad(text, "is too long for a run id (at most 256 bytes)");
  }
  // torchrun's id where none was given is "none", for every run alike: that is no id.
  if (text != "none") {
    options.run_id = text;
  }
  return Done{};
}

Status SetReplica(std::string_view text, AgentOptions& options) {
  int replica = 0;
  if (!ParseNumber(text, replica) || replica < 0) {
    return Bad(text, "is not a replica's number (0, 1, 2, ...)");
  }
  options.replica = replica;
  return Done{};
}

Status SetIpAddr(std::string_view text, AgentOptions& options) {
  if (Status status = CheckText(text, "an address"); !status.ok()) {
    return status;
  }
  options.ip_addr = text;
  return Done{};
}

// In the order of the enumeration.
constexpr Word<LogLevel> kLogLevels[] = {{"debug", LogLevel::kDebug},
                                         {"info", LogLevel::kInfo},
                                         {"warning", LogLevel::kWarning},
                                         {"error", LogLevel::kError},
                                         {"off", LogLevel::kOff}};
Status SetLogLevel(std::string_view text, AgentOptions& options) { return SetWord(text, kLogLevels, options.log_level); }
Status SetLogFormat(std::string_view text, AgentOptions& options) {
  static constexpr Word<LogFormat> kWords[] = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
  return SetWord(text, kWords, options.log_format);
}

std::string SecondsText(std::chrono::milliseconds duration) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, static_cast<double>(duration.count()) / 1000).ptr;
  return {text, end};
}

std::string LabelsText(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += (text.empty() ? "{" : ", ") + name + ": " + Quoted(value);
  }
  return text.empty() ? text : text + "}";
}

// clang-format off: a table.
constexpr Setting kSettings[] = {
    {"enable_metrics", "", "--enable-metrics", "PERSIA_METRICS_ENABLED", "", "BOOL", "Whether metrics are collected at all",
     "true", "Job", ValueKind::kBoolean, SetEnabled,
     [](const AgentOptions& o) -> std::string { return o.enable_metrics ? "true" : "false"; }},
    {"job_name", "", "--job", "PERSIA_JOB_NAME", "", "NAME", "The training job, to tell it from others", "default", "Job",
     ValueKind::kText, SetJobName, [](const AgentOptions& o) -> std::string { return o.job_name; }},
    {"push_interval_seconds", "push_interval_sec", "--push-interval", "PERSIA_METRICS_PUSH_INTERVAL", "", "SECONDS",
     "How often metrics are read and pushed", "10", "Gateway", ValueKind::kNumber, SetPushInterval,
     [](const AgentOptions& o) -> std::string { return SecondsText(o.push_interval); },
     [](const AgentOptions& from, AgentOptions& to) { to.push_interval = from.push_interval; }},
    {"gateway_address", "", "--gateway", "PERSIA_METRICS_GATEWAY_ADDR", "", "ADDRESS", "The PushGateway, as host:port or URL",
     "metrics_gateway:9091", "Gateway", ValueKind::kText, SetGatewayAddress,
     [](const AgentOptions& o) -> std::string { return o.gateway_address; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_address = from.gateway_address; }},
    {"connect_timeout_seconds", "", "--connect-timeout", "", "", "SECONDS", "How long to wait for a connection to the gateway",
     "3", "Gateway", ValueKind::kNumber, SetConnectTimeout,
     [](const AgentOptions& o) -> std::string { return SecondsText(o.connect_timeout); },
     [](const AgentOptions& from, AgentOptions& to) { to.connect_timeout = from.connect_timeout; }},
    {"push_timeout_seconds", "", "--push-timeout", "", "", "SECONDS", "How long one push may take, the last one included", "10",
     "Gateway", ValueKind::kNumber, SetPushTimeout,
     [](const AgentOptions& o) -> std::string { return SecondsText(o.push_timeout); },
     [](const AgentOptions& from, AgentOptions& to) { to.push_timeout = from.push_timeout; }},
    {"max_push_bytes", "", "--max-push-bytes", "", "", "BYTES", "Of a group with a larger text, whole families are left out",
     "67108864", "Gateway", ValueKind::kNumber, SetMaxPushBytes,
     [](const AgentOptions& o) -> std::string { return std::to_string(o.max_push_bytes); },
     [](const AgentOptions& from, AgentOptions& to) { to.max_push_bytes = from.max_push_bytes; }},
    {"gateway_ca_file", "", "--gateway-ca-file", "PERSIA_METRICS_GATEWAY_CA_FILE", "", "FILE",
     "Whom to trust as the gateway, PEM; none: the system's", "none", "Gateway", ValueKind::kText, SetGatewayCaFile,
     [](const AgentOptions& o) -> std::string { return o.gateway_access.ca_file; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_access.ca_file = from.gateway_access.ca_file; }},
    {"gateway_cert_file", "", "--gateway-cert-file", "PERSIA_METRICS_GATEWAY_CERT_FILE", "", "FILE",
     "The certificate to show to the gateway, PEM", "none", "Gateway", ValueKind::kText, SetGatewayCertFile,
     [](const AgentOptions& o) -> std::string { return o.gateway_access.cert_file; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_access.cert_file = from.gateway_access.cert_file; }},
    {"gateway_key_file", "", "--gateway-key-file", "PERSIA_METRICS_GATEWAY_KEY_FILE", "", "FILE",
     "Its key, PEM, without a passphrase", "none", "Gateway", ValueKind::kText, SetGatewayKeyFile,
     [](const AgentOptions& o) -> std::string { return o.gateway_access.key_file; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_access.key_file = from.gateway_access.key_file; }},
    {"gateway_server_name", "", "--gateway-server-name", "PERSIA_METRICS_GATEWAY_SERVER_NAME", "", "NAME",
     "The name in the gateway's certificate, if it is not the address", "none", "Gateway", ValueKind::kText,
     SetGatewayServerName, [](const AgentOptions& o) -> std::string { return o.gateway_access.server_name; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_access.server_name = from.gateway_access.server_name; }},
    {"gateway_username", "", "--gateway-username", "PERSIA_METRICS_GATEWAY_USERNAME", "", "NAME",
     "The user for basic authentication", "none", "Gateway", ValueKind::kText, SetGatewayUsername,
     [](const AgentOptions& o) -> std::string { return o.gateway_access.username; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_access.username = from.gateway_access.username; }},
    {"gateway_password", "", "", "PERSIA_METRICS_GATEWAY_PASSWORD", "", "", "Its password", "none", "Gateway", ValueKind::kText,
     SetGatewayPassword, [](const AgentOptions& o) -> std::string { return o.gateway_access.password.empty() ? "" : "(set)"; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_access.password = from.gateway_access.password; }, true},
    {"gateway_password_file", "", "--gateway-password-file", "PERSIA_METRICS_GATEWAY_PASSWORD_FILE", "", "FILE",
     "The file with its password; read again when it changes", "none", "Gateway", ValueKind::kText, SetGatewayPasswordFile,
     [](const AgentOptions& o) -> std::string { return o.gateway_access.password_file; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_access.password_file = from.gateway_access.password_file; }},
    {"gateway_bearer_token", "", "", "PERSIA_METRICS_GATEWAY_BEARER_TOKEN", "", "", "The token for bearer authentication",
     "none", "Gateway", ValueKind::kText, SetGatewayBearerToken,
     [](const AgentOptions& o) -> std::string { return o.gateway_access.bearer_token.empty() ? "" : "(set)"; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_access.bearer_token = from.gateway_access.bearer_token; },
     true},
    {"gateway_bearer_token_file", "", "--gateway-bearer-token-file", "PERSIA_METRICS_GATEWAY_BEARER_TOKEN_FILE", "", "FILE",
     "The file with the token; read again when it changes", "none", "Gateway", ValueKind::kText, SetGatewayBearerTokenFile,
     [](const AgentOptions& o) -> std::string { return o.gateway_access.bearer_token_file; },
     [](const AgentOptions& from, AgentOptions& to) {
       to.gateway_access.bearer_token_file = from.gateway_access.bearer_token_file;
     }},
    {"metrics_dir", "", "--metrics-dir", "PERSIA_METRICS_DIR", "", "DIR", "The job's directory of segments",
     "/dev/shm/persia-metrics-<uid>/<job>", "Directory", ValueKind::kText, SetMetricsDir,
     [](const AgentOptions& o) -> std::string { return o.metrics_dir; }},
    {"metrics_dir_group", "", "--metrics-dir-group", "", "", "GROUP", "A group that shares the directory, by name or number",
     "none", "Directory", ValueKind::kText, SetMetricsDirGroup,
     [](const AgentOptions& o) -> std::string { return o.metrics_dir_group; }},
    {"max_segment_bytes", "", "--max-segment-bytes", "", "", "BYTES", "A worker's segment larger than that is refused",
     "1073741824", "Directory", ValueKind::kNumber, SetMaxSegmentBytes,
     [](const AgentOptions& o) -> std::string { return std::to_string(o.max_segment_bytes); },
     [](const AgentOptions& from, AgentOptions& to) { to.max_segment_bytes = from.max_segment_bytes; }},
    {"state_dir", "", "--state-dir", "", "", "DIR", "Where the agent keeps its state", "beside the segments", "Directory",
     ValueKind::kText, SetStateDir, [](const AgentOptions& o) -> std::string { return o.state_dir; }},
    {"gauge_ttl_seconds", "", "--gauge-ttl", "", "", "SECONDS",
     "How long gauges of ended processes, and instances that left, go on showing", "300", "Job", ValueKind::kNumber,
     SetGaugeTtl, [](const AgentOptions& o) -> std::string { return SecondsText(o.gauge_ttl); },
     [](const AgentOptions& from, AgentOptions& to) { to.gauge_ttl = from.gauge_ttl; }},
    {"max_series", "", "--max-series", "", "", "N", "Series that are shown; further ones are left out", "200000", "Limits",
     ValueKind::kNumber, SetMaxSeries, [](const AgentOptions& o) -> std::string { return std::to_string(o.max_series); },
     [](const AgentOptions& from, AgentOptions& to) { to.max_series = from.max_series; }},
    {"max_series_per_instance", "", "--max-series-per-instance", "", "", "N", "The same for one instance (role and replica)",
     "50000", "Limits", ValueKind::kNumber, SetMaxSeriesPerInstance,
     [](const AgentOptions& o) -> std::string { return std::to_string(o.max_series_per_instance); },
     [](const AgentOptions& from, AgentOptions& to) { to.max_series_per_instance = from.max_series_per_instance; }},
    {"max_label_value_bytes", "", "--max-label-value-bytes", "", "", "BYTES", "A series with a longer label value is left out",
     "1024", "Limits", ValueKind::kNumber, SetMaxLabelValueBytes,
     [](const AgentOptions& o) -> std::string { return std::to_string(o.max_label_value_bytes); },
     [](const AgentOptions& from, AgentOptions& to) { to.max_label_value_bytes = from.max_label_value_bytes; }},
    {"listen_address", "", "--listen", "PERSIA_METRICS_LISTEN_ADDR", "", "ADDRESS",
     "Where /metrics is served: IPv4:port, or off", "127.0.0.1:19091", "Pages", ValueKind::kText, SetListenAddress,
     [](const AgentOptions& o) -> std::string { return o.listen_address.empty() ? "off" : o.listen_address; }},
    {"enable_lifecycle", "", "--web.enable-lifecycle", "", "", "BOOL", "Whether POST /-/reload reads the settings again",
     "false", "Pages", ValueKind::kBoolean, SetEnableLifecycle,
     [](const AgentOptions& o) -> std::string { return o.enable_lifecycle ? "true" : "false"; }},
    {"web_config_file", "", "--web.config.file", "PERSIA_METRICS_WEB_CONFIG_FILE", "", "FILE",
     "Who may read the pages, and TLS for them, as Prometheus's exporters have it", "none", "Pages", ValueKind::kText,
     SetWebConfigFile, [](const AgentOptions& o) -> std::string { return o.web_config_file; }},
    {"labels", "", "--label", "", "", "NAME=VALUE", "A label for each series; may be given several times", "none", "Labels",
     ValueKind::kLabels, AddLabel, [](const AgentOptions& o) -> std::string { return LabelsText(o.labels); },
     [](const AgentOptions& from, AgentOptions& to) { to.labels = from.labels; }},
    {"on_job_end", "", "--on-job-end", "", "", "keep|delete", "What becomes of the job's groups when it ends", "keep",
     "Gateway", ValueKind::kText, SetOnJobEnd,
     [](const AgentOptions& o) -> std::string { return o.on_job_end == OnJobEnd::kKeep ? "keep" : "delete"; }},
    {"on_instance_end", "", "--on-instance-end", "", "", "delete|keep", "What becomes of a group whose processes left",
     "delete", "Gateway", ValueKind::kText, SetOnInstanceEnd,
     [](const AgentOptions& o) -> std::string { return o.on_instance_end == OnInstanceEnd::kKeep ? "keep" : "delete"; }},
    {"run_id", "", "--run-id", "PERSIA_RUN_ID", "TORCHELASTIC_RUN_ID", "ID", "The run to begin or to go on with",
     "the unfinished run, else made up", "Job", ValueKind::kText, SetRunId,
     [](const AgentOptions& o) -> std::string { return o.run_id; }},
    {"", "", "--replica", "REPLICA_INDEX", "RANK", "N", "The agent's own number: instance=\"rep_N\"", "0", "Labels",
     ValueKind::kNumber, SetReplica, [](const AgentOptions& o) -> std::string { return std::to_string(o.replica); }},
    {"ip_addr", "", "--ip-addr", "PERSIA_IP_ADDR", "", "ADDRESS", "The ip_addr label", "the address towards the gateway",
     "Labels", ValueKind::kText, SetIpAddr, [](const AgentOptions& o) -> std::string { return o.ip_addr; }},
    {"log_level", "", "--log-level", "", "", "LEVEL", "debug, info, warning, error or off", "info", "Log", ValueKind::kText,
     SetLogLevel,
     [](const AgentOptions& o) -> std::string { return std::string(kLogLevels[static_cast<size_t>(o.log_level)].text); },
     [](const AgentOptions& from, AgentOptions& to) { to.log_level = from.log_level; }},
    {"log_format", "", "--log-format", "", "", "text|json", "How log lines are written to stderr", "text", "Log",
     ValueKind::kText, SetLogFormat,
     [](const AgentOptions& o) -> std::string { return o.log_format == LogFormat::kText ? "text" : "json"; },
     [](const AgentOptions& from, AgentOptions& to) { to.log_format = from.log_format; }},
};
// clang-format on

}  // namespace

std::span<const Setting> Settings() { return kSettings; }

}  // namespace persia::agent

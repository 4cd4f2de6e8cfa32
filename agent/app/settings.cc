#include "app/settings.h"

#include <charconv>
#include <chrono>

#include "app/gateway_settings.h"
#include "app/remote_write_settings.h"
#include "app/setters.h"
#include "app/text.h"

namespace persia::agent {
namespace {

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

std::string PushFormatText(const AgentOptions& options) {
  if (options.push_format == PushFormat::Choice::kAuto) {
    return "auto";
  }
  return options.push_format == PushFormat::Choice::kText ? "text" : "protobuf";
}

std::string TargetsText(const std::vector<RemoteWriteTarget>& targets) {
  std::string text;
  for (const RemoteWriteTarget& target : targets) {
    text += (text.empty() ? "" : ", ") + target.name + " at " + ShownUrl(target.url);
  }
  return text;
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
    {"gateway_address", "", "--gateway", "PERSIA_METRICS_GATEWAY_ADDR", "", "ADDRESS",
     "The PushGateway, as host:port or URL, several of them with commas, dns+name:port, or off", "metrics_gateway:9091",
     "Gateway", ValueKind::kTexts, SetGatewayAddress, [](const AgentOptions& o) -> std::string { return o.gateway_address; },
     [](const AgentOptions& from, AgentOptions& to) { to.gateway_address = from.gateway_address; }},
    {"connect_timeout_seconds", "", "--connect-timeout", "", "", "SECONDS", "How long to wait for a connection to the gateway",
     "3", "Gateway", ValueKind::kNumber, SetConnectTimeout,
     [](const AgentOptions& o) -> std::string { return SecondsText(o.connect_timeout); },
     [](const AgentOptions& from, AgentOptions& to) { to.connect_timeout = from.connect_timeout; }},
    {"push_timeout_seconds", "", "--push-timeout", "", "", "SECONDS", "How long one push may take, the last one included", "10",
     "Gateway", ValueKind::kNumber, SetPushTimeout,
     [](const AgentOptions& o) -> std::string { return SecondsText(o.push_timeout); },
     [](const AgentOptions& from, AgentOptions& to) { to.push_timeout = from.push_timeout; }},
    {"push_format", "", "--push-format", "", "", "auto|text|protobuf",
     "How groups are written; auto: as the gateway reads them", "auto", "Gateway", ValueKind::kText, SetPushFormat,
     PushFormatText, [](const AgentOptions& from, AgentOptions& to) { to.push_format = from.push_format; }},
    {"max_push_bytes", "", "--max-push-bytes", "", "", "BYTES", "Of a larger group, whole families are left out", "67108864",
     "Gateway", ValueKind::kNumber, SetMaxPushBytes,
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
    {"remote_write", "", "--remote-write", "PERSIA_METRICS_REMOTE_WRITE_URL", "", "URL",
     "A database to which samples are sent by remote write; may be given several times", "none", "Remote write",
     ValueKind::kTargets, AddRemoteWrite, [](const AgentOptions& o) -> std::string { return TargetsText(o.remote_write); },
     [](const AgentOptions& from, AgentOptions& to) { to.remote_write = from.remote_write; }},
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
    {"state_dir", "", "--state-dir", "PERSIA_METRICS_STATE_DIR", "", "DIR", "Where the agent keeps its state",
     "beside the segments", "Directory", ValueKind::kText, SetStateDir,
     [](const AgentOptions& o) -> std::string { return o.state_dir; }},
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
    {"history_seconds", "", "--history", "", "", "SECONDS", "How long what was collected is kept for the page's charts; 0: not",
     "1800", "Pages", ValueKind::kNumber, SetHistory,
     [](const AgentOptions& o) -> std::string { return SecondsText(o.history); },
     [](const AgentOptions& from, AgentOptions& to) { to.history = from.history; }},
    {"history_max_bytes", "", "--history-max-bytes", "", "", "BYTES", "Memory for that; above, it is kept for less long",
     "67108864", "Pages", ValueKind::kNumber, SetHistoryMaxBytes,
     [](const AgentOptions& o) -> std::string { return std::to_string(o.history_max_bytes); },
     [](const AgentOptions& from, AgentOptions& to) { to.history_max_bytes = from.history_max_bytes; }},
    {"web_config_file", "", "--web.config.file", "PERSIA_METRICS_WEB_CONFIG_FILE", "", "FILE",
     "Who may read the pages, and TLS for them, as Prometheus's exporters have it", "none", "Pages", ValueKind::kText,
     SetWebConfigFile, [](const AgentOptions& o) -> std::string { return o.web_config_file; }},
    {"fifo", "", "--fifo", "PERSIA_METRICS_FIFO", "", "FILE", "A named pipe in which Benchmark AI's emit may write", "none",
     "Directory", ValueKind::kText, SetFifo, [](const AgentOptions& o) -> std::string { return o.fifo; }},
    {"events_file", "", "--events-file", "PERSIA_METRICS_EVENTS_FILE", "", "FILE",
     "Where event records are written, in lines of JSON; - is stdout", "none", "Directory", ValueKind::kText, SetEventsFile,
     [](const AgentOptions& o) -> std::string { return o.events_file; }},
    {"labels", "", "--label", "", "", "NAME=VALUE", "A label for each series; may be given several times", "none", "Labels",
     ValueKind::kLabels, AddLabel, [](const AgentOptions& o) -> std::string { return LabelsText(o.labels); },
     [](const AgentOptions& from, AgentOptions& to) { to.labels = from.labels; }},
    {"mapping_file", "", "--mapping-file", "PERSIA_METRICS_MAPPING_FILE", "", "FILE",
     "Rules that give metrics names, labels and types; bundled, or none", "bundled", "Labels", ValueKind::kText, SetMappingFile,
     [](const AgentOptions& o) -> std::string { return o.mapping_file; },
     [](const AgentOptions& from, AgentOptions& to) {
       to.mapping_file = from.mapping_file;
       to.mapping_text = from.mapping_text;
       to.mapping = from.mapping;
     },
     false, [](const AgentOptions& o) -> const std::string& { return o.mapping_text; }},
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
     SetLogLevel, [](const AgentOptions& o) -> std::string { return std::string(NameOf(o.log_level)); },
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

#include "config/settings.h"

#include <chrono>
#include <climits>
#include <optional>
#include <type_traits>
#include <utility>

#include "config/remote_write_settings.h"
#include "config/values.h"
#include "net/url.h"
#include "rank_variables.h"

namespace persia::agent {
namespace {

// The setting that is parsed by kParse into the member of AgentOptions that kPath leads to.
template <auto kParse, auto... kPath>
constexpr Setting Bind(Setting setting) {
  using T = std::remove_cvref_t<decltype(Member<kPath...>(std::declval<AgentOptions&>()))>;
  if (std::is_same_v<T, bool>)
    setting.kind = ValueKind::kBoolean;
  else if (std::is_arithmetic_v<T> || std::is_same_v<T, std::chrono::milliseconds> ||
           std::is_same_v<T, std::optional<std::chrono::milliseconds>>)
    setting.kind = ValueKind::kNumber;
  setting.set = Set<kParse, kPath...>;
  setting.get = [](const AgentOptions& options) { return ToText(Member<kPath...>(options)); };
  if (setting.secret) {
    setting.get = [](const AgentOptions& options) {
      return std::string(ToText(Member<kPath...>(options)).empty() ? "" : "(set)");
    };
  }
  if (setting.copy == nullptr)
    setting.copy = [](const AgentOptions& from, AgentOptions& to) { Member<kPath...>(to) = Member<kPath...>(from); };
  return setting;
}

Status SetJobName(std::string_view text, AgentOptions& options) {
  Status status = ParseJobName(text, options.job_name);
  if (status.ok()) options.has_job_name = true;
  return status;
}

Status SetGatewayAddress(std::string_view text, AgentOptions& options) {
  Status status = ParseGatewayAddress(text, options.gateway_address);
  if (status.ok()) options.has_gateway_address = true;
  return status;
}

void CopyGatewayAddress(const AgentOptions& from, AgentOptions& to) {
  to.gateway_address = from.gateway_address;
  to.has_gateway_address = from.has_gateway_address;
}

// With another way to set it.
constexpr Setting SetBy(Status (*set)(std::string_view text, AgentOptions& options), Setting setting) {
  setting.set = set;
  return setting;
}

// With another text, for one that may have a password.
constexpr Setting ShownBy(std::string (*get)(const AgentOptions& options), Setting setting) {
  setting.get = get;
  return setting;
}

std::string ProxyText(const AgentOptions& options) { return ShownAddress(options.gateway_proxy.url); }

std::string ListenAddressText(const AgentOptions& options) {
  return options.listen_address.empty() ? "off" : options.listen_address;
}

void CopyMapping(const AgentOptions& from, AgentOptions& to) {
  to.mapping_file = from.mapping_file;
  to.mapping_text = from.mapping_text;
  to.mapping = from.mapping;
}

constexpr std::string_view kTorchRunId[] = {"TORCHELASTIC_RUN_ID"};

// A table.
// clang-format off
constexpr Setting kSettings[] = {
    Bind<ParseBoolean, &AgentOptions::enable_metrics>({
      .key = "enable_metrics", .flag = "--enable-metrics", .environment = "PERSIA_METRICS_ENABLED", .placeholder = "BOOL",
      .help = "Whether metrics are collected", .default_text = "true", .group = "Job"}),
    SetBy(SetJobName, Bind<ParseJobName, &AgentOptions::job_name>({
      .key = "job_name", .flag = "--job", .environment = "PERSIA_JOB_NAME", .placeholder = "NAME",
      .help = "Name of the training job: the label job", .default_text = "default", .group = "Job"})),
    Bind<Seconds{100, 86'400'000}, &AgentOptions::push_interval>({
      .key = "push_interval_seconds", .alias = "push_interval_sec", .flag = "--push-interval",
      .environment = "PERSIA_METRICS_PUSH_INTERVAL", .placeholder = "DURATION", .help = "How often metrics are pushed",
      .default_text = "10", .group = "Gateway", .reloadable = true}),
    // A list in the file is refused as a text, so that the error quotes it.
    SetBy(SetGatewayAddress, Bind<ParseGatewayAddress, &AgentOptions::gateway_address>({
      .key = "gateway_address", .flag = "--gateway", .environment = "PERSIA_METRICS_GATEWAY_ADDR", .placeholder = "ADDRESS",
      .help = "PushGateway: host:port, a URL, or off", .default_text = "metrics_gateway:9091",
      .group = "Gateway", .reloadable = true, .decides = Output::kGateway, .kind = ValueKind::kTextList, .copy = CopyGatewayAddress})),
    Bind<Seconds{100, 300'000}, &AgentOptions::push_timeout>({
      .key = "push_timeout_seconds", .flag = "--push-timeout", .placeholder = "DURATION",
      .help = "Timeout for a push, also for the last one", .default_text = "10", .group = "Gateway", .reloadable = true}),
    Bind<Seconds{0, 3'600'000}, &AgentOptions::finish_timeout>({
      .key = "finish_timeout_seconds", .flag = "--finish-timeout", .environment = "PERSIA_METRICS_FINISH_TIMEOUT",
      .placeholder = "DURATION", .help = "How long exec waits for the agent when the command has ended",
      .default_text = "push_timeout_seconds + 1", .group = "Gateway"}),
    Bind<Seconds{0, 86'400'000}, &AgentOptions::linger>({
      .key = "linger_seconds", .flag = "--linger", .environment = "PERSIA_METRICS_LINGER", .placeholder = "DURATION",
      .help = "How long exec's agent serves its pages after the command has ended", .default_text = "0", .group = "Pages"}),
    Bind<ParseWord<PushFormat::Choice>, &AgentOptions::push_format>({
      .key = "push_format", .flag = "--push-format", .placeholder = "auto|text|protobuf",
      .help = "Format of a push; auto: protobuf for a PushGateway, else text", .default_text = "auto", .group = "Gateway",
      .reloadable = true}),
    Bind<ParseFileName, &AgentOptions::gateway_access, &GatewayAccessOptions::ca_file>({
      .key = "gateway_ca_file", .flag = "--gateway-ca-file", .environment = "PERSIA_METRICS_GATEWAY_CA_FILE", .placeholder = "FILE",
      .help = "CA certificates for the gateway, PEM; none: the system's", .default_text = "none", .group = "Gateway", .reloadable = true,
      .decides = Output::kGateway}),
    Bind<ParseFileName, &AgentOptions::gateway_access, &GatewayAccessOptions::cert_file>({
      .key = "gateway_cert_file", .flag = "--gateway-cert-file", .environment = "PERSIA_METRICS_GATEWAY_CERT_FILE", .placeholder = "FILE",
      .help = "Client certificate for the gateway, PEM", .default_text = "none", .group = "Gateway", .reloadable = true,
      .decides = Output::kGateway}),
    Bind<ParseFileName, &AgentOptions::gateway_access, &GatewayAccessOptions::key_file>({
      .key = "gateway_key_file", .flag = "--gateway-key-file", .environment = "PERSIA_METRICS_GATEWAY_KEY_FILE", .placeholder = "FILE",
      .help = "Key of the client certificate, PEM, without a passphrase", .default_text = "none", .group = "Gateway", .reloadable = true,
      .decides = Output::kGateway}),
    Bind<ParseServerName, &AgentOptions::gateway_access, &GatewayAccessOptions::server_name>({
      .key = "gateway_server_name", .flag = "--gateway-server-name", .environment = "PERSIA_METRICS_GATEWAY_SERVER_NAME",
      .placeholder = "NAME", .help = "Name in the gateway's certificate, if it differs from the address", .default_text = "none",
      .group = "Gateway", .reloadable = true, .decides = Output::kGateway}),
    Bind<ParseUserName, &AgentOptions::gateway_access, &GatewayAccessOptions::username>({
      .key = "gateway_username", .flag = "--gateway-username", .environment = "PERSIA_METRICS_GATEWAY_USERNAME", .placeholder = "NAME",
      .help = "User for basic authentication at the gateway", .default_text = "none", .group = "Gateway", .reloadable = true,
      .decides = Output::kGateway}),
    Bind<ParseSecret, &AgentOptions::gateway_access, &GatewayAccessOptions::password>({
      .key = "gateway_password", .environment = "PERSIA_METRICS_GATEWAY_PASSWORD", .help = "Password of that user", .default_text = "none",
      .group = "Gateway", .reloadable = true, .secret = true, .decides = Output::kGateway}),
    Bind<ParseFileName, &AgentOptions::gateway_access, &GatewayAccessOptions::password_file>({
      .key = "gateway_password_file", .flag = "--gateway-password-file", .environment = "PERSIA_METRICS_GATEWAY_PASSWORD_FILE",
      .placeholder = "FILE", .help = "File with the user's password; read again when it changes", .default_text = "none",
      .group = "Gateway", .reloadable = true, .decides = Output::kGateway}),
    Bind<ParseSecret, &AgentOptions::gateway_access, &GatewayAccessOptions::bearer_token>({
      .key = "gateway_bearer_token", .environment = "PERSIA_METRICS_GATEWAY_BEARER_TOKEN",
      .help = "Token for bearer authentication at the gateway", .default_text = "none", .group = "Gateway", .reloadable = true,
      .secret = true, .decides = Output::kGateway}),
    Bind<ParseFileName, &AgentOptions::gateway_access, &GatewayAccessOptions::bearer_token_file>({
      .key = "gateway_bearer_token_file", .flag = "--gateway-bearer-token-file", .environment = "PERSIA_METRICS_GATEWAY_BEARER_TOKEN_FILE",
      .placeholder = "FILE", .help = "File with the bearer token; read again when it changes", .default_text = "none", .group = "Gateway",
      .reloadable = true, .decides = Output::kGateway}),
    ShownBy(ProxyText, Bind<ParseProxy, &AgentOptions::gateway_proxy, &ProxySettings::url>({
      .key = "gateway_proxy_url", .flag = "--gateway-proxy-url", .environment = "PERSIA_METRICS_GATEWAY_PROXY_URL", .placeholder = "URL",
      .help = "Proxy through which the gateway is reached: http, https or socks5", .default_text = "none", .group = "Gateway",
      .reloadable = true, .decides = Output::kGateway})),
    Bind<ParseBoolean, &AgentOptions::gateway_proxy, &ProxySettings::from_environment>({
      .key = "gateway_proxy_from_environment", .flag = "--gateway-proxy-from-environment",
      .environment = "PERSIA_METRICS_GATEWAY_PROXY_FROM_ENVIRONMENT", .placeholder = "BOOL",
      .help = "Whether the proxy is that of HTTP_PROXY, HTTPS_PROXY and NO_PROXY", .default_text = "false", .group = "Gateway",
      .reloadable = true, .decides = Output::kGateway}),
    Bind<AddRemoteWrite, &AgentOptions::remote_write>({
      .key = "remote_write", .flag = "--remote-write", .environment = "PERSIA_METRICS_REMOTE_WRITE_URL", .placeholder = "URL",
      .help = "URL of a database that receives samples by remote write; may be repeated", .default_text = "none", .group = "Remote write",
      .reloadable = true, .kind = ValueKind::kTargets}),
    Bind<ParseAbsolutePath, &AgentOptions::metrics_dir>({
      .key = "metrics_dir", .flag = "--metrics-dir", .environment = "PERSIA_METRICS_DIR", .placeholder = "DIR",
      .help = "Directory of the workers' segments", .default_text = "/dev/shm/persia-metrics-<uid>/<job>", .group = "Directory"}),
    Bind<ParseText, &AgentOptions::metrics_dir_group>({
      .key = "metrics_dir_group", .flag = "--metrics-dir-group", .environment = "PERSIA_METRICS_DIR_GROUP", .placeholder = "GROUP",
      .help = "Group that shares the directory, by name or number", .default_text = "none", .group = "Directory"}),
    Bind<Bytes{65536, 1ULL << 40}, &AgentOptions::max_segment_bytes>({
      .key = "max_segment_bytes", .flag = "--max-segment-bytes", .placeholder = "SIZE",
      .help = "Size limit of a segment; a larger one is refused", .default_text = "1073741824", .group = "Directory", .reloadable = true}),
    Bind<ParseAbsolutePath, &AgentOptions::state_dir>({
      .key = "state_dir", .flag = "--state-dir", .environment = "PERSIA_METRICS_STATE_DIR", .placeholder = "DIR",
      .help = "Where the agent keeps its state", .default_text = "beside the segments", .group = "Directory"}),
    Bind<Seconds{0, 31'536'000'000}, &AgentOptions::gauge_ttl>({
      .key = "gauge_ttl_seconds", .flag = "--gauge-ttl", .placeholder = "DURATION",
      .help = "How long the gauges of ended processes are exposed, and instances without a process", .default_text = "300", .group = "Job",
      .reloadable = true}),
    Bind<Seconds{0, 86'400'000}, &AgentOptions::hang_after>({
      .key = "hang_after_seconds", .flag = "--hang-after", .placeholder = "DURATION",
      .help = "How long a worker's metrics may stand still before it counts as hung; 0: never",
      .default_text = "by the job's rhythm", .group = "Job", .reloadable = true}),
    Bind<ParseBoolean, &AgentOptions::machine_metrics>({
      .key = "machine_metrics", .flag = "--machine-metrics", .environment = "PERSIA_METRICS_MACHINE", .placeholder = "BOOL",
      .help = "Whether memory, processor, disk and network of the job are read", .default_text = "true", .group = "Job",
      .reloadable = true}),
    Bind<Count{1, 100'000'000}, &AgentOptions::max_series>({
      .key = "max_series", .flag = "--max-series", .placeholder = "N", .help = "Limit for exposed series; further ones are left out",
      .default_text = "200000", .group = "Limits", .reloadable = true}),
    Bind<Count{1, 100'000'000}, &AgentOptions::max_series_per_instance>({
      .key = "max_series_per_instance", .flag = "--max-series-per-instance", .placeholder = "N",
      .help = "The same limit for one instance (role and replica)", .default_text = "50000", .group = "Limits", .reloadable = true}),
    Bind<Bytes{32 << 20, 1ULL << 40}, &AgentOptions::max_foreign_bytes>({
      .key = "max_foreign_bytes", .flag = "--max-foreign-bytes", .placeholder = "SIZE",
      .help = "Memory for files of state, and for segments of ended processes and of other users", .default_text = "268435456",
      .group = "Limits", .reloadable = true}),
    {.key = "listen_address", .flag = "--listen", .environment = "PERSIA_METRICS_LISTEN_ADDR", .placeholder = "ADDRESS",
     .help = "Where /metrics is served: address:port, or off", .default_text = "127.0.0.1:19091", .group = "Pages", .set = ParseListenAddress,
     .get = ListenAddressText},
    Bind<ParseBoolean, &AgentOptions::enable_lifecycle>({
      .key = "enable_lifecycle", .flag = "--web.enable-lifecycle", .placeholder = "BOOL",
      .help = "Whether POST /-/reload reloads the settings", .default_text = "false", .group = "Pages"}),
    Bind<Seconds{0, 604'800'000}, &AgentOptions::history>({
      .key = "history_seconds", .flag = "--history", .placeholder = "DURATION",
      .help = "How long collected values are kept for the page's charts; 0: not at all", .default_text = "1800", .group = "Pages",
      .reloadable = true}),
    Bind<Bytes{1 << 20, 1ULL << 36}, &AgentOptions::history_max_bytes>({
      .key = "history_max_bytes", .flag = "--history-max-bytes", .placeholder = "SIZE",
      .help = "Memory limit of that history; above it, the oldest values are removed", .default_text = "67108864", .group = "Pages",
      .reloadable = true}),
    Bind<ParseFileName, &AgentOptions::report_file>({
      .key = "report_file", .flag = "--report", .environment = "PERSIA_METRICS_REPORT", .placeholder = "FILE",
      .help = "Where the agent writes its page at the end, as one HTML file; if the name ends in .json, the summary of the run; off: nowhere",
      .default_text = "a file in ~/.local/state/persia-metrics", .group = "Pages"}),
    Bind<ParseFileName, &AgentOptions::web_config_file>({
      .key = "web_config_file", .flag = "--web.config.file", .environment = "PERSIA_METRICS_WEB_CONFIG_FILE", .placeholder = "FILE",
      .help = "File with users and TLS settings of the pages, as for Prometheus's exporters", .default_text = "none", .group = "Pages",
      .decides = Output::kPages}),
    Bind<ParseHostNames, &AgentOptions::web_external_hosts>({
      .key = "web_external_host", .flag = "--web.external-host", .environment = "PERSIA_METRICS_WEB_EXTERNAL_HOST",
      .placeholder = "NAMES", .help = "Names by which browsers reach the pages, separated by commas; .example.com: all below it",
      .default_text = "none", .group = "Pages", .reloadable = true, .kind = ValueKind::kTextList}),
    Bind<ParseAbsolutePath, &AgentOptions::fifo>({
      .key = "fifo", .flag = "--fifo", .environment = "PERSIA_METRICS_FIFO", .placeholder = "FILE",
      .help = "Named pipe for Benchmark AI's emit", .default_text = "none", .group = "Directory"}),
    Bind<ParseEventsFile, &AgentOptions::events_file>({
      .key = "events_file", .flag = "--events-file", .environment = "PERSIA_METRICS_EVENTS_FILE", .placeholder = "FILE",
      .help = "Where event records are written as JSON lines; - is stdout", .default_text = "none", .group = "Directory"}),
    Bind<Count{0, 100}, &AgentOptions::stderr_tail>({
      .key = "stderr_tail", .flag = "--stderr-tail", .placeholder = "LINES",
      .help = "Lines at the end of a dead worker's stderr that its death shows, if it is a file; 0: none", .default_text = "0",
      .group = "Job", .reloadable = true}),
    Bind<ParseWord<GpuMode>, &AgentOptions::gpu>({
      .key = "gpu", .flag = "--gpu", .environment = "PERSIA_METRICS_GPU", .placeholder = "auto|off",
      .help = "Whether GPUs are read, if there are any", .default_text = "auto", .group = "Job", .reloadable = true}),
    Bind<ParseLabel, &AgentOptions::labels>({
      .key = "labels", .flag = "--label", .placeholder = "NAME=VALUE", .help = "Label for each series; may be repeated",
      .default_text = "none", .group = "Labels", .reloadable = true, .kind = ValueKind::kLabels}),
    Bind<ParseMappingFile, &AgentOptions::mapping_file>({
      .key = "mapping_file", .flag = "--mapping-file", .environment = "PERSIA_METRICS_MAPPING_FILE", .placeholder = "FILE",
      .help = "Rules for names, labels and types of metrics: a file, bundled, or none", .default_text = "bundled", .group = "Labels",
      .reloadable = true, .copy = CopyMapping, .content = [](const AgentOptions& o) -> const std::string& { return o.mapping_text; }}),
    Bind<ParseWord<OnJobEnd>, &AgentOptions::on_job_end>({
      .key = "on_job_end", .flag = "--on-job-end", .placeholder = "keep|delete",
      .help = "Whether the job's groups stay on the gateway when the job ends", .default_text = "keep", .group = "Gateway"}),
    Bind<ParseWord<OnInstanceEnd>, &AgentOptions::on_instance_end>({
      .key = "on_instance_end", .flag = "--on-instance-end", .placeholder = "delete|keep",
      .help = "Whether a group stays on the gateway after its processes have ended", .default_text = "delete", .group = "Gateway"}),
    Bind<ParseRunId, &AgentOptions::run_id>({
      .key = "run_id", .flag = "--run-id", .environment = "PERSIA_RUN_ID", .other_environment = kTorchRunId, .placeholder = "ID",
      .help = "The run to start or to continue", .default_text = "the unfinished run, else generated", .group = "Job"}),
    Bind<Count{0, INT_MAX}, &AgentOptions::replica>({
      .flag = "--replica", .environment = metrics::kReplicaVariable, .other_environment = metrics::kRankVariables, .placeholder = "N",
      .help = "The agent's own number: instance=\"rep_N\"", .default_text = "0", .group = "Labels"}),
    Bind<ParseText, &AgentOptions::ip_addr>({
      .key = "ip_addr", .flag = "--ip-addr", .environment = "PERSIA_IP_ADDR", .placeholder = "ADDRESS", .help = "The label ip_addr",
      .default_text = "the address towards the gateway", .group = "Labels"}),
    Bind<ParseWord<LogLevel>, &AgentOptions::log_level>({
      .key = "log_level", .flag = "--log-level", .placeholder = "LEVEL", .help = "debug, info, warning (or warn), error or off",
      .default_text = "info", .group = "Log", .reloadable = true}),
    Bind<ParseWord<LogFormat>, &AgentOptions::log_format>({
      .key = "log_format", .flag = "--log-format", .placeholder = "text|json", .help = "Format of log lines on stderr",
      .default_text = "text", .group = "Log", .reloadable = true}),
};
// clang-format on

}  // namespace

std::span<const Setting> Settings() { return kSettings; }

}  // namespace persia::agent

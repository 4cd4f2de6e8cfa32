#include "app/settings.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../lib/src/job_directory.h"
#include "app/address.h"
#include "app/nearest.h"
#include "app/text.h"

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

Status SetEnabled(std::string_view text, AgentOptions& options) {
  static constexpr Word<bool> kWords[] = {{"true", true}, {"false", false}, {"1", true},  {"0", false},
                                          {"yes", true},  {"no", false},    {"on", true}, {"off", false}};
  return SetWord(text, kWords, options.enable_metrics);
}

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
  if (Status status = CheckGatewayAddress(text); !status.ok()) {
    return status;
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

Status SetMetricsDirGroup(std::string_view text, AgentOptions& options) {
  if (Status status = CheckText(text, "a group"); !status.ok()) {
    return status;
  }
  options.metrics_dir_group = text;
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

Status AddLabel(std::string_view text, AgentOptions& options) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Bad(text, "is not a label (name=value)");
  }
  const std::string name(text.substr(0, equals));
  const std::string_view value = text.substr(equals + 1);
  if (name.empty() || IsDigit(name[0]) || !std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); })) {
    return Bad(name, "is not a label's name (letters, digits and '_', not beginning with a digit)");
  }
  static constexpr std::string_view kTaken[] = {"job", "instance", "ip_addr", "role", "le", "quantile"};
  if (name.starts_with("__") || std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken)) {
    return Bad(name, "is a label of Prometheus or of the agent itself (not: job, instance, ip_addr, role, le, quantile, __*)");
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

Status SetLogLevel(std::string_view text, AgentOptions& options) {
  static constexpr Word<LogLevel> kWords[] = {{"debug", LogLevel::kDebug},
                                              {"info", LogLevel::kInfo},
                                              {"warning", LogLevel::kWarning},
                                              {"error", LogLevel::kError},
                                              {"off", LogLevel::kOff}};
  return SetWord(text, kWords, options.log_level);
}
Status SetLogFormat(std::string_view text, AgentOptions& options) {
  static constexpr Word<LogFormat> kWords[] = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
  return SetWord(text, kWords, options.log_format);
}

// clang-format off: a table.
constexpr Setting kSettings[] = {
    {"enable_metrics", "", "--enable-metrics", "PERSIA_METRICS_ENABLED", "", "BOOL",
     "Whether metrics are collected at all", ValueKind::kBoolean, SetEnabled},
    {"job_name", "", "--job", "PERSIA_JOB_NAME", "", "NAME",
     "The training job, to tell it from others", ValueKind::kText, SetJobName},
    {"push_interval_seconds", "push_interval_sec", "--push-interval", "PERSIA_METRICS_PUSH_INTERVAL", "", "SECONDS",
     "How often metrics are read and pushed", ValueKind::kNumber, SetPushInterval},
    {"gateway_address", "", "--gateway", "PERSIA_METRICS_GATEWAY_ADDR", "", "ADDRESS",
     "The PushGateway, as host:port or URL", ValueKind::kText, SetGatewayAddress},
    {"connect_timeout_seconds", "", "--connect-timeout", "", "", "SECONDS",
     "How long to wait for a connection to the gateway", ValueKind::kNumber, SetConnectTimeout},
    {"push_timeout_seconds", "", "--push-timeout", "", "", "SECONDS",
     "How long one push may take, the last one included", ValueKind::kNumber, SetPushTimeout},
    {"metrics_dir", "", "--metrics-dir", "PERSIA_METRICS_DIR", "", "DIR",
     "The job's directory of segments", ValueKind::kText, SetMetricsDir},
    {"metrics_dir_group", "", "--metrics-dir-group", "", "", "GROUP",
     "A group that shares the directory, by name or number", ValueKind::kText, SetMetricsDirGroup},
    {"state_dir", "", "--state-dir", "", "", "DIR",
     "Where the agent keeps its state", ValueKind::kText, SetStateDir},
    {"listen_address", "", "--listen", "PERSIA_METRICS_LISTEN_ADDR", "", "ADDRESS",
     "Where /metrics is served: IPv4:port, or off", ValueKind::kText, SetListenAddress},
    {"labels", "", "--label", "", "", "NAME=VALUE",
     "A label for each series; may be given several times", ValueKind::kLabels, AddLabel},
    {"on_job_end", "", "--on-job-end", "", "", "keep|delete",
     "What becomes of the job's groups when it ends", ValueKind::kText, SetOnJobEnd},
    {"on_instance_end", "", "--on-instance-end", "", "", "delete|keep",
     "What becomes of a group whose processes left", ValueKind::kText, SetOnInstanceEnd},
    {"run_id", "", "--run-id", "PERSIA_RUN_ID", "TORCHELASTIC_RUN_ID", "ID",
     "The run to begin or to go on with", ValueKind::kText, SetRunId},
    {"", "", "--replica", "REPLICA_INDEX", "RANK", "N",
     "The agent's own number: instance=\"rep_N\"", ValueKind::kNumber, SetReplica},
    {"ip_addr", "", "--ip-addr", "PERSIA_IP_ADDR", "", "ADDRESS",
     "The ip_addr label", ValueKind::kText, SetIpAddr},
    {"log_level", "", "--log-level", "", "", "LEVEL",
     "debug, info, warning, error or off", ValueKind::kText, SetLogLevel},
    {"log_format", "", "--log-format", "", "", "text|json",
     "How log lines are written to stderr", ValueKind::kText, SetLogFormat},
};
// clang-format on

}  // namespace

std::span<const Setting> Settings() { return kSettings; }

}  // namespace persia::agent

#include "app/setters.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/nearest.h"
#include "app/text.h"
#include "lib/src/job_directory.h"
#include "net/gateway_list.h"

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

Status SetCount(std::string_view text, uint64_t least, uint64_t most, std::string_view what, uint64_t& into) {
  uint64_t count = 0;
  if (!ParseNumber(text, count) || count < least || count > most) {
    return Bad(text,
               "is not a number of " + std::string(what) + " (" + std::to_string(least) + " to " + std::to_string(most) + ")");
  }
  into = count;
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

// In the order of the enumeration.
constexpr Word<LogLevel> kLogLevels[] = {{"debug", LogLevel::kDebug},
                                         {"info", LogLevel::kInfo},
                                         {"warning", LogLevel::kWarning},
                                         {"error", LogLevel::kError},
                                         {"off", LogLevel::kOff}};

}  // namespace

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
  if (const auto gateways = ParseGateways(text); text != "off" && !gateways.ok()) {
    return Error{OneLine(gateways.error())};  // it repeats the text, which may have lines of its own
  }
  options.gateway_address = text;
  return Done{};
}

Status SetMetricsDir(std::string_view text, AgentOptions& options) { return SetPath(text, options.metrics_dir); }
Status SetEventsFile(std::string_view text, AgentOptions& options) {
  if (text == "-") {
    options.events_file = text;
    return Done{};
  }
  return SetPath(text, options.events_file);
}
Status SetFifo(std::string_view text, AgentOptions& options) { return SetPath(text, options.fifo); }
Status SetStateDir(std::string_view text, AgentOptions& options) { return SetPath(text, options.state_dir); }

Status SetPushFormat(std::string_view text, AgentOptions& options) {
  using Choice = PushFormat::Choice;
  static constexpr Word<Choice> kWords[] = {{"auto", Choice::kAuto}, {"text", Choice::kText}, {"protobuf", Choice::kProtobuf}};
  return SetWord(text, kWords, options.push_format);
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

Status SetHistory(std::string_view text, AgentOptions& options) {
  return SetSeconds(text, 0, 604800, "0 to 604800", options.history);
}

Status SetHistoryMaxBytes(std::string_view text, AgentOptions& options) {
  return SetCount(text, 1 << 20, 1ULL << 36, "bytes", options.history_max_bytes);
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

Status SetMappingFile(std::string_view text, AgentOptions& options) {
  if (Status status = CheckText(text, "a file's name"); !status.ok()) {
    return status;
  }
  options.mapping_file = text == "bundled" ? "" : text;
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

Status SetLogLevel(std::string_view text, AgentOptions& options) { return SetWord(text, kLogLevels, options.log_level); }

Status SetLogFormat(std::string_view text, AgentOptions& options) {
  static constexpr Word<LogFormat> kWords[] = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
  return SetWord(text, kWords, options.log_format);
}

std::string_view NameOf(LogLevel level) { return kLogLevels[static_cast<size_t>(level)].text; }

}  // namespace persia::agent

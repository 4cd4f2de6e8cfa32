#include "config/values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "lib/src/segment_format/job_directory.h"
#include "naming/mapping_values.h"
#include "net/http_server.h"
#include "net/url.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxFileName = 255;
constexpr size_t kMaxSecret = 16384;

Status ParseChecked(std::string_view text, std::string_view what, std::string& value) {
  Status status = CheckText(text, what);
  if (status.ok()) value = text;
  return status;
}

}  // namespace

Status Seconds::operator()(std::string_view text, std::chrono::milliseconds& value) const {
  using std::chrono::milliseconds;
  const std::string range = ToText(milliseconds(min_ms)) + " to " + ToText(milliseconds(max_ms));
  const Result<milliseconds> duration = ParseDuration(text);
  if (!duration.ok()) return Bad(text, "is not a duration (10s, 1m30s, or seconds: " + range + ")");
  if (duration.value().count() < min_ms || duration.value().count() > max_ms)
    return Bad(text, "is out of range (seconds, " + range + ")");
  value = duration.value();
  return Done{};
}

Status Seconds::operator()(std::string_view text, std::optional<std::chrono::milliseconds>& value) const {
  std::chrono::milliseconds parsed{};
  Status status = (*this)(text, parsed);
  if (status.ok()) value = parsed;
  return status;
}

Status PrometheusDuration::operator()(std::string_view text, std::chrono::milliseconds& value) const {
  const std::string range = (or_zero ? "0s, or " : "") + ToText(std::chrono::milliseconds(min_ms)) + " s to " +
                            ToText(std::chrono::milliseconds(max_ms)) + " s";
  const Result<std::chrono::milliseconds> duration = ParsePrometheusDuration(text);
  if (!duration.ok()) return Error{duration.error() + ": " + range};
  const int64_t ms = duration.value().count();
  if ((ms < min_ms || ms > max_ms) && !(or_zero && ms == 0)) return Bad(text, "is out of range (" + range + ")");
  value = duration.value();
  return Done{};
}

Status Bytes::operator()(std::string_view text, uint64_t& value) const {
  const std::string range = std::to_string(min) + " to " + std::to_string(max);
  const Result<uint64_t> size = ParseSize(text);
  if (!size.ok()) return Bad(text, "is not a size (64MiB, 1GB, or bytes: " + range + ")");
  if (size.value() < min || size.value() > max) return Bad(text, "is out of range (bytes, " + range + ")");
  value = size.value();
  return Done{};
}

Status ParseBoolean(std::string_view text, bool& value) {
  static constexpr Choice<bool> kWords[] = {{"true", true}, {"false", false}, {"1", true},  {"0", false},
                                            {"yes", true},  {"no", false},    {"on", true}, {"off", false}};
  // YAML has True, TRUE, Yes, ON, ...
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  Result<bool> parsed = ParseChoice(lower, kWords);
  if (!parsed.ok()) parsed = ParseChoice(text, kWords);  // the error quotes the text as it is
  if (!parsed.ok()) return Error{parsed.error()};
  value = parsed.value();
  return Done{};
}

Status ParseText(std::string_view text, std::string& value) { return ParseChecked(text, "the text", value); }

Status ParseFileName(std::string_view text, std::string& value) { return ParseChecked(text, "a file's name", value); }

Status ParseAbsolutePath(std::string_view text, std::string& value) {
  if (!text.empty() && text.front() != '/')
    return Bad(text, "is not an absolute path: workers that start in other directories must find it too");
  return ParseChecked(text, "a path", value);
}

Status ParseJobName(std::string_view text, std::string& value) {
  if (metrics::EncodeJobName(text).size() > kMaxFileName) {
    return Bad(text,
               "is too long for a job's name (255 bytes; each byte but letters, digits, '_', '-', '.' counts three times)");
  }
  return ParseChecked(text, "a job's name", value);
}

Status ParseGatewayAddress(std::string_view text, std::string& value) {
  if (const auto gateway = GatewayAddress::Parse(text); text != "off" && !gateway.ok())
    return Error{OneLine(gateway.error())};  // it quotes the text, which may have several lines
  value = text;
  return Done{};
}

Status ParseEventsFile(std::string_view text, std::string& value) {
  if (text == "-") {
    value = text;
    return Done{};
  }
  return ParseAbsolutePath(text, value);
}

Status ParseMappingFile(std::string_view text, std::string& value) {
  Status status = ParseFileName(text, value);
  if (value == "bundled") value.clear();
  return status;
}

Status ParseRunId(std::string_view text, std::string& value) {
  if (text.size() > 256) return Bad(text, "is too long for a run id (at most 256 bytes)");
  if (text == "none") return Done{};  // torchrun sets "none" for each run without an id
  return ParseChecked(text, "a run id", value);
}

Status ParseServerName(std::string_view text, std::string& value) {
  const bool good = !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '-' || c == '.';
  });
  if (!good) return Bad(text, "is not a host name or an IPv4 address as a certificate has it (without port)");
  value = text;
  return Done{};
}

Status ParseUserName(std::string_view text, std::string& value) {
  if (text.find(':') != std::string_view::npos) {
    // Not quoted: it may be "user:password".
    return Error{"has a colon, which a user's name cannot have; give the password in password_file"};
  }
  return ParseChecked(text, "a user's name", value);
}

Status ParseProxy(std::string_view text, std::string& value) {
  const auto url = text.empty() ? Result<Url>(Url()) : ParseProxyUrl(text);
  if (!url.ok()) return Error{url.error() + "; expected http://host:port, https://host:port or socks5://host:port"};
  if (url.value().has_query() || url.value().has_fragment()) return Error{"a proxy's URL has no query and no fragment"};
  value = text;
  return Done{};
}

Status ParseSecret(std::string_view text, std::string& value) {
  const bool has_control =
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  if (text.empty() || has_control || text.size() > kMaxSecret)
    return Error{"is empty, longer than 16384 bytes or has control characters (it is not repeated here)"};
  value = text;
  return Done{};
}

Status ParseListenAddress(std::string_view text, AgentOptions& options) {
  // Checked here, because the web server reports an error only when it starts.
  if (const Status status = HttpServer::CheckAddress(text); text != "off" && !status.ok())
    return Bad(ShownAddress(text), status.error() + "; off: no pages");
  options.listen_address = text == "off" ? "" : text;
  options.listen_address_is_default = false;
  return Done{};
}

Status AddLabel(const std::string& name, std::string_view value, Labels& labels) {
  static constexpr std::string_view kReserved[] = {"job", "instance", "ip_addr", "role", "agent", "le", "quantile"};
  if (name.starts_with("__") || std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved)) {
    return Bad(name,
               "is a label of Prometheus or of the agent itself (not: job, instance, ip_addr, role, agent, le, quantile, __*)");
  }
  if (Status status = CheckLabelName(name); !status.ok()) return status;
  if (Status status = CheckText(value, "a label's value"); !status.ok()) return status;
  const auto place = std::lower_bound(labels.begin(), labels.end(), name,
                                      [](const auto& label, const std::string& wanted) { return label.first < wanted; });
  if (place != labels.end() && place->first == name) return Bad(name, "is given twice");
  labels.insert(place, {name, std::string(value)});
  return Done{};
}

Status ParseLabel(std::string_view text, Labels& labels) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return Bad(text, "is not a label (name=value)");
  return AddLabel(std::string(text.substr(0, equals)), text.substr(equals + 1), labels);
}

std::string ToText(std::chrono::milliseconds value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, static_cast<double>(value.count()) / 1000).ptr};
}

Status ParseHostNames(std::string_view text, std::vector<std::string>& names) {
  std::vector<std::string> parsed;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    std::string_view name = text.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    const std::string_view host = name.substr(name.starts_with('.') ? 1 : 0);
    const bool is_name = !host.empty() && host.front() != '.' && host.back() != '.' &&
                         std::ranges::all_of(host, [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.'; });
    if (!is_name)
      return Bad(ShownAddress(name), "is not a host name without scheme and port (metrics.example.com, .example.com)");
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    parsed.push_back(std::move(lower));
    if (more) text.remove_prefix(comma + 1);
  }
  names = std::move(parsed);
  return Done{};
}

std::string ToText(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += (text.empty() ? "{" : ", ") + name + ": " + Quoted(value);
  return text.empty() ? text : text + "}";
}

std::string ToText(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace persia::agent

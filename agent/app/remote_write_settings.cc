#include "app/remote_write_settings.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "app/gateway_settings.h"
#include "app/text.h"
#include "net/gateway_address.h"

namespace persia::agent {
namespace {

constexpr size_t kLongestName = 64;

constexpr std::string_view kTargetKeys[] = {"url",
                                            "name",
                                            "headers",
                                            "ca_file",
                                            "cert_file",
                                            "key_file",
                                            "server_name",
                                            "username",
                                            "password",
                                            "password_file",
                                            "bearer_token",
                                            "bearer_token_file",
                                            "timeout_seconds",
                                            "send_interval_seconds",
                                            "queue_max_bytes",
                                            "queue_max_age_seconds",
                                            "max_shards",
                                            "max_samples_per_send",
                                            "write_relabel_configs"};
constexpr std::string_view kRelabelKeys[] = {"action", "source_labels", "separator", "regex", "target_label", "replacement"};
// In the order of the enumeration.
constexpr std::string_view kActions[] = {"replace", "keep", "drop", "labeldrop", "labelkeep"};
// The protocol's own, and what the other settings say.
constexpr std::string_view kReservedHeaders[] = {"authorization",     "connection",   "content-encoding",
                                                 "content-length",    "content-type", "host",
                                                 "transfer-encoding", "user-agent",   "x-prometheus-remote-write-version"};

// What takes a text of the gateway's access, and so of a target's.
struct AccessKey {
  const char* key;
  Status (*set)(std::string_view text, AgentOptions& options);
};
constexpr AccessKey kAccessKeys[] = {{"ca_file", SetGatewayCaFile},
                                     {"cert_file", SetGatewayCertFile},
                                     {"key_file", SetGatewayKeyFile},
                                     {"server_name", SetGatewayServerName},
                                     {"username", SetGatewayUsername},
                                     {"password", SetGatewayPassword},
                                     {"password_file", SetGatewayPasswordFile},
                                     {"bearer_token", SetGatewayBearerToken},
                                     {"bearer_token_file", SetGatewayBearerTokenFile}};

Result<std::chrono::milliseconds> ParseSeconds(std::string_view text, double least, double most, const char* range) {
  double seconds = 0;
  if (!ParseNumber(text, seconds) || !(seconds >= least && seconds <= most)) {
    return Bad(text, std::string("is not a number of seconds (") + range + ")");
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}
Result<std::chrono::milliseconds> ParseTimeout(std::string_view text) { return ParseSeconds(text, 0.1, 300, "0.1 to 300"); }
Result<std::chrono::milliseconds> ParseInterval(std::string_view text) { return ParseSeconds(text, 0, 86400, "0 to 86400"); }
Result<std::chrono::milliseconds> ParseAge(std::string_view text) {
  return ParseSeconds(text, 60, 2592000, "60 to 2592000, 30 days");
}

template <class T>
Result<T> ParseCount(std::string_view text, T least, T most, const char* range) {
  T count = 0;
  if (!ParseNumber(text, count) || count < least || count > most) {
    return Bad(text, std::string("is not a number from ") + range);
  }
  return count;
}
Result<uint64_t> ParseBytes(std::string_view text) { return ParseCount<uint64_t>(text, 1 << 20, 1ULL << 40, "2^20 to 2^40"); }
Result<uint32_t> ParseShards(std::string_view text) { return ParseCount<uint32_t>(text, 1, 64, "1 to 64"); }
Result<uint32_t> ParseSamples(std::string_view text) { return ParseCount<uint32_t>(text, 100, 100'000, "100 to 100000"); }

Result<GatewayAddress> ParseUrl(std::string_view url) {
  const auto refuse = [url](const char* why) { return Bad(url.substr(0, url.rfind('@') == url.npos ? url.npos : 0), why); };
  if (url.find("://") == std::string_view::npos) {
    return refuse("is not a URL (http://victoria:8428/api/v1/write, http://prometheus:9090/api/v1/write)");
  }
  if (Status status = CheckText(url, "a URL"); !status.ok()) return Error{status.error()};
  if (url.find_first_of(" #") != std::string_view::npos)
    return refuse("has a blank or a fragment, which a URL to write to has not");
  if (url.find('@') != std::string_view::npos) {
    return Error{"a URL with user and password is not taken, since URLs are shown in logs; give username and password_file"};
  }
  auto address = GatewayAddress::Parse(url.substr(0, url.find('?')));
  if (!address.ok()) return Bad(ShownUrl(url), "is not a URL to write to: " + address.error());
  return std::move(address).value();
}

Status SetUrl(std::string_view url, RemoteWriteTarget& target) {
  const auto address = ParseUrl(url);
  if (!address.ok()) return Error{address.error()};
  target.url = url;
  if (target.name.empty()) target.name = address.value().HostAndPort();
  return Done{};
}

Result<std::string> ParseName(std::string_view text) {
  if (Status status = CheckText(text, "a name"); !status.ok()) return Error{status.error()};
  if (text.size() > kLongestName) return Bad(text, "is too long for a target's name (64 bytes)");
  return std::string(text);
}

std::string WhyNoHeader(const std::string& name, const std::string& value) {
  const bool is_token = !name.empty() && std::all_of(name.begin(), name.end(),
                                                     [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.'; });
  if (!is_token) return "is not a header's name";
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::find(std::begin(kReservedHeaders), std::end(kReservedHeaders), lower) != std::end(kReservedHeaders)) {
    return "is a header that the protocol or another setting decides";
  }
  // It may be secret: it is not repeated.
  return value.empty() || !CheckText(value, "a value").ok() ? "has a value that is empty or has control characters" : "";
}

void ReadHeaders(const YamlNode& map, NodeReader& reader, RemoteWriteTarget& target) {
  if (map.kind != YamlNode::Kind::kMap) {
    return reader.Fail(map, "headers: expected a map (X-Scope-OrgID: team), found " + std::string(map.KindName()));
  }
  for (const YamlNode::Entry& entry : map.entries) {
    const std::string why = entry.value->kind == YamlNode::Kind::kScalar ? WhyNoHeader(entry.key->text, entry.value->text)
                                                                         : "needs a text as its value";
    if (!why.empty()) {
      reader.Fail(*entry.key, "headers: " + Quoted(entry.key->text) + " " + why);
    } else {
      target.headers.emplace_back(entry.key->text, entry.value->text);
    }
  }
}

void ReadAccess(const NodeReader::Entries& entries, NodeReader& reader, RemoteWriteTarget& target) {
  AgentOptions as_gateway;
  for (const AccessKey& key : kAccessKeys) {
    const auto text = reader.Text(entries, key.key);
    if (!text) continue;
    if (Status status = key.set(*text, as_gateway); !status.ok()) {
      reader.Fail(*NodeReader::Find(entries, key.key), std::string(key.key) + ": " + status.error());
    }
  }
  target.access = as_gateway.gateway_access;
}

void ReadRule(const YamlNode& map, NodeReader& reader, std::vector<RelabelConfig>& rules) {
  constexpr char kPrefix[] = "write_relabel_configs: ";
  if (map.kind != YamlNode::Kind::kMap) {
    return reader.Fail(map, kPrefix + ("expected a map (action: drop ...), found " + std::string(map.KindName())));
  }
  const NodeReader::Entries entries = reader.EntriesOf(map, kRelabelKeys, kPrefix);
  RelabelConfig rule;
  if (const auto action = reader.Word(entries, "action", kActions)) rule.action = static_cast<RelabelAction>(*action);
  if (const YamlNode* labels = NodeReader::Find(entries, "source_labels")) {
    if (labels->kind != YamlNode::Kind::kSequence) {
      reader.Fail(*labels, kPrefix + ("source_labels: expected a list of labels, found " + std::string(labels->KindName())));
    }
    for (const auto& label : labels->items) rule.source_labels.push_back(label->text);
  }
  const std::pair<const char*, std::string*> texts[] = {{"separator", &rule.separator},
                                                        {"regex", &rule.regex},
                                                        {"target_label", &rule.target_label},
                                                        {"replacement", &rule.replacement}};
  for (const auto& [key, into] : texts) {
    if (const auto text = reader.Text(entries, key)) *into = *text;
  }
  if (const auto made = RelabelRule::Make(rule); !made.ok()) return reader.Fail(map, kPrefix + made.error());
  rules.push_back(std::move(rule));
}

template <class T>
void Take(std::optional<T> value, T& into) {
  if (value) into = *std::move(value);
}

void ReadTarget(const YamlNode& map, NodeReader& reader, std::vector<RemoteWriteTarget>& targets) {
  if (map.kind != YamlNode::Kind::kMap) {
    return reader.Fail(map, "remote_write: expected a map (url: http://...), found " + std::string(map.KindName()));
  }
  const NodeReader::Entries entries = reader.EntriesOf(map, kTargetKeys, "remote_write: ");
  RemoteWriteTarget target;
  Take(reader.Parsed<std::string>(entries, "name", ParseName), target.name);
  const YamlNode* url = NodeReader::Find(entries, "url");
  if (url == nullptr) return reader.Fail(map, "remote_write: a target needs a url");
  if (const auto text = reader.Text(entries, "url")) {
    if (Status status = SetUrl(*text, target); !status.ok()) reader.Fail(*url, "url: " + status.error());
  }
  if (const YamlNode* headers = NodeReader::Find(entries, "headers")) ReadHeaders(*headers, reader, target);
  ReadAccess(entries, reader, target);
  Take(reader.Parsed<std::chrono::milliseconds>(entries, "timeout_seconds", ParseTimeout), target.timeout);
  Take(reader.Parsed<std::chrono::milliseconds>(entries, "send_interval_seconds", ParseInterval), target.send_interval);
  Take(reader.Parsed<uint64_t>(entries, "queue_max_bytes", ParseBytes), target.queue_max_bytes);
  Take(reader.Parsed<std::chrono::milliseconds>(entries, "queue_max_age_seconds", ParseAge), target.queue_max_age);
  Take(reader.Parsed<uint32_t>(entries, "max_shards", ParseShards), target.max_shards);
  Take(reader.Parsed<uint32_t>(entries, "max_samples_per_send", ParseSamples), target.max_samples);
  if (const YamlNode* rules = NodeReader::Find(entries, "write_relabel_configs")) {
    if (rules->kind != YamlNode::Kind::kSequence) {
      reader.Fail(*rules, "write_relabel_configs: expected a list, found " + std::string(rules->KindName()));
    }
    for (const auto& rule : rules->items) ReadRule(*rule, reader, target.relabel);
  }
  targets.push_back(std::move(target));
}

}  // namespace

std::string ShownUrl(std::string_view url) {
  const size_t query = url.find('?');
  return query == std::string_view::npos ? std::string(url) : std::string(url.substr(0, query)) + "?...";
}

Status AddRemoteWrite(std::string_view url, AgentOptions& options) {
  RemoteWriteTarget target;
  if (Status status = SetUrl(url, target); !status.ok()) return status;
  options.remote_write.push_back(std::move(target));
  return Done{};
}

void ReadRemoteWrite(const YamlNode& list, NodeReader& reader, std::vector<RemoteWriteTarget>& targets) {
  if (list.kind == YamlNode::Kind::kNull) return;  // all commented out
  if (list.kind != YamlNode::Kind::kSequence) {
    return reader.Fail(list, "remote_write: expected a list (- url: http://...), found " + std::string(list.KindName()));
  }
  for (const auto& target : list.items) ReadTarget(*target, reader, targets);
}

std::vector<std::string> CheckRemoteWrite(const AgentOptions& options) {
  std::vector<std::string> errors;
  std::set<std::string> names;
  for (const RemoteWriteTarget& target : options.remote_write) {
    const std::string which = "remote_write " + Quoted(target.name) + ": ";
    if (!names.insert(target.name).second) {
      errors.push_back(which + "there are two targets of this name; give each a name of its own");
    }
    for (const std::string& error : CheckAccess(target.access, "", target.url.starts_with("https:") || target.url.empty(),
                                                "url " + Quoted(ShownUrl(target.url)))) {
      errors.push_back(which + error);
    }
  }
  return errors;
}

}  // namespace persia::agent

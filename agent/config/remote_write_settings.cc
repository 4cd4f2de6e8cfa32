#include "config/remote_write_settings.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <utility>

#include "base/text.h"
#include "config/gateway_settings.h"
#include "config/values.h"
#include "files/yaml_reader.h"
#include "net/gateway_address.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxName = 64;
constexpr char kTargetOff[] = "nothing is sent to this target";
constexpr std::string_view kRelabelKeys[] = {"action", "source_labels", "separator", "regex", "target_label", "replacement"};
constexpr Choice<RelabelAction> kActions[] = {{"replace", RelabelAction::kReplace},
                                              {"keep", RelabelAction::kKeep},
                                              {"drop", RelabelAction::kDrop},
                                              {"labeldrop", RelabelAction::kLabelDrop},
                                              {"labelkeep", RelabelAction::kLabelKeep}};
// Set by the protocol or by other settings.
constexpr std::string_view kReservedHeaders[] = {"authorization",     "connection",   "content-encoding",
                                                 "content-length",    "content-type", "host",
                                                 "transfer-encoding", "user-agent",   "x-prometheus-remote-write-version"};

Result<GatewayAddress> ParseUrl(std::string_view url) {
  if (url.find("://") == std::string_view::npos) {
    return Bad(url.substr(0, url.rfind('@') == url.npos ? url.npos : 0),  // before an @ there may be a password
               "is not a URL (http://victoria:8428/api/v1/write, http://prometheus:9090/api/v1/write)");
  }
  if (Status status = CheckText(url, "a URL"); !status.ok()) {
    return Error{status.error()};
  }
  if (url.find('@') != std::string_view::npos) {
    return Error{"a URL must not have a user and password, since logs show URLs; give username and password_file"};
  }
  if (url.find_first_of(" #") != std::string_view::npos) {
    return Bad(ShownUrl(url), "has a blank or a fragment, which a URL to write to cannot have");
  }
  auto address = GatewayAddress::Parse(url.substr(0, url.find('?')));
  if (!address.ok()) return Bad(ShownUrl(url), "is not a URL to write to: " + address.error());
  return address;
}

Status SetUrl(std::string_view url, RemoteWriteTarget& target) {
  const auto address = ParseUrl(url);
  if (!address.ok()) {
    return Error{address.error()};
  }
  target.url = url;
  if (target.name.empty()) {
    target.name = address.value().HostAndPort();
  }
  return Done{};
}

Status ParseTargetName(std::string_view text, std::string& value) {
  if (text.size() > kMaxName) return Bad(text, "is too long for a target's name (64 bytes)");
  return ParseText(text, value);
}

struct TargetSetting {
  std::string_view key;
  Status (*set)(std::string_view text, RemoteWriteTarget& target);
  bool has_safe_default = false;  // it does not decide where samples go
};
using Target = RemoteWriteTarget;
using Access = GatewayAccessOptions;
// `name` before `url`, which sets the default of the name.
constexpr TargetSetting kTargetSettings[] = {
    {"name", Set<ParseTargetName, &Target::name>, true},
    {"url", SetUrl},
    {"ca_file", Set<ParseFileName, &Target::access, &Access::ca_file>},
    {"cert_file", Set<ParseFileName, &Target::access, &Access::cert_file>},
    {"key_file", Set<ParseFileName, &Target::access, &Access::key_file>},
    {"server_name", Set<ParseServerName, &Target::access, &Access::server_name>},
    {"username", Set<ParseUserName, &Target::access, &Access::username>},
    {"password", Set<ParseSecret, &Target::access, &Access::password>},
    {"password_file", Set<ParseFileName, &Target::access, &Access::password_file>},
    {"bearer_token", Set<ParseSecret, &Target::access, &Access::bearer_token>},
    {"bearer_token_file", Set<ParseFileName, &Target::access, &Access::bearer_token_file>},
    {"timeout_seconds", Set<Seconds{100, 300'000}, &Target::timeout>, true},
    {"send_interval_seconds", Set<Seconds{0, 86'400'000}, &Target::send_interval>, true},
    {"queue_max_bytes", Set<Bytes{1 << 20, 1ULL << 40}, &Target::queue_max_bytes>, true},
    {"queue_max_age_seconds", Set<Seconds{60'000, 2'592'000'000}, &Target::queue_max_age>, true},
    {"max_shards", Set<Count{1, 64}, &Target::max_shards>, true},
    {"max_samples_per_send", Set<Count{100, 100'000}, &Target::max_samples>, true},
};

Status CheckHeader(const std::string& name, const YamlNode& value) {
  const bool is_token = !name.empty() && std::all_of(name.begin(), name.end(),
                                                     [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.'; });
  if (!is_token) return Bad(name, "is not a header's name");
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::find(std::begin(kReservedHeaders), std::end(kReservedHeaders), lower) != std::end(kReservedHeaders)) {
    return Bad(name, "is a header that the protocol or another setting decides");
  }
  if (value.kind != YamlNode::Kind::kScalar) return Bad(name, "needs a text as its value");
  if (!CheckText(value.text, "a value").ok()) {
    return Bad(name, "has a value that is empty or has control characters");  // the value may be secret
  }
  return Done{};
}

void ReadHeaders(const YamlNode& map, YamlReader& reader, RemoteWriteTarget& target) {
  if (!reader.Expect(map, YamlNode::Kind::kMap, "headers: expected a map (X-Scope-OrgID: team)")) return;
  for (const YamlNode::Entry& entry : map.entries) {
    if (const Status status = CheckHeader(entry.key->text, *entry.value); !status.ok()) {
      reader.Fail(*entry.key, "headers: " + status.error());
    } else {
      target.headers.emplace_back(entry.key->text, entry.value->text);
    }
  }
}

void ReadRelabelConfig(const YamlNode& map, YamlReader& reader, std::vector<RelabelConfig>& rules) {
  const std::string prefix = "write_relabel_configs: ";
  if (!reader.Expect(map, YamlNode::Kind::kMap, prefix + "expected a map (action: drop ...)")) return;
  const YamlReader::Fields fields = reader.ReadMap(map, kRelabelKeys, prefix);
  RelabelConfig rule;
  rule.action = reader.Choose(fields, "action", kActions).value_or(rule.action);
  if (const YamlNode* labels = YamlReader::Find(fields, "source_labels");
      labels != nullptr &&
      reader.Expect(*labels, YamlNode::Kind::kSequence, prefix + "source_labels: expected a list of labels")) {
    for (const auto& label : labels->items) {
      rule.source_labels.push_back(label->text);
    }
  }
  rule.separator = reader.Text(fields, "separator").value_or(rule.separator);
  rule.regex = reader.Text(fields, "regex").value_or(rule.regex);
  rule.target_label = reader.Text(fields, "target_label").value_or(rule.target_label);
  rule.replacement = reader.Text(fields, "replacement").value_or(rule.replacement);
  if (const auto made = RelabelRule::Make(rule); !made.ok()) return reader.Fail(map, prefix + made.error());
  rules.push_back(std::move(rule));
}

// Errors in settings with a safe default go to `mild`.
void ReadTargetSettings(const YamlNode& map, YamlReader& reader, YamlReader& mild, RemoteWriteTarget& target) {
  if (!reader.Expect(map, YamlNode::Kind::kMap, "remote_write: expected a map (url: http://...)")) return;
  std::vector<std::string_view> keys;
  for (const TargetSetting& setting : kTargetSettings) {
    keys.push_back(setting.key);
  }
  keys.insert(keys.end(), {"headers", "write_relabel_configs"});
  const YamlReader::Fields fields = reader.ReadMap(map, keys, "remote_write: ");
  if (!fields.contains("url")) return reader.Fail(map, "remote_write: a target needs a url");
  for (const TargetSetting& setting : kTargetSettings) {
    YamlReader& teller = setting.has_safe_default ? mild : reader;
    const auto text = teller.Text(fields, setting.key);
    if (!text) continue;
    if (const Status status = setting.set(*text, target); !status.ok()) {
      teller.Fail(*YamlReader::Find(fields, setting.key), std::string(setting.key) + ": " + status.error());
    }
  }
  if (const YamlNode* headers = YamlReader::Find(fields, "headers")) {
    ReadHeaders(*headers, reader, target);
  }
  if (const YamlNode* rules = YamlReader::Find(fields, "write_relabel_configs");
      rules != nullptr && reader.Expect(*rules, YamlNode::Kind::kSequence, "write_relabel_configs: expected a list")) {
    for (const auto& rule : rules->items) {
      ReadRelabelConfig(*rule, reader, target.relabel);
    }
  }
}

void ReadTarget(const std::string& name, const YamlNode& map, std::vector<RemoteWriteTarget>& targets,
                std::vector<ConfigError>& errors) {
  std::vector<std::string> wrong;
  std::vector<std::string> mild;
  YamlReader reader(name, wrong);
  YamlReader mild_reader(name, mild);
  RemoteWriteTarget target;
  ReadTargetSettings(map, reader, mild_reader, target);
  for (const auto* list : {&wrong, &mild}) {
    for (const std::string& error : *list) {
      errors.push_back({.text = error, .consequence = wrong.empty() ? "its default is used" : kTargetOff});
    }
  }
  if (wrong.empty()) targets.push_back(std::move(target));
}

}  // namespace

std::string ShownUrl(std::string_view url) {
  const size_t query = url.find('?');
  return query == std::string_view::npos ? std::string(url) : std::string(url.substr(0, query)) + "?...";
}

std::string ToText(const std::vector<RemoteWriteTarget>& targets) {
  std::string text;
  for (const RemoteWriteTarget& target : targets) {
    text += (text.empty() ? "" : ", ") + target.name + " at " + ShownUrl(target.url);
  }
  return text;
}

Status AddRemoteWrite(std::string_view url, std::vector<RemoteWriteTarget>& targets) {
  RemoteWriteTarget target;
  Status status = SetUrl(url, target);
  if (status.ok()) {
    targets.push_back(std::move(target));
  }
  return status;
}

std::vector<ConfigError> ReadRemoteWrite(const std::string& name, const YamlNode& list,
                                         std::vector<RemoteWriteTarget>& targets) {
  std::vector<ConfigError> errors;
  if (list.kind == YamlNode::Kind::kNull) return errors;  // all targets are commented out
  std::vector<std::string> wrong;
  if (!YamlReader(name, wrong).Expect(list, YamlNode::Kind::kSequence, "remote_write: expected a list (- url: http://...)")) {
    return {{.text = wrong.front(), .consequence = "nothing is sent by remote write"}};
  }
  for (const auto& target : list.items) {
    ReadTarget(name, *target, targets, errors);
  }
  return errors;
}

std::vector<ConfigError> CheckRemoteWrite(std::vector<RemoteWriteTarget>& targets) {
  std::vector<ConfigError> errors;
  std::set<std::string> names;
  std::erase_if(targets, [&](const RemoteWriteTarget& target) {
    const size_t before = errors.size();
    const std::string which = "remote_write " + Quoted(target.name) + ": ";
    const auto refuse = [&](const std::string& error) { errors.push_back({.text = which + error, .consequence = kTargetOff}); };
    if (!names.insert(target.name).second) {
      refuse("two targets have this name; give each another name");
    }
    const bool has_tls = target.url.starts_with("https:");
    for (const std::string& error : CheckAccess(target.access, "", has_tls, "url " + Quoted(ShownUrl(target.url))))
      refuse(error);
    return errors.size() > before;
  });
  return errors;
}

}  // namespace persia::agent

#include "config/remote_write_settings.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "config/remote_write_access.h"
#include "config/values.h"
#include "files/yaml_reader.h"
#include "net/url.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxName = 64;
constexpr char kTargetOff[] = "nothing is sent to this target";
constexpr char kProtocol[] = "prometheus.WriteRequest";
constexpr int64_t kHour = 3'600'000;
constexpr int64_t kLongest = 10'000 * kHour;

Result<Url> ParseUrl(std::string_view text) {
  if (text.find("://") == std::string_view::npos)
    return Bad(ShownAddress(text), "is not a URL (http://victoria:8428/api/v1/write, http://prometheus:9090/api/v1/write)");
  if (Status status = CheckText(text, "a URL", ShownAddress(text)); !status.ok()) return Error{status.error()};
  auto url = Url::Parse(text);
  if (!url.ok()) return Bad(ShownAddress(text), "is not a URL to write to: " + url.error());
  if (url.value().has_user()) {
    return Error{
        "a URL must not have a user and password, since logs show URLs; give basic_auth: {username: ..., password_file: ...}"};
  }
  if (url.value().has_fragment()) return Bad(url.value().Shown(), "has a fragment, which a URL to write to cannot have");
  return url;
}

std::string DefaultName(const Url& url) {
  return url.HostAndPort() + (url.port() ? "" : ":" + std::to_string(url.PortOrDefault()));
}

// Of the target's URL, headers and user, as hexadecimal digits: too short to lead back to a secret header. It must stay the
// same in later releases, because the name is that of the queue.
std::string ShortHash(const RemoteWriteTarget& target) {
  std::string text = target.url + '\n' + target.access.username + '\n' + target.access.username_file;
  for (const auto& [name, value] : target.headers) text += '\n' + name + ": " + value;
  uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(hash >> shift & 0xffU);
  return HexEncode(bytes);
}

// Appends a hash to each default name that two targets have. To the first one, too: a name must not go to the other target,
// with the samples in the queue, when their order changes.
void NameApart(std::vector<RemoteWriteTarget>& targets) {
  std::map<std::string, std::vector<RemoteWriteTarget*>> by_name;
  for (RemoteWriteTarget& target : targets)
    if (const auto url = Url::Parse(target.url); url.ok() && target.name == DefaultName(url.value()))
      by_name[target.name].push_back(&target);
  for (const auto& [name, same] : by_name)
    if (same.size() > 1)
      for (RemoteWriteTarget* const target : same) target->name += '-' + ShortHash(*target);
}

// Names the targets on one host apart, then removes those with the name of an earlier one. `report` gets each, and its former
// index.
template <class Report>
void RemoveNamesakes(std::vector<RemoteWriteTarget>& targets, Report report) {
  NameApart(targets);
  std::set<std::string> names;
  size_t index = 0;
  std::erase_if(targets, [&](const RemoteWriteTarget& target) {
    const size_t at = index++;
    if (names.insert(target.name).second) return false;
    report(target, at);
    return true;
  });
}

Status SetUrl(std::string_view text, RemoteWriteTarget& target) {
  const auto url = ParseUrl(text);
  if (!url.ok()) return Error{url.error()};
  target.url = text;
  if (target.name.empty()) target.name = DefaultName(url.value());
  return Done{};
}

Status ParseTargetName(std::string_view text, std::string& value) {
  if (text.empty()) return Done{};  // the default
  if (text.size() > kMaxName) return Bad(text, "is too long for a target's name (64 bytes)");
  return ParseText(text, value);
}

Status ParseProtocol(std::string_view text, RemoteWriteTarget& /*target*/) {
  if (text == kProtocol) return Done{};
  return Bad(text, "is another version of the protocol; leave protobuf_message out if the receiver accepts " +
                       std::string(kProtocol) + " of 1.0, too, as Prometheus does and OpenTelemetry Collector's does not");
}

using Target = RemoteWriteTarget;
// `name` before `url`, which sets the default of the name.
constexpr TargetKey kTargetKeys[] = {
    {"name", Set<ParseTargetName, &Target::name>, true},
    {"url", SetUrl},
    {"remote_timeout", Set<PrometheusDuration{100, kLongest}, &Target::timeout>, true},
    {"protobuf_message", ParseProtocol},
    {"send_native_histograms", Set<ParseBoolean, &Target::send_native_histograms>, true},
    {"queue_config"},
    {"metadata_config"},
    {"write_relabel_configs"},
    // Not of Prometheus.
    {"send_interval_seconds", Set<Seconds{0, 86'400'000}, &Target::send_interval>, true},
    {"queue_max_bytes", Set<Bytes{1 << 20, 1ULL << 40}, &Target::queue_max_bytes>, true},
};
constexpr ForeignKey kForeignTargetKeys[] = {
    {"send_exemplars", "has no effect: the agent has no exemplars", false, "false"},
    {"failed_request_logging", "has no effect: the log has each change of a target's answers", false, "false"},
    {"max_samples_per_send", "belongs into queue_config: {max_samples_per_send: ...}", true},
};
constexpr TargetKey kQueueKeys[] = {
    {"max_samples_per_send", Set<Count{1, 100'000}, &Target::max_samples>, true},
    {"min_backoff", Set<PrometheusDuration{1, kLongest}, &Target::min_backoff>, true},
    {"max_backoff", Set<PrometheusDuration{1, kLongest}, &Target::max_backoff>, true},
    {"sample_age_limit", Set<PrometheusDuration{60'000, 720 * kHour, true}, &Target::sample_age_limit>, true},
};
constexpr char kOneRequest[] = "has no effect: one request at a time is sent; raise max_samples_per_send";
constexpr ForeignKey kForeignQueueKeys[] = {
    {"min_shards", kOneRequest, false, "1"},
    {"max_shards", kOneRequest, false, "1"},
    {"capacity", "has no effect: samples wait on disk; their limit is queue_max_bytes of the target"},
    {"batch_send_deadline", "has no effect: each collection is sent at once; send_interval_seconds of the target skips some"},
    {"retry_on_http_429", "has no effect: a request that is answered with 429 is always sent again", false, "true"},
};
constexpr TargetKey kMetadataKeys[] = {
    {"send", Set<ParseBoolean, &Target::sends_metadata>, true},
    {"send_interval", Set<PrometheusDuration{1000, kLongest}, &Target::metadata_interval>, true},
    {"max_samples_per_send", Set<Count{1, 100'000}, &Target::max_metadata>, true},
};

void ReadQueue(const YamlNode& map, TargetReaders& readers, RemoteWriteTarget& target) {
  const std::string prefix = "queue_config: ";
  if (!readers.fatal.Expect(map, YamlNode::Kind::kMap, prefix + "expected a map (max_backoff: 5s ...)")) return;
  const auto fields = ReadKeys(map, prefix, kQueueKeys, kForeignQueueKeys, readers, target);
  const RemoteWriteTarget defaults;
  if (!fields.contains("max_backoff")) target.max_backoff = std::max(target.max_backoff, target.min_backoff);
  if (!fields.contains("min_backoff")) target.min_backoff = std::min(target.max_backoff, target.min_backoff);
  if (target.min_backoff > target.max_backoff) {
    readers.mild.Fail(map, prefix + "min_backoff is above max_backoff");
    target.min_backoff = defaults.min_backoff;
    target.max_backoff = defaults.max_backoff;
  }
}

void ReadTargetSettings(const YamlNode& map, TargetReaders& readers, RemoteWriteTarget& target) {
  if (!readers.fatal.Expect(map, YamlNode::Kind::kMap, "remote_write: expected a map (url: http://...)")) return;
  std::vector<TargetKey> keys(std::begin(kTargetKeys), std::end(kTargetKeys));
  keys.insert(keys.end(), AccessKeys().begin(), AccessKeys().end());
  std::vector<ForeignKey> foreign(std::begin(kForeignTargetKeys), std::end(kForeignTargetKeys));
  foreign.insert(foreign.end(), ForeignAccessKeys().begin(), ForeignAccessKeys().end());
  const YamlReader::Fields fields = ReadKeys(map, "remote_write: ", keys, foreign, readers, target);
  if (!fields.contains("url")) return readers.fatal.Fail(map, "remote_write: a target needs a url");
  ReadAccess(fields, readers, target);
  if (const YamlNode* queue = YamlReader::Find(fields, "queue_config")) ReadQueue(*queue, readers, target);
  if (const YamlNode* metadata = YamlReader::Find(fields, "metadata_config");
      metadata != nullptr &&
      readers.fatal.Expect(*metadata, YamlNode::Kind::kMap, "metadata_config: expected a map (send: true)"))
    ReadKeys(*metadata, "metadata_config: ", kMetadataKeys, {}, readers, target);
  if (const YamlNode* rules = YamlReader::Find(fields, "write_relabel_configs"))
    ReadRelabelConfigs(*rules, readers.fatal, target.relabel);
}

// With its last slash; empty for a file in the working directory.
std::string DirectoryOf(const std::string& file) { return file.substr(0, file.rfind('/') + 1); }

// Whether the target is in the list now.
bool ReadTarget(const std::string& name, const YamlNode& map, RemoteWriteList& list) {
  std::vector<std::string> wrong;
  std::vector<std::string> mild;
  YamlReader reader(name, wrong);
  YamlReader mild_reader(name, mild);
  YamlReader note_reader(name, list.notes);
  TargetReaders readers{.fatal = reader, .mild = mild_reader, .notes = note_reader, .directory = DirectoryOf(name)};
  RemoteWriteTarget target;
  ReadTargetSettings(map, readers, target);
  for (const auto* errors : {&wrong, &mild})
    for (const std::string& error : *errors)
      list.errors.push_back({.text = error, .consequence = wrong.empty() ? "its default is used" : kTargetOff});
  if (wrong.empty()) list.targets.push_back(std::move(target));
  return wrong.empty();
}

constexpr char kRelabelPrefix[] = "write_relabel_configs: ";
// `modulus` is for `hashmod`, an action that the agent has not.
constexpr std::string_view kRelabelKeys[] = {"action",  "source_labels", "separator",  "regex",
                                             "modulus", "target_label",  "replacement"};

// In any case, as Prometheus reads it.
Result<RelabelAction> ParseAction(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  auto action = ParseChoice(lower, kRelabelActions);
  return action.ok() ? action : ParseChoice(text, kRelabelActions);  // the error quotes the text as it is
}

void ReadSourceLabels(const YamlNode& labels, YamlReader& reader, RelabelConfig& rule) {
  if (!reader.Expect(labels, YamlNode::Kind::kSequence,
                     std::string(kRelabelPrefix) + "source_labels: expected a list of labels"))
    return;
  for (const auto& label : labels.items)
    if (reader.Expect(*label, YamlNode::Kind::kScalar, std::string(kRelabelPrefix) + "source_labels: expected a label"))
      rule.source_labels.push_back(label->text);
}

void ReadRule(const YamlNode& map, YamlReader& reader, std::vector<RelabelConfig>& rules) {
  if (!reader.Expect(map, YamlNode::Kind::kMap, std::string(kRelabelPrefix) + "expected a map (action: drop ...)")) return;
  YamlNode present = map;  // a field without a value has its default, as in Prometheus
  std::erase_if(present.entries, [](const YamlNode::Entry& entry) { return entry.value->kind == YamlNode::Kind::kNull; });
  const YamlReader::Fields fields = reader.ReadMap(present, kRelabelKeys, kRelabelPrefix);
  RelabelConfig rule;
  const std::optional<RelabelAction> action = reader.Parse(fields, "action", ParseAction);
  if (fields.contains("action") && !action) return;  // the other fields depend on it
  rule.action = action.value_or(rule.action);
  if (const YamlNode* labels = YamlReader::Find(fields, "source_labels")) ReadSourceLabels(*labels, reader, rule);
  rule.separator = reader.Text(fields, "separator").value_or(rule.separator);
  rule.regex = reader.Text(fields, "regex").value_or(rule.regex);
  rule.target_label = reader.Text(fields, "target_label").value_or(rule.target_label);
  rule.replacement = reader.Text(fields, "replacement").value_or(rule.replacement);
  if (const auto made = RelabelRule::Make(rule); !made.ok()) return reader.Fail(map, kRelabelPrefix + made.error());
  rules.push_back(std::move(rule));
}

}  // namespace

std::string ShownUrl(std::string_view text) {
  const auto url = Url::Parse(text);
  return url.ok() ? url.value().Shown() : ShownAddress(text);
}

std::string ToText(const std::vector<RemoteWriteTarget>& targets) {
  std::string text;
  for (const RemoteWriteTarget& target : targets)
    text += (text.empty() ? "" : ", ") + target.name + " at " + ShownUrl(target.url);
  return text;
}

Status AddRemoteWrite(std::string_view url, std::vector<RemoteWriteTarget>& targets) {
  RemoteWriteTarget target;
  Status status = SetUrl(url, target);
  if (status.ok()) targets.push_back(std::move(target));
  return status;
}

RemoteWriteList ReadRemoteWrite(const std::string& name, const YamlNode& list) {
  RemoteWriteList read;
  if (list.kind == YamlNode::Kind::kNull) return read;  // all targets are commented out
  std::vector<std::string> wrong;
  if (!YamlReader(name, wrong).Expect(list, YamlNode::Kind::kSequence, "remote_write: expected a list (- url: http://...)")) {
    read.errors.push_back({.text = wrong.front(), .consequence = "nothing is sent by remote write"});
    return read;
  }
  std::vector<const YamlNode*> places;  // of the targets
  for (const auto& target : list.items)
    if (ReadTarget(name, *target, read)) places.push_back(target.get());
  RemoveNamesakes(read.targets, [&](const RemoteWriteTarget& target, size_t index) {
    std::vector<std::string> error;
    YamlReader(name, error)
        .Fail(*places[index],
              "remote_write: an earlier target has the name " + Quoted(target.name) + "; give this one another name");
    read.errors.push_back({.text = error.front(), .consequence = kTargetOff});
  });
  return read;
}

std::vector<ConfigError> CheckRemoteWrite(std::vector<RemoteWriteTarget>& targets) {
  std::vector<ConfigError> errors;
  RemoveNamesakes(targets, [&](const RemoteWriteTarget& target, size_t) {
    errors.push_back({.text = "remote_write: an earlier target has the name " + Quoted(target.name) + "; leave one of them out",
                      .consequence = kTargetOff});
  });
  return errors;
}

void ReadRelabelConfigs(const YamlNode& list, YamlReader& reader, std::vector<RelabelConfig>& rules) {
  if (!reader.Expect(list, YamlNode::Kind::kSequence, std::string(kRelabelPrefix) + "expected a list")) return;
  for (const auto& rule : list.items) ReadRule(*rule, reader, rules);
}

}  // namespace persia::agent

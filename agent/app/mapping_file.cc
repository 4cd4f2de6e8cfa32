#include "app/mapping_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "app/bundled_mapping.h"
#include "app/mapping_nodes.h"
#include "app/mapping_values.h"
#include "app/text.h"
#include "app/yaml_document.h"
#include "model/naming.h"
#include "net/watched_file.h"

namespace persia::agent {
namespace {

constexpr char kBundledName[] = "bundled mapping.yaml";
constexpr std::string_view kSections[] = {"defaults", "mappings"};
constexpr std::string_view kRuleKeys[] = {"match",
                                          "match_type",
                                          "match_metric_type",
                                          "group",
                                          "name",
                                          "labels",
                                          "help",
                                          "type",
                                          "observer_type",
                                          "scale",
                                          "ttl",
                                          "buckets",
                                          "quantiles",
                                          "histogram_options",
                                          "summary_options",
                                          "action",
                                          "honor_labels"};
// What says which metrics a rule is about; and what has a meaning for streams only.
constexpr std::string_view kMatchKeys[] = {"match", "match_type", "match_metric_type", "group", "action"};
constexpr std::string_view kStreamKeys[] = {
    "type", "observer_type", "ttl", "buckets", "quantiles", "histogram_options", "summary_options"};
constexpr std::string_view kDefaultKeys[] = {"match_type",
                                             "group",
                                             "type",
                                             "observer_type",
                                             "ttl",
                                             "buckets",
                                             "quantiles",
                                             "histogram_options",
                                             "summary_options",
                                             "glob_disable_ordering"};
constexpr std::string_view kHistogramKeys[] = {"buckets", "native_histogram_bucket_factor", "native_histogram_max_buckets"};
constexpr std::string_view kSummaryKeys[] = {"quantiles", "max_age", "age_buckets", "buf_cap"};

bool IsOneOf(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Walks one file's tree; errors and notes go to the MappingFile.
class MappingReader : NodeReader {
 public:
  MappingReader(const std::string& name, MappingFile& file) : NodeReader(name, file.errors, file.notes), file_(file) {}

  void Read(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::kMap) {
      return Fail(root, "expected rules (mappings: ...), found " + std::string(root.KindName()));
    }
    const Entries sections = EntriesOf(root, kSections, "");
    if (const YamlNode* defaults = Find(sections, "defaults")) {
      ReadDefaults(*defaults);
    }
    const YamlNode* mappings = Find(sections, "mappings");
    if (mappings != nullptr && mappings->kind == YamlNode::Kind::kSequence) {
      for (const auto& item : mappings->items) {
        ReadRule(*item);
      }
    } else if (mappings != nullptr) {
      Fail(*mappings, "mappings: expected a list of rules (- match: ...), found " + std::string(mappings->KindName()));
    }
    std::vector<RuleProblem> problems;
    auto rules = MappingRules::Compile(std::move(rules_), {most_specific_, std::move(defaults_.shape)}, problems);
    for (const RuleProblem& problem : problems) {
      const auto at = places_[problem.rule].find(problem.key);
      Fail(at == places_[problem.rule].end() ? root : *at->second,
           problem.key + ": " + Quoted(problem.value) + " " + problem.what);
    }
    if (file_.errors.empty()) {
      file_.rules = std::move(rules);
    }
  }

 private:
  // What rule and defaults have in common. `shape` has the defaults already.
  void ReadCommon(const Entries& entries, MappingRule& rule) {
    static constexpr std::string_view kMatchTypes[] = {"glob", "regex"};
    if (const auto type = Word(entries, "match_type", kMatchTypes)) rule.regex = *type == 1;
    if (const auto group = Text(entries, "group")) rule.group = *group;
    const YamlNode* buckets = Option(entries, "buckets", "histogram_options", kHistogramKeys);
    const YamlNode* quantiles = Option(entries, "quantiles", "summary_options", kSummaryKeys);
    std::vector<BadValue> bad;
    if (buckets != nullptr) rule.shape.bounds = ReadBuckets(*buckets, bad);
    if (quantiles != nullptr) rule.shape.quantiles = ReadQuantiles(*quantiles, bad);
    for (const BadValue& value : bad) Fail(*value.at, value.what);
    if (const auto ttl = Parsed(entries, "ttl", ParseTtl)) rule.shape.ttl = *ttl;
  }

  void ReadType(const Entries& entries, MappingRule& rule) {
    const auto type = Parsed(entries, "type", ParseStreamType);
    const auto observer = Parsed(entries, "observer_type", ParseStreamType);
    if (type && observer && *type != *observer) {
      Fail(*Find(entries, "observer_type"), "observer_type: says another type than type does; leave one out");
    }
    if (type || observer) rule.shape.type = type ? type : observer;
  }

  // A list that stands under its own name, or in a section as statsd_exporter has it.
  const YamlNode* Option(const Entries& entries, const std::string& key, const std::string& section,
                         std::span<const std::string_view> known) {
    const YamlNode* own = Find(entries, key);
    const YamlNode* options = Find(entries, section);
    if (options == nullptr) return own;
    if (options->kind != YamlNode::Kind::kMap) {
      Fail(*options, section + ": expected options (" + key + ": ...), found " + std::string(options->KindName()));
      return own;
    }
    const YamlNode* found = nullptr;
    for (const auto& [name, nodes] : EntriesOf(*options, known, section + ": ")) {
      if (name == key) {
        found = nodes.second;
      } else {
        Note(*nodes.first, name + " has no effect: a stream's buckets are what they are, and span the whole run");
      }
    }
    if (own != nullptr && found != nullptr) {
      Fail(*found, key + " stands in " + section + " and outside; leave one out");
    }
    return found != nullptr ? found : own;
  }

  void ReadDefaults(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kMap) {
      return Fail(node, "defaults: expected keys (match_type: ...), found " + std::string(node.KindName()));
    }
    const Entries entries = EntriesOf(node, kDefaultKeys, "defaults: ");
    ReadCommon(entries, defaults_);
    ReadType(entries, defaults_);
    if (const std::string why = WhyNoGroup(defaults_.group); !why.empty()) {
      Fail(*Find(entries, "group"), "defaults: group: " + Quoted(defaults_.group) + " " + why);
      defaults_.group = "*";  // said once, and not for each rule
    }
    most_specific_ = Boolean(entries, "glob_disable_ordering");
  }

  void ReadRule(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kMap) {
      return Fail(node, "expected a rule (match: ...), found " + std::string(node.KindName()));
    }
    const Entries entries = EntriesOf(node, kRuleKeys, "");
    MappingRule rule = defaults_;
    rule.place = name() + ":" + std::to_string(node.line);
    const auto match = Text(entries, "match");
    const auto is_match = [](const YamlNode::Entry& entry) { return entry.key->text == "match"; };
    if (std::none_of(node.entries.begin(), node.entries.end(), is_match)) {
      Fail(node, "a rule without match");
    }
    rule.match = match.value_or("x");  // what is wrong with it is said already
    ReadCommon(entries, rule);
    ReadRuleType(entries, rule);
    if (const auto types = Parsed(entries, "match_metric_type", ParseMatchedTypes)) rule.types = *types;
    if (const YamlNode* scale = Find(entries, "scale")) {
      std::vector<BadValue> bad;
      rule.scale = ReadScale(*scale, bad);
      for (const BadValue& value : bad) Fail(*value.at, value.what);
    }
    rule.help = Text(entries, "help").value_or("");
    rule.honor_labels = Boolean(entries, "honor_labels");
    static constexpr std::string_view kActions[] = {"map", "drop"};
    rule.drop = Word(entries, "action", kActions) == 1;
    if (const auto name = Text(entries, "name")) {
      rule.name = *name;
      if (const std::string why = WhyNoMetricName(*name); !why.empty()) {
        Fail(*Find(entries, "name"), "name: " + Quoted(*name) + " " + why);
      }
    }
    auto& places = places_.emplace_back();
    for (const auto& [key, nodes] : entries) places[key] = nodes.second;
    if (const YamlNode* labels = Find(entries, "labels")) ReadLabels(*labels, rule, places);
    NoteWhatDoesNothing(node, entries, rule);
    rules_.push_back(std::move(rule));
  }

  // Bounds ask for a histogram, quantiles for a summary, unless the rule says which.
  void ReadRuleType(const Entries& entries, MappingRule& rule) {
    const bool bounds = entries.contains("buckets") || entries.contains("histogram_options");
    const bool quantiles = entries.contains("quantiles") || entries.contains("summary_options");
    const bool said = entries.contains("type") || entries.contains("observer_type");
    if (bounds != quantiles && !said) {
      rule.shape.type = bounds ? MetricType::kHistogram : MetricType::kSummary;
    }
    ReadType(entries, rule);
    if (bounds && rule.shape.type != MetricType::kHistogram) {
      Fail(*Find(entries, entries.contains("buckets") ? "buckets" : "histogram_options"), "buckets need type: histogram");
    }
    if (quantiles && rule.shape.type != MetricType::kSummary) {
      Fail(*Find(entries, entries.contains("quantiles") ? "quantiles" : "summary_options"), "quantiles need type: summary");
    }
  }

  void ReadLabels(const YamlNode& labels, MappingRule& rule, std::map<std::string, const YamlNode*>& places) {
    if (labels.kind != YamlNode::Kind::kMap) {
      return Fail(labels, "labels: expected a map (role: $1), found " + std::string(labels.KindName()));
    }
    for (const YamlNode::Entry& entry : labels.entries) {
      const std::string& name = entry.key->text;
      const std::string key = "labels." + name;
      if (const std::string why = WhyNoLabelName(name); entry.key->kind != YamlNode::Kind::kScalar || !why.empty()) {
        Fail(*entry.key, "labels: " + Quoted(name) + " " + why);
      } else if (entry.value->kind != YamlNode::Kind::kScalar) {
        Fail(entry.value->kind == YamlNode::Kind::kNull ? *entry.key : *entry.value,
             key + ": expected a text, found " + std::string(entry.value->KindName()));
      } else if (!places.try_emplace(key, entry.value.get()).second) {
        Fail(*entry.key, "labels: " + Quoted(name) + " is given twice");
      } else {
        rule.labels.emplace_back(name, entry.value->text);
      }
    }
    for (const YamlNode::Entry& entry : labels.entries) {
      const std::string& name = entry.key->text;
      const std::string shown = SanitizeLabelName(name);
      if (shown != name && name != kRoleLabel && WhyNoLabelName(name).empty()) {
        Note(*entry.key, "label " + name + " belongs to the agent or a format; it is shown as " + ShownAs(name, rule));
      }
    }
  }

  // With a number, where the rule has another label that is shown under the same name.
  static std::string ShownAs(const std::string& name, const MappingRule& rule) {
    Labels labels;
    for (const auto& label : rule.labels) {
      if (label.first != kRoleLabel) labels.emplace_back(label.first, label.first);
    }
    std::sort(labels.begin(), labels.end());
    labels = ExposedLabels(labels);
    const auto shown = std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.second == name; });
    return shown == labels.end() ? SanitizeLabelName(name) : shown->first;
  }

  void NoteWhatDoesNothing(const YamlNode& node, const Entries& entries, const MappingRule& rule) {
    const bool streams =
        rule.types.empty() || std::find(rule.types.begin(), rule.types.end(), MetricType::kUntyped) != rule.types.end();
    if (rule.drop) {
      NoteKeys(node, entries, "the rule drops what it matches",
               [](const std::string& key) { return !IsOneOf(key, kMatchKeys); });
    } else if (!streams) {
      NoteKeys(node, entries, "the rule matches no streams, and what is a counter, gauge or histogram in the program stays one",
               [](const std::string& key) { return IsOneOf(key, kStreamKeys); });
    }
    // Only what is the same to the letter: whether a regex shadows another nobody can say.
    const auto [first, is_new] = seen_.try_emplace(std::tuple(rule.regex, rule.match, rule.group, rule.types), node.line);
    if (!is_new) {
      Note(node, "this rule never matches: the one of line " + std::to_string(first->second) + " takes all that it would");
    }
  }

  // One note for all keys that `useless` takes, at the first of them.
  void NoteKeys(const YamlNode& rule, const Entries& entries, const std::string& why, bool (*useless)(const std::string&)) {
    std::string list;
    const YamlNode* first = nullptr;
    int count = 0;
    for (const YamlNode::Entry& entry : rule.entries) {
      if (entries.contains(entry.key->text) && useless(entry.key->text)) {
        list += (count++ == 0 ? "" : ", ") + entry.key->text;
        first = first == nullptr ? entry.key.get() : first;
      }
    }
    if (first != nullptr) Note(*first, list + (count == 1 ? " has" : " have") + " no effect: " + why);
  }

  MappingFile& file_;
  MappingRule defaults_;
  bool most_specific_ = false;
  std::vector<MappingRule> rules_;
  std::vector<std::map<std::string, const YamlNode*>> places_;  // by rule and key
  std::map<std::tuple<bool, std::string, std::string, std::vector<MetricType>>, int> seen_;
};

}  // namespace

MappingFile ParseMapping(const std::string& name, const std::string& text) {
  MappingFile file;
  file.text = text;
  const auto document = ParseYaml(name, text);
  if (!document.ok()) {
    file.errors.push_back(document.error());
    return file;
  }
  MappingReader(name, file).Read(*document.value());
  return file;
}

MappingFile ReadMapping(const std::string& setting) {
  if (setting == "none") return {};
  if (setting.empty()) return ParseMapping(kBundledName, kBundledMapping);
  const Result<std::string> text = WatchedFile("mapping_file", setting).Read();
  if (!text.ok()) return {.rules = nullptr, .text = "", .errors = {text.error()}, .notes = {}};
  return ParseMapping(setting, text.value());
}

}  // namespace persia::agent

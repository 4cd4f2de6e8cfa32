#include "naming/mapping_file.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "files/small_file.h"
#include "files/yaml_reader.h"
#include "naming/bundled_mapping.h"
#include "naming/mapping_values.h"
#include "naming/naming.h"

namespace persia::agent {
namespace {

constexpr char kBundledName[] = "bundled mapping.yaml";
constexpr std::string_view kSections[] = {"defaults", "mappings"};
constexpr std::string_view kRuleKeys[] = {
    "match",   "match_type",    "match_metric_type", "group",           "name",   "labels",      "help",
    "type",    "observer_type", "timer_type",        "scale",           "ttl",    "buckets",     "native",
    "classic", "quantiles",     "histogram_options", "summary_options", "action", "honor_labels"};
// Keys that have an effect in a rule that drops; keys that have one for streams only; keys that have one for streams and for
// native histograms of programs.
constexpr std::string_view kDropKeys[] = {"match", "match_type", "match_metric_type", "group", "action"};
constexpr std::string_view kStreamKeys[] = {"type",   "observer_type", "timer_type",     "ttl",
                                            "native", "quantiles",     "summary_options"};
constexpr std::string_view kBucketKeys[] = {"buckets", "classic", "histogram_options"};
constexpr std::string_view kDefaultKeys[] = {"match_type",
                                             "group",
                                             "type",
                                             "observer_type",
                                             "timer_type",
                                             "ttl",
                                             "buckets",
                                             "native",
                                             "classic",
                                             "quantiles",
                                             "histogram_options",
                                             "summary_options",
                                             "glob_disable_ordering"};
// Of a rule without a match. Rules that match everything match it.
constexpr char kUnknownMatch[] = "x";
constexpr std::string_view kNativeFactor = "native_histogram_bucket_factor";
constexpr std::string_view kNativeMaxBuckets = "native_histogram_max_buckets";
constexpr std::string_view kHistogramKeys[] = {"buckets", kNativeFactor, kNativeMaxBuckets};
constexpr std::string_view kSummaryKeys[] = {"quantiles",         "max_age",         "age_buckets",
                                             "buf_cap",           "max_summary_age", "summary_age_buckets",
                                             "stream_buffer_size"};  // the last three as in its former documents

bool Contains(YamlReader::Keys keys, std::string_view key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); }

// Without the keys that have no value, which is as if they were missing, as in statsd_exporter. But a rule needs its match, and
// may need its name.
YamlNode Present(const YamlNode& map, YamlReader::Keys keys) {
  YamlNode present = map;
  std::erase_if(present.entries, [keys](const YamlNode::Entry& entry) {
    const std::string& key = entry.key->text;
    return entry.value->kind == YamlNode::Kind::kNull && key != "match" && key != "name" && Contains(keys, key);
  });
  return present;
}

bool IsEmptyList(const YamlNode& node) { return node.kind == YamlNode::Kind::kSequence && node.items.empty(); }

class MappingReader {
 public:
  // `fallback`: of the metrics of rules with errors.
  MappingReader(const std::string& name, MappingFile& file, std::shared_ptr<const Naming> fallback)
      : reader_(name, file.errors), file_(file), fallback_(std::move(fallback)) {}

  void Read(const YamlNode& root) {
    if (!reader_.Expect(root, YamlNode::Kind::kMap, "expected rules (mappings: ...)")) return;
    const Fields sections = reader_.ReadMap(Present(root, kSections), kSections);
    if (const YamlNode* defaults = YamlReader::Find(sections, "defaults")) ReadDefaults(*defaults);
    const YamlNode* mappings = YamlReader::Find(sections, "mappings");
    if (mappings != nullptr &&
        reader_.Expect(*mappings, YamlNode::Kind::kSequence, "mappings: expected a list of rules (- match: ...)"))
      for (const auto& item : mappings->items) ReadRule(*item);
    std::set<size_t> wrong;
    for (size_t i = 0; i < rules_.size(); ++i)
      if (rules_[i].left_out || rules_[i].unknown_match) wrong.insert(i);
    std::vector<RuleProblem> problems;
    file_.rules = MappingRules::Compile(std::move(rules_), {most_specific_, std::move(defaults_.shape), fallback_}, problems);
    for (const RuleProblem& problem : problems) {
      const auto at = values_[problem.rule].find(problem.key);
      reader_.Fail(at == values_[problem.rule].end() ? root : *at->second, problem.key + ": " + problem.what);
      wrong.insert(problem.rule);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (file_.rules->rules()[i].left_out && !wrong.contains(i)) {
        Note(*nodes_[i],
             "this rule is not applied: because of an error it is not known what another rule matches, and this one may take "
             "its metrics");
      }
    }
  }

 private:
  using Fields = YamlReader::Fields;
  using Values = std::map<std::string, const YamlNode*>;

  // The keys that rules and defaults share. `rule` has the defaults already.
  void ReadCommon(const Fields& fields, MappingRule& rule) {
    static constexpr Choice<bool> kMatchTypes[] = {{"glob", false}, {"regex", true}};
    if (fields.contains("match_type")) {
      const auto regex = reader_.Choose(fields, "match_type", kMatchTypes);
      rule.regex = regex.value_or(false);
      rule.unknown_match = !regex;
    }
    if (const auto group = reader_.Text(fields, "group")) rule.group = *group;
    const YamlNode* buckets = FindOption(fields, "buckets", "histogram_options", kHistogramKeys, rule);
    const YamlNode* quantiles = FindOption(fields, "quantiles", "summary_options", kSummaryKeys, rule);
    if (fields.contains("native")) rule.shape.native = reader_.Boolean(fields, "native");
    if (fields.contains("classic")) rule.shape.classic = reader_.Boolean(fields, "classic");
    // An empty list stands for the defaults.
    if (buckets != nullptr && !IsEmptyList(*buckets)) rule.shape.bounds = ReadBuckets(*buckets, reader_);
    if (quantiles != nullptr && !IsEmptyList(*quantiles)) rule.shape.quantiles = ReadQuantiles(*quantiles, reader_);
    if (const auto ttl = reader_.Parse(fields, "ttl", ParseDuration)) rule.shape.ttl = *ttl;
  }

  void ReadType(const Fields& fields, MappingRule& rule) {
    const auto type = reader_.Parse(fields, "type", ParseStreamType);
    auto observer = reader_.Parse(fields, "observer_type", ParseStreamType);
    const auto timer = reader_.Parse(fields, "timer_type", ParseStreamType);  // the former name; the new one is preferred
    if (!fields.contains("observer_type")) observer = timer;
    if (type && observer && *type != *observer) {
      const char* const key = fields.contains("observer_type") ? "observer_type" : "timer_type";
      reader_.Fail(*YamlReader::Find(fields, key), std::string(key) + ": differs from type; leave one out");
    }
    if (type || observer) rule.shape.type = type ? type : observer;
  }

  // A list under its own key, or inside a section as statsd_exporter has it. Reads the section's other options into `rule`.
  const YamlNode* FindOption(const Fields& fields, const std::string& key, const std::string& section, YamlReader::Keys keys,
                             MappingRule& rule) {
    const YamlNode* direct = YamlReader::Find(fields, key);
    const YamlNode* options = YamlReader::Find(fields, section);
    if (options == nullptr ||
        !reader_.Expect(*options, YamlNode::Kind::kMap, section + ": expected options (" + key + ": ...)"))
      return direct;
    const YamlNode* nested = nullptr;
    for (const auto& [name, field] : reader_.ReadMap(Present(*options, keys), keys, section + ": ")) {
      if (name == key) {
        nested = field.value;
      } else if (name == kNativeFactor) {
        rule.shape.native = ReadNativeFactor(*field.value, reader_) > 1;
        if (rule.shape.native) Note(*field.key, name + " makes the histogram native; a stream's buckets grow by 1.19");
      } else if (name == kNativeMaxBuckets) {
        rule.shape.max_buckets = ReadMaxBuckets(*field.value, reader_);
      } else {
        Note(*field.key, name + " has no effect: a stream's buckets are fixed, and cover the whole run");
      }
    }
    if (direct != nullptr && nested != nullptr)
      reader_.Fail(*nested, key + " is given in " + section + " and outside of it; leave one out");
    return nested != nullptr ? nested : direct;
  }

  void ReadDefaults(const YamlNode& node) {
    if (!reader_.Expect(node, YamlNode::Kind::kMap, "defaults: expected keys (match_type: ...)")) return;
    const Fields fields = reader_.ReadMap(Present(node, kDefaultKeys), kDefaultKeys, "defaults: ");
    ReadCommon(fields, defaults_);
    ReadType(fields, defaults_);
    if (const Status group = CheckGroup(defaults_.group); !group.ok()) {
      reader_.Fail(*YamlReader::Find(fields, "group"), "defaults: group: " + group.error());
      defaults_.group = "*";  // so that not each rule repeats the error
    }
    most_specific_ = reader_.Boolean(fields, "glob_disable_ordering");
  }

  void ReadRule(const YamlNode& node) {
    const size_t errors_before = file_.errors.size();
    MappingRule rule = defaults_;
    rule.place = reader_.name() + ":" + std::to_string(node.line);
    nodes_.push_back(&node);
    Values& values = values_.emplace_back();
    rule.match = kUnknownMatch;
    if (!reader_.Expect(node, YamlNode::Kind::kMap, "expected a rule (match: ...)")) {
      rule.unknown_match = true;
      rules_.push_back(std::move(rule));
      return;
    }
    const Fields fields = reader_.ReadMap(Present(node, kRuleKeys), kRuleKeys);
    const auto is_match = [](const YamlNode::Entry& entry) { return entry.key->text == "match"; };
    const auto matches = std::count_if(node.entries.begin(), node.entries.end(), is_match);
    if (matches == 0) reader_.Fail(node, "a rule without match");
    const auto match = reader_.Text(fields, "match");
    if (match) rule.match = *match;
    ReadCommon(fields, rule);
    rule.unknown_match |= !match || matches > 1;
    ReadRuleType(fields, rule);
    if (const auto types = reader_.Parse(fields, "match_metric_type", ParseMatchedTypes)) rule.types = *types;
    if (const YamlNode* scale = YamlReader::Find(fields, "scale")) rule.scale = ReadScale(*scale, reader_);
    rule.help = reader_.Text(fields, "help").value_or("");
    rule.honor_labels = reader_.Boolean(fields, "honor_labels");
    static constexpr Choice<bool> kActions[] = {{"map", false}, {"drop", true}};
    rule.drop = reader_.Choose(fields, "action", kActions).value_or(false);
    if (const auto name = reader_.Text(fields, "name")) {
      rule.name = *name;
      if (const Status status = CheckMetricName(*name); !status.ok())
        reader_.Fail(*YamlReader::Find(fields, "name"), "name: " + status.error());
    }
    for (const auto& [key, field] : fields) values[key] = field.value;
    if (const YamlNode* labels = YamlReader::Find(fields, "labels")) ReadLabels(*labels, rule, values);
    NoteKeysWithoutEffect(node, fields, rule);
    rule.left_out = file_.errors.size() > errors_before;
    rules_.push_back(std::move(rule));
  }

  // Without a type, buckets and `native: true` make a histogram, and quantiles a summary.
  void ReadRuleType(const Fields& fields, MappingRule& rule) {
    const bool native = fields.contains("native") && rule.shape.native;
    const bool buckets = native || fields.contains("buckets") || fields.contains("histogram_options");
    const bool quantiles = fields.contains("quantiles") || fields.contains("summary_options");
    const bool has_type = fields.contains("type") || fields.contains("observer_type") || fields.contains("timer_type");
    if (!has_type && (buckets != quantiles || (buckets && !rule.shape.type)))
      rule.shape.type = quantiles ? MetricType::kSummary : MetricType::kHistogram;
    ReadType(fields, rule);
    if (buckets && rule.shape.type != MetricType::kHistogram) {
      const char* const key = native ? "native" : fields.contains("buckets") ? "buckets" : "histogram_options";
      RefuseForType(fields, key, native ? "native needs type: histogram" : "buckets need type: histogram");
    }
    if (quantiles && rule.shape.type != MetricType::kSummary) {
      const char* const key = fields.contains("quantiles") ? "quantiles" : "summary_options";
      RefuseForType(fields, key, "quantiles need type: summary");
    }
  }

  // As in statsd_exporter, the former keys `buckets` and `quantiles` have no effect beside another `observer_type`.
  void RefuseForType(const Fields& fields, const std::string& key, const std::string& why) {
    const bool is_former = (key == "buckets" || key == "quantiles") && !fields.contains("type");
    const YamlReader::Field& field = fields.find(key)->second;
    is_former ? Note(*field.key, key + " has no effect: " + why) : reader_.Fail(*field.value, why);
  }

  void ReadLabels(const YamlNode& labels, MappingRule& rule, Values& values) {
    if (!reader_.Expect(labels, YamlNode::Kind::kMap, "labels: expected a map (role: $1)")) return;
    for (const YamlNode::Entry& entry : labels.entries) {
      const std::string& name = entry.key->text;
      const std::string key = "labels." + name;
      if (const Status status = CheckLabelName(name); !status.ok()) {
        reader_.Fail(*entry.key, "labels: " + status.error());
      } else if (entry.value->kind == YamlNode::Kind::kNull) {
        reader_.Fail(*entry.key, key + ": expected a text, found nothing");
      } else if (reader_.Expect(*entry.value, YamlNode::Kind::kScalar, key + ": expected a text")) {
        if (!values.try_emplace(key, entry.value.get()).second)
          reader_.Fail(*entry.key, "labels: " + Quoted(name) + " is given twice");
        else
          rule.labels.emplace_back(name, entry.value->text);
      }
    }
    for (const YamlNode::Entry& entry : labels.entries) {
      const std::string& name = entry.key->text;
      if (SanitizeLabelName(name) != name && name != kRoleLabel && CheckLabelName(name).ok())
        Note(*entry.key, "label " + name + " belongs to the agent or a format; it is shown as " + ExposedLabelName(name, rule));
    }
  }

  // With a number at its end if another label of the rule has the same exposed name.
  static std::string ExposedLabelName(const std::string& name, const MappingRule& rule) {
    Labels labels;
    for (const auto& label : rule.labels)
      if (label.first != kRoleLabel) labels.emplace_back(label.first, label.first);
    std::sort(labels.begin(), labels.end());
    labels = ExposedLabels(labels);
    const auto exposed = std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.second == name; });
    return exposed == labels.end() ? SanitizeLabelName(name) : exposed->first;
  }

  void NoteKeysWithoutEffect(const YamlNode& node, const Fields& fields, const MappingRule& rule) {
    const auto matches = [&](MetricType type) {
      return rule.types.empty() || std::find(rule.types.begin(), rule.types.end(), type) != rule.types.end();
    };
    if (rule.drop) {
      NoteKeys(
          node, fields, "the rule drops what it matches", [](const std::string& key) { return !Contains(kDropKeys, key); });
    } else if (!matches(MetricType::kUntyped)) {
      const bool histograms = matches(MetricType::kHistogram);
      NoteKeys(
          node, fields, "the rule matches no streams, and counters, gauges and histograms keep their type",
          [&](const std::string& key) { return Contains(kStreamKeys, key) || (!histograms && Contains(kBucketKeys, key)); });
    }
    if (rule.unknown_match) return;
    // Only identical matches: whether one regular expression covers another cannot be decided here.
    const auto [first, is_new] = seen_.try_emplace(std::tuple(rule.regex, rule.match, rule.group, rule.types), node.line);
    if (!is_new)
      Note(node, "this rule never applies: the rule of line " + std::to_string(first->second) + " has the same match");
  }

  // One note for all keys without effect, at the first of them.
  void NoteKeys(const YamlNode& rule, const Fields& fields, const std::string& why,
                const std::function<bool(const std::string&)>& has_no_effect) {
    std::string list;
    const YamlNode* first = nullptr;
    int count = 0;
    for (const YamlNode::Entry& entry : rule.entries) {
      if (fields.contains(entry.key->text) && has_no_effect(entry.key->text)) {
        list += (count++ == 0 ? "" : ", ") + entry.key->text;
        first = first == nullptr ? entry.key.get() : first;
      }
    }
    if (first != nullptr) Note(*first, list + (count == 1 ? " has" : " have") + " no effect: " + why);
  }

  void Note(const YamlNode& at, const std::string& what) { file_.notes.push_back(reader_.Line(at, what)); }

  YamlReader reader_;
  MappingFile& file_;
  const std::shared_ptr<const Naming> fallback_;
  MappingRule defaults_;
  bool most_specific_ = false;
  std::vector<MappingRule> rules_;
  std::vector<const YamlNode*> nodes_;  // by rule
  std::vector<Values> values_;          // by rule
  std::map<std::tuple<bool, std::string, std::string, std::vector<MetricType>>, int> seen_;
};

MappingFile Parse(const std::string& name, const std::string& text, std::shared_ptr<const Naming> fallback) {
  MappingFile file;
  file.text = text;
  const auto document = ParseYaml(name, text);
  if (!document.ok()) {
    file.errors.push_back(document.error());
    return file;
  }
  MappingReader(name, file, std::move(fallback)).Read(*document.value());
  return file;
}

}  // namespace

MappingFile ParseMapping(const std::string& name, const std::string& text) {
  static const std::shared_ptr<const Naming> bundled = Parse(kBundledName, kBundledMapping, nullptr).rules;
  return Parse(name, text, bundled);
}

MappingFile ReadMapping(const std::string& setting) {
  if (setting == "none") return {};
  if (setting.empty()) return ParseMapping(kBundledName, kBundledMapping);
  const Result<std::string> text = WatchedFile("mapping_file", setting).Read();
  if (!text.ok()) return {.rules = nullptr, .text = "", .errors = {text.error()}, .notes = {}};
  return ParseMapping(setting, text.value());
}

}  // namespace persia::agent

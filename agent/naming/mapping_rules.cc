#include "naming/mapping_rules.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/text.h"
#include "model/bounds.h"
#include "naming/mapping_values.h"

namespace persia::agent {
namespace {

// More than the default of max_series, so that a job within that limit never empties the cache.
constexpr size_t kMaxCached = 250'000;
constexpr double kDefaultQuantiles[] = {0.5, 0.9, 0.99};

// Names may contain any byte, so the group's size marks where it ends.
std::string CacheKey(const SourceMetric& metric) {
  const size_t size = metric.group.size();
  std::string key;
  key.reserve(1 + sizeof size + size + metric.name.size());
  key += static_cast<char>(metric.type);
  key.append(reinterpret_cast<const char*>(&size), sizeof size);
  key += metric.group;
  key += metric.name;
  return key;
}

bool GlobMatches(const std::string& glob, std::string_view text) {
  GlobTree tree;
  tree.Add(glob, 0);
  std::vector<std::string_view> captures;
  return tree.FindFirst(
             text, [](size_t) { return true; }, captures) == 0;
}

bool GroupMatches(const std::string& glob, std::string_view group) {
  if (glob == "*" || glob == group) return true;
  return GlobTree::Wildcards(glob) > 0 && GlobMatches(glob, group);
}

void SetShape(const StreamShape& shape, const Scale& scale, Exposed& exposed) {
  exposed.type = shape.type;
  exposed.ttl = shape.ttl;
  exposed.classic = shape.classic;
  if (shape.type == MetricType::kHistogram) {
    exposed.native = shape.native;
    exposed.max_buckets = shape.max_buckets;
    exposed.bounds = shape.bounds;
    if (exposed.bounds.empty()) {
      exposed.bounds = DefaultStreamBounds();
      for (double& bound : exposed.bounds) bound = scale.Apply(bound);
    }
  } else if (shape.type == MetricType::kSummary) {
    exposed.quantiles = shape.quantiles;
    if (exposed.quantiles.empty()) exposed.quantiles.assign(std::begin(kDefaultQuantiles), std::end(kDefaultQuantiles));
  }
}

// The labels as ExposedLabels has them, except that `role` stays.
Labels RuleLabels(Labels labels) {
  Labels kept;
  std::erase_if(labels, [&](auto& label) {
    if (label.first != kRoleLabel) return false;
    if (std::string value = SanitizeText(label.second); !value.empty()) kept.emplace_back(label.first, std::move(value));
    return true;
  });
  std::sort(labels.begin(), labels.end());
  Labels exposed = ExposedLabels(labels);
  exposed.insert(exposed.end(), kept.begin(), kept.end());
  std::sort(exposed.begin(), exposed.end());
  return exposed;
}

}  // namespace

Status CheckGroup(std::string_view group) { return group.empty() ? Status(Done{}) : GlobTree::Check(group); }

std::shared_ptr<const MappingRules> MappingRules::Compile(std::vector<MappingRule> rules, Options options,
                                                          std::vector<RuleProblem>& problems) {
  std::shared_ptr<MappingRules> out(new MappingRules);
  out->options_ = std::move(options);
  for (MappingRule& rule : rules) out->AddRule(std::move(rule), problems);
  for (size_t i = 0; i < out->rules_.size(); ++i)
    if (out->rules_[i].unknown_match) out->LeaveOutAfter(out->rules_[i], i);
  return out;
}

void MappingRules::AddRule(MappingRule rule, std::vector<RuleProblem>& problems) {
  const size_t before = problems.size();
  const auto fail = [&](std::string key, std::string what) {
    problems.push_back({rules_.size(), std::move(key), std::move(what)});
  };
  if (const Status group = CheckGroup(rule.group); !group.ok()) {
    fail("group", group.error());
    rule.group = "*";
  }
  Compiled compiled;
  int captures = 0;
  if (!rule.unknown_match) AddMatch(rule, compiled, captures, problems);
  if (!rule.unknown_match) {
    NameTemplate::Names names;
    if (compiled.pattern) names.insert(compiled.pattern->names().begin(), compiled.pattern->names().end());
    if (auto name = NameTemplate::Parse(rule.name, captures, names); name.ok())
      compiled.name = std::move(name).value();
    else
      fail("name", Quoted(rule.name) + ": " + name.error());
    for (const auto& [name, value] : rule.labels)
      if (auto parsed = NameTemplate::Parse(value, captures, names); parsed.ok())
        compiled.labels.emplace_back(name, std::move(parsed).value());
      else
        fail("labels." + name, Quoted(value) + ": " + parsed.error());
  }
  rule.left_out |= rule.unknown_match || problems.size() > before;
  // In a glob they have no meaning: match_type may be missing, or be the error.
  const bool may_be_regex = !rule.regex && rule.match.find_first_of("\\^$()[]{}|+?") != std::string::npos;
  rule.unknown_match |= rule.left_out && may_be_regex;
  rules_.push_back(std::move(rule));
  compiled_.push_back(std::move(compiled));
}

void MappingRules::AddMatch(MappingRule& rule, Compiled& compiled, int& captures, std::vector<RuleProblem>& problems) {
  std::string problem;
  if (rule.regex) {
    Result<Pattern> pattern = Pattern::Compile(rule.match);
    if (pattern.ok()) {
      captures = pattern.value().groups();
      compiled.pattern = std::move(pattern).value();
      return regexes_.push_back(rules_.size());
    }
    problem = Quoted(rule.match) + " is not a regular expression: " + pattern.error();
  } else {
    const Status glob = GlobTree::Check(rule.match);
    if (glob.ok()) {
      captures = GlobTree::Wildcards(rule.match);
      return globs_.Add(rule.match, rules_.size());
    }
    problem = glob.error();
  }
  problems.push_back({rules_.size(), "match", std::move(problem)});
  rule.unknown_match = true;
}

void MappingRules::LeaveOutAfter(const MappingRule& unknown, size_t index) {
  const auto is_later = [&](size_t i) {
    if (rules_[i].regex != unknown.regex) return rules_[i].regex;
    return i > index || (options_.most_specific && !unknown.regex);
  };
  std::vector<std::string_view> captures;
  for (size_t i = 0; i < rules_.size(); ++i) {
    MappingRule& rule = rules_[i];
    if (rule.left_out || !is_later(i)) continue;
    const std::optional<Pattern>& pattern = compiled_[i].pattern;
    rule.left_out = rule.drop || (pattern ? pattern->Match(unknown.match, captures) : GlobMatches(rule.match, unknown.match));
  }
}

bool MappingRules::Accepts(size_t rule, const SourceMetric& metric) const {
  const std::vector<MetricType>& types = rules_[rule].types;
  return (types.empty() || std::find(types.begin(), types.end(), metric.type) != types.end()) &&
         GroupMatches(rules_[rule].group, metric.group);
}

MappingRules::Match MappingRules::Find(const SourceMetric& metric) const {
  Match match;
  const auto accepts = [&](size_t rule) { return Accepts(rule, metric); };
  match.rule = options_.most_specific ? globs_.FindMostSpecific(metric.name, accepts, match.captures)
                                      : globs_.FindFirst(metric.name, accepts, match.captures);
  if (match.rule != GlobTree::kNone) {
    match.captures.insert(match.captures.begin(), metric.name);
    return match;
  }
  for (const size_t rule : regexes_) {
    if (Accepts(rule, metric) && compiled_[rule].pattern->Match(metric.name, match.captures)) {
      match.rule = rule;
      break;
    }
  }
  return match;
}

std::string MappingRules::NameOf(const Compiled& compiled, const SourceMetric& metric, const Match& match) {
  return compiled.name.empty() ? PlainName(metric) : SanitizeMetricName(compiled.name.Fill(metric.group, match.captures));
}

Exposed MappingRules::Make(const SourceMetric& metric) const {
  Exposed exposed;
  const Match match = Find(metric);
  if (match.rule == GlobTree::kNone) {
    exposed.name = PlainName(metric);
    SetShape(options_.unmatched, Scale(), exposed);
    return exposed;
  }
  const MappingRule& rule = rules_[match.rule];
  if (rule.left_out) return *(options_.fallback == nullptr ? PlainNaming().Expose(metric) : options_.fallback->Expose(metric));
  const Compiled& compiled = compiled_[match.rule];
  exposed.name = NameOf(compiled, metric, match);
  Labels labels;
  for (const auto& [name, value] : compiled.labels) labels.emplace_back(name, value.Fill(metric.group, match.captures));
  exposed.labels = RuleLabels(std::move(labels));
  exposed.labels_yield = rule.honor_labels;
  exposed.help = SanitizeText(rule.help);
  exposed.scale = rule.scale;
  exposed.drop = rule.drop;
  SetShape(rule.shape, Scale(rule.scale), exposed);
  return exposed;
}

std::shared_ptr<const Exposed> MappingRules::Expose(const SourceMetric& metric) const {
  std::string key = CacheKey(metric);
  {
    const MutexLock lock(mutex_);
    if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
  }
  const std::string group = SanitizeText(metric.group);
  const std::string name = SanitizeText(metric.name);
  auto exposed = std::make_shared<const Exposed>(Make({group, name, metric.type}));
  const MutexLock lock(mutex_);
  if (cache_.size() >= kMaxCached) cache_.clear();  // the program makes up new names, which do not return
  return cache_.emplace(std::move(key), std::move(exposed)).first->second;
}

const MappingRule* MappingRules::RuleFor(const SourceMetric& metric) const {
  const std::string group = SanitizeText(metric.group);
  const std::string name = SanitizeText(metric.name);
  const Match match = Find({group, name, metric.type});
  return match.rule == GlobTree::kNone ? nullptr : &rules_[match.rule];
}

}  // namespace persia::agent

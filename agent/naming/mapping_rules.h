// Rules for how metrics are exposed. The first rule that matches a metric's group and name applies; globs are tried before
// regular expressions.
//
//   std::vector<RuleProblem> problems;
//   auto rules = MappingRules::Compile(std::move(list), {}, problems);
//   rules->Expose({"torchelastic", "workers.trainer.flakiness"})->name
//
// A rule with a problem keeps its place but is not applied: the metrics that it matches are exposed by Options::fallback, not
// by a later rule, which may drop all that is left. If its match is the problem, no later rule that drops, or that matches the
// text of its match, is applied either.
//
// The outcome for a metric is cached.
// Thread safety: any method, from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "naming/glob_tree.h"
#include "naming/name_template.h"
#include "naming/naming.h"
#include "naming/pattern.h"

namespace persia::agent {

// How a stream is exposed.
struct StreamShape {
  std::optional<MetricType> type = {};
  std::vector<double> bounds = {};  // of a histogram; empty: DefaultStreamBounds
  // Of a histogram: it is exposed as a native one, with the classic buckets beside it, of at most so many buckets (0: all).
  bool native = false;
  bool classic = false;
  uint32_t max_buckets = 0;
  std::vector<double> quantiles = {};  // of a summary; empty: 0.5, 0.9, 0.99
  std::optional<std::chrono::milliseconds> ttl = {};
};

struct MappingRule {
  std::string place = {};  // "mapping.yaml:12"
  std::string match = {};
  bool regex = false;  // `match` is a regular expression that matches anywhere in the name, instead of a glob (glob_tree.h)
  std::string group = "*";  // a glob; "*" is any group, and "" the empty group
  // The types of metrics that the rule is for; kUntyped: streams. Empty: all.
  std::vector<MetricType> types = {};
  std::string name = {};                                         // a template (name_template.h); empty: PlainName
  std::vector<std::pair<std::string, std::string>> labels = {};  // a name and a template of the value
  bool honor_labels = false;
  std::string help = {};
  StreamShape shape = {};
  double scale = 1;
  bool drop = false;
  bool left_out = false;       // an error was found in it: the metrics that it matches are exposed by Options::fallback
  bool unknown_match = false;  // and it is not known which those are
};

struct RuleProblem {
  size_t rule = 0;   // its index in the list that is compiled
  std::string key;   // "match", "name", "group" or "labels.NAME"
  std::string what;  // the error of the key's value
};

// Whether `group` is a glob or empty.
Status CheckGroup(std::string_view group);

class MappingRules : public Naming {
 public:
  struct Options {
    // The most specific glob applies, instead of the first.
    bool most_specific = false;
    // For streams that no rule matches.
    StreamShape unmatched = {};
    // Of the metrics of rules that are left out; null: PlainNaming.
    std::shared_ptr<const Naming> fallback = {};
  };

  // Never null.
  static std::shared_ptr<const MappingRules> Compile(std::vector<MappingRule> rules, Options options,
                                                     std::vector<RuleProblem>& problems);

  [[nodiscard]] std::shared_ptr<const Exposed> Expose(const SourceMetric& metric) const override;
  // The first rule that matches the metric, also one that is left out; null if none matches.
  [[nodiscard]] const MappingRule* RuleFor(const SourceMetric& metric) const;
  // All that were compiled, in that order.
  [[nodiscard]] std::span<const MappingRule> rules() const { return rules_; }

 private:
  struct Compiled {
    std::optional<Pattern> pattern;
    NameTemplate name;
    std::vector<std::pair<std::string, NameTemplate>> labels;
  };
  struct Match {
    size_t rule = GlobTree::kNone;
    std::vector<std::string_view> captures;  // [0]: the whole match
  };

  static std::string NameOf(const Compiled& compiled, const SourceMetric& metric, const Match& match);

  MappingRules() = default;
  void AddRule(MappingRule rule, std::vector<RuleProblem>& problems);
  // Adds what the rule matches.
  void AddMatch(MappingRule& rule, Compiled& compiled, int& captures, std::vector<RuleProblem>& problems);
  // Leaves out the rules that may take the metrics of a rule with an unknown match.
  void LeaveOutAfter(const MappingRule& unknown, size_t index);
  [[nodiscard]] bool Accepts(size_t rule, const SourceMetric& metric) const;
  [[nodiscard]] Match Find(const SourceMetric& metric) const;
  [[nodiscard]] Exposed Make(const SourceMetric& metric) const;

  std::vector<MappingRule> rules_;
  std::vector<Compiled> compiled_;  // by rule
  GlobTree globs_;
  std::vector<size_t> regexes_;  // rules, in order
  Options options_;

  mutable Mutex mutex_;
  mutable std::unordered_map<std::string, std::shared_ptr<const Exposed>> cache_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent

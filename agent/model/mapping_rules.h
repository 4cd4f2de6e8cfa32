// Rules that say how metrics are exposed: the first that matches a metric's group and name counts, globs before regexes.
//
//   std::vector<RuleProblem> problems;
//   auto rules = MappingRules::Compile(std::move(list), {}, problems);   // null if there are problems
//   rules->Expose({"torchelastic", "workers.trainer.flakiness"})->name
//
// Compiled once; what came out for a metric is kept, so that a metric costs a look-up in a table each further time.
// Thread safety: any method, from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/glob_tree.h"
#include "model/name_template.h"
#include "model/naming.h"
#include "model/pattern.h"

namespace persia::agent {

// What a stream is shown as.
struct StreamShape {
  std::optional<MetricType> type = {};
  std::vector<double> bounds = {};     // of a histogram; empty: DefaultStreamBounds
  std::vector<double> quantiles = {};  // of a summary; empty: 0.5, 0.9, 0.99
  std::optional<std::chrono::milliseconds> ttl = {};
};

struct MappingRule {
  std::string place = {};  // where it stands: "mapping.yaml:12"
  std::string match = {};
  bool regex = false;       // `match` is a regular expression, to be found anywhere in the name; else a glob (glob_tree.h)
  std::string group = "*";  // a glob too, a bare * is any group; or empty, which is the empty group
  // Of which types metrics must be; empty: of any. kUntyped: streams.
  std::vector<MetricType> types = {};
  std::string name = {};                                         // a template (name_template.h); empty: PlainName
  std::vector<std::pair<std::string, std::string>> labels = {};  // names, and templates of values
  bool honor_labels = false;
  std::string help = {};
  StreamShape shape = {};
  double scale = 1;
  bool drop = false;
};

// What is wrong with a rule.
struct RuleProblem {
  size_t rule = 0;    // its index
  std::string key;    // the part: "match", "name", "group", or of a label its name behind "labels."
  std::string value;  // as it stands there
  std::string what;
};

// What is wrong with a rule's group; empty if nothing is.
std::string WhyNoGroup(std::string_view group);

class MappingRules : public Naming {
 public:
  struct Options {
    // Of globs not the first counts but the most specific one.
    bool most_specific = false;
    // For streams that no rule matches.
    StreamShape unmatched = {};
  };

  static std::shared_ptr<const MappingRules> Compile(std::vector<MappingRule> rules, Options options,
                                                     std::vector<RuleProblem>& problems);

  [[nodiscard]] std::shared_ptr<const Exposed> Expose(const SourceMetric& metric) const override;
  // The rule that matches; null if none does.
  [[nodiscard]] const MappingRule* RuleFor(const SourceMetric& metric) const;
  [[nodiscard]] std::span<const MappingRule> rules() const { return rules_; }

 private:
  struct Compiled {
    std::optional<Pattern> pattern;
    NameTemplate name;
    std::vector<std::pair<std::string, NameTemplate>> labels;
  };
  struct Match {
    size_t rule = GlobTree::kNone;
    std::vector<std::string_view> captures;  // all that matched first
  };

  MappingRules() = default;
  void CompileRule(size_t index, std::vector<RuleProblem>& problems);
  [[nodiscard]] bool Accepts(size_t rule, const SourceMetric& metric) const;
  [[nodiscard]] Match Find(const SourceMetric& metric) const;
  [[nodiscard]] Exposed Make(const SourceMetric& metric) const;

  std::vector<MappingRule> rules_;
  std::vector<Compiled> compiled_;  // by rule
  GlobTree globs_;
  std::vector<size_t> regexes_;  // rules, in order
  Options options_;

  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::shared_ptr<const Exposed>> cache_;  // guarded by mutex_
};

}  // namespace persia::agent

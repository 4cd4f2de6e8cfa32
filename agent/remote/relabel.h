// Changes or drops series on their way to a target, as Prometheus' `write_relabel_configs` do.
//
// The steps are taken in order on all labels of a series, its name among them as `__name__`. A regular expression must match
// all of a text. An empty value takes the label away.
//
// Thread safety: Apply from any thread.
//
//   auto rule = RelabelRule::Make({.action = RelabelAction::kDrop, .source_labels = {"__name__"}, .regex = "debug_.*"});
//   if (!Relabel(rules, labels)) ... the series is dropped
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/pattern.h"
#include "model/result.h"
#include "model/snapshot.h"

namespace persia::agent {

enum class RelabelAction : uint8_t { kReplace, kKeep, kDrop, kLabelDrop, kLabelKeep };

// As Prometheus has it, with its defaults.
struct RelabelConfig {
  RelabelAction action = RelabelAction::kReplace;
  std::vector<std::string> source_labels{};
  std::string separator = ";";
  std::string regex = "(.*)";
  std::string target_label{};
  std::string replacement = "$1";

  bool operator==(const RelabelConfig&) const = default;
};

class RelabelRule {
 public:
  // The error names the field and quotes what is wrong in it.
  static Result<RelabelRule> Make(RelabelConfig config);

  // False: the series is dropped. `labels` are sorted, and stay so.
  [[nodiscard]] bool Apply(Labels& labels) const;
  [[nodiscard]] const RelabelConfig& config() const { return config_; }

 private:
  RelabelRule(RelabelConfig config, Pattern pattern)
      : config_(std::move(config)), pattern_(std::make_shared<const Pattern>(std::move(pattern))) {}

  RelabelConfig config_;
  std::shared_ptr<const Pattern> pattern_;  // rules are copied
};

using RelabelRules = std::vector<RelabelRule>;

// False: the series is dropped.
[[nodiscard]] bool Relabel(const RelabelRules& rules, Labels& labels);

}  // namespace persia::agent

// Changes or drops series before they are sent, as Prometheus' `write_relabel_configs` do.
//
// Rules apply in order to all labels of a series, with its name as `__name__`. A regular expression must match the whole text.
// An empty value removes the label. A name that is not valid in remote write 1.0 (letters, digits, `_`) leaves the labels as
// they are. `lowercase` and `uppercase` change ASCII letters.
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

#include "base/result.h"
#include "base/text.h"
#include "model/snapshot.h"
#include "naming/pattern.h"

namespace persia::agent {

// Prometheus has `hashmod`, `keepequal` and `dropequal`, too. They divide targets among servers and compare labels of service
// discovery.
enum class RelabelAction : uint8_t { kReplace, kKeep, kDrop, kLabelMap, kLabelDrop, kLabelKeep, kLowercase, kUppercase };

inline constexpr Choice<RelabelAction> kRelabelActions[] = {
    {"replace", RelabelAction::kReplace},     {"keep", RelabelAction::kKeep},
    {"drop", RelabelAction::kDrop},           {"labelmap", RelabelAction::kLabelMap},
    {"labeldrop", RelabelAction::kLabelDrop}, {"labelkeep", RelabelAction::kLabelKeep},
    {"lowercase", RelabelAction::kLowercase}, {"uppercase", RelabelAction::kUppercase}};

// With Prometheus' names and defaults.
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
  // The error names the field and quotes the bad input.
  static Result<RelabelRule> Make(RelabelConfig config);

  // False: the series is dropped. `labels` are sorted, and stay so.
  [[nodiscard]] bool Apply(Labels& labels) const;

 private:
  RelabelRule(RelabelConfig config, Pattern pattern)
      : config_(std::move(config)), pattern_(std::make_shared<const Pattern>(std::move(pattern))) {}

  [[nodiscard]] std::string SourceOf(const Labels& labels) const;
  [[nodiscard]] std::string Expand(std::string_view text, const std::vector<std::string_view>& captures) const;
  void Replace(const std::string& source, Labels& labels) const;
  void MapLabels(Labels& labels) const;

  RelabelConfig config_;
  std::shared_ptr<const Pattern> pattern_;  // shared, as rules are copied
};

using RelabelRules = std::vector<RelabelRule>;

// False: the series is dropped.
[[nodiscard]] bool Relabel(const RelabelRules& rules, Labels& labels);

}  // namespace persia::agent

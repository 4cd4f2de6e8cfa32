#include "config/relabel_settings.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/choice.h"
#include "base/text.h"

namespace persia::agent {
namespace {

constexpr char kRelabelPrefix[] = "write_relabel_configs: ";
constexpr std::string_view kRelabelKeys[] = {"action",  "source_labels", "separator",  "regex",
                                             "modulus", "target_label",  "replacement"};

// In any case, as Prometheus reads it.
Result<RelabelAction> ParseAction(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  auto action = ParseChoice(lower, kRelabelActions);
  return action.ok() ? action : ParseChoice(text, kRelabelActions);  // the error quotes the text as it is
}

Result<uint64_t> ParseModulus(std::string_view text) {
  uint64_t modulus = 0;
  if (!ParseNumber(text, modulus)) return Bad(text, "is not a whole number");
  return modulus;
}

void ReadSourceLabels(const YamlNode& labels, YamlReader& reader, RelabelConfig& rule) {
  if (!reader.Expect(labels, YamlNode::Kind::kSequence,
                     std::string(kRelabelPrefix) + "source_labels: expected a list of labels"))
    return;
  for (const auto& label : labels.items) {
    if (reader.Expect(*label, YamlNode::Kind::kScalar, std::string(kRelabelPrefix) + "source_labels: expected a label")) {
      rule.source_labels.push_back(label->text);
    }
  }
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
  const std::optional<uint64_t> modulus = reader.Parse(fields, "modulus", ParseModulus);
  if (fields.contains("modulus") && !modulus) return;
  rule.modulus = modulus.value_or(rule.modulus);
  rule.target_label = reader.Text(fields, "target_label").value_or(rule.target_label);
  rule.replacement = reader.Text(fields, "replacement").value_or(rule.replacement);
  if (const auto made = RelabelRule::Make(rule); !made.ok()) return reader.Fail(map, kRelabelPrefix + made.error());
  rules.push_back(std::move(rule));
}

}  // namespace

void ReadRelabelConfigs(const YamlNode& list, YamlReader& reader, std::vector<RelabelConfig>& rules) {
  if (!reader.Expect(list, YamlNode::Kind::kSequence, std::string(kRelabelPrefix) + "expected a list")) return;
  for (const auto& rule : list.items) ReadRule(*rule, reader, rules);
}

}  // namespace persia::agent

#include "remote/relabel.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

using A = RelabelAction;

bool IsLabelName(std::string_view name) {
  return !name.empty() && IsLetter(name.front()) &&
         std::all_of(
             name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
}

// Expands the texts `replacement` and `target_label`, which refer to groups of the regular expression: $1, ${1}, $name,
// ${name}; `$$` is a dollar. Each reference becomes what `group` returns for its name or number. As in Go's regexp, a reference
// is as long as letters, digits and underscores go, so that a letter after a number needs braces; a dollar without a reference
// stays.
std::string ExpandTemplate(std::string_view text, const std::function<std::string_view(std::string_view name)>& group) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      out += text[at++];
      continue;
    }
    const size_t braces = text.substr(at + 1).starts_with('{') ? 1 : 0;
    const size_t begin = at + 1 + braces;
    size_t end = begin;
    while (end < text.size() && (IsLetter(text[end]) || IsDigit(text[end]))) ++end;
    if (end > begin && (braces == 0 || text.substr(end).starts_with('}'))) {
      out += group(text.substr(begin, end - begin));
      at = end + braces;
    } else {
      out += '$';
      at += text.substr(at).starts_with("$$") ? 2 : 1;
    }
  }
  return out;
}

// Whether the template is a label's name for some captures.
bool IsLabelTemplate(std::string_view text) {
  return IsLabelName(ExpandTemplate(
      text, [](std::string_view) { return std::string_view("x"); }));
}

std::string InCase(std::string text, bool to_lower) {
  for (char& c : text) {
    const bool changes = to_lower ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
    if (changes) c = static_cast<char>(c ^ ('a' - 'A'));
  }
  return text;
}

std::string ValueOf(const Labels& labels, const std::string& name) {
  const auto found = std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.first == name; });
  return found == labels.end() ? std::string() : found->second;
}

void SetLabel(Labels& labels, const std::string& name, std::string value) {
  const auto place = std::lower_bound(labels.begin(), labels.end(), name,
                                      [](const auto& label, const auto& wanted) { return label.first < wanted; });
  const bool exists = place != labels.end() && place->first == name;
  if (value.empty()) {
    if (exists) labels.erase(place);
  } else if (exists) {
    place->second = std::move(value);
  } else {
    labels.emplace(place, name, std::move(value));
  }
}

bool IsOneOf(A action, std::initializer_list<A> actions) { return std::ranges::find(actions, action) != actions.end(); }

Result<Pattern> CompileAnchored(const std::string& regex) {
  // First without the group: an unmatched parenthesis must not close it.
  auto pattern = Pattern::Compile(regex);
  if (pattern.ok()) pattern = Pattern::Compile("^(?s:" + regex + ")$");
  return pattern;
}

// The fields that the action demands, and those that it refuses.
Status CheckFields(const RelabelConfig& config) {
  const RelabelConfig defaults;
  const std::string action = "the action " + std::string(WordOf(config.action, kRelabelActions));
  for (const std::string& name : config.source_labels)
    if (!IsLabelName(name)) return Error{"source_labels: " + Quoted(name) + " is not a label's name"};
  const bool only_regex = IsOneOf(config.action, {A::kLabelDrop, A::kLabelKeep});
  const bool changes_case = IsOneOf(config.action, {A::kLowercase, A::kUppercase});
  if (only_regex && config != RelabelConfig{.action = config.action, .regex = config.regex})
    return Error{action + " has a regex and no other field"};
  if (changes_case && config.replacement != defaults.replacement) return Error{"replacement: " + action + " has none"};
  if (config.action == A::kLabelMap && !IsLabelTemplate(config.replacement))
    return Error{"replacement: " + Quoted(config.replacement) + " is not a label's name"};
  if (config.action != A::kReplace && !changes_case) return Done{};
  if (config.target_label.empty()) return Error{"target_label: " + action + " needs one"};
  const bool is_name = config.action == A::kReplace ? IsLabelTemplate(config.target_label) : IsLabelName(config.target_label);
  if (!is_name) return Error{"target_label: " + Quoted(config.target_label) + " is not a label's name"};
  return Done{};
}

}  // namespace

Result<RelabelRule> RelabelRule::Make(RelabelConfig config) {
  if (Status status = CheckFields(config); !status.ok()) return Error{status.error()};
  auto pattern = CompileAnchored(config.regex);
  if (!pattern.ok()) return Error{"regex: " + Quoted(config.regex) + ": " + pattern.error()};
  return RelabelRule(std::move(config), std::move(pattern).value());
}

std::string RelabelRule::SourceOf(const Labels& labels) const {
  std::string text;
  for (size_t i = 0; i < config_.source_labels.size(); ++i)
    text += (i > 0 ? config_.separator : "") + ValueOf(labels, config_.source_labels[i]);
  return text;
}

std::string RelabelRule::Expand(std::string_view text, const std::vector<std::string_view>& captures) const {
  return ExpandTemplate(
      text,
      [&](std::string_view name) {
        const auto group = pattern_->GroupOf(name);
        return group && *group < captures.size() ? captures[*group] : std::string_view();
      });
}

void RelabelRule::Replace(const std::string& source, Labels& labels) const {
  std::vector<std::string_view> captures;
  if (!pattern_->Match(source, captures)) return;
  const std::string target = Expand(config_.target_label, captures);
  if (IsLabelName(target)) SetLabel(labels, target, Expand(config_.replacement, captures));
}

void RelabelRule::MapLabels(Labels& labels) const {
  std::vector<std::string_view> captures;
  const Labels before = labels;
  for (const auto& [name, value] : before) {
    if (!pattern_->Match(name, captures)) continue;
    const std::string target = Expand(config_.replacement, captures);
    if (IsLabelName(target)) SetLabel(labels, target, value);
  }
}

bool RelabelRule::Apply(Labels& labels) const {
  std::vector<std::string_view> captures;
  const std::string source = SourceOf(labels);
  switch (config_.action) {
    case A::kReplace:
      Replace(source, labels);
      break;
    case A::kKeep:
      return pattern_->Match(source, captures);
    case A::kDrop:
      return !pattern_->Match(source, captures);
    case A::kLabelMap:
      MapLabels(labels);
      break;
    case A::kLabelDrop:
    case A::kLabelKeep: {
      const bool drops = config_.action == A::kLabelDrop;
      std::erase_if(labels, [&](const auto& label) { return pattern_->Match(label.first, captures) == drops; });
      break;
    }
    case A::kLowercase:
      SetLabel(labels, config_.target_label, InCase(source, true));
      break;
    case A::kUppercase:
      SetLabel(labels, config_.target_label, InCase(source, false));
      break;
  }
  return true;
}

bool Relabel(const RelabelRules& rules, Labels& labels) {
  return std::all_of(
      rules.begin(), rules.end(), [&labels](const RelabelRule& rule) { return rule.Apply(labels); });
}

}  // namespace persia::agent

#include "remote/relabel.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

bool IsWord(char c) { return IsLetter(c) || IsDigit(c); }

bool IsLabelName(std::string_view name) {
  return !name.empty() && IsLetter(name.front()) && std::all_of(name.begin(), name.end(), IsWord);
}

// Takes a reference off the front of `rest`, which begins with `$`, as Go's regexp does: the longest run of letters, digits and
// underscores, in braces or not. Nothing: the `$` is literal.
std::optional<std::string_view> TakeReference(std::string_view& rest) {
  std::string_view after = rest.substr(1);
  const bool braces = after.starts_with('{');
  if (braces) after.remove_prefix(1);
  const size_t size = static_cast<size_t>(std::find_if_not(after.begin(), after.end(), IsWord) - after.begin());
  if (size == 0 || (braces && (size == after.size() || after[size] != '}'))) return std::nullopt;
  const std::string_view name = after.substr(0, size);
  rest = after.substr(size + (braces ? 1 : 0));
  return name;
}

// Replaces each reference by what `group` returns for its name, and `$$` by `$`.
template <class Group>
std::string Expand(std::string_view text, Group group) {
  std::string out;
  for (;;) {
    const size_t dollar = std::min(text.find('$'), text.size());
    out += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.empty()) return out;
    if (const auto name = TakeReference(text)) {
      out += group(*name);
    } else {
      out += '$';
      text.remove_prefix(text.starts_with("$$") ? 2 : 1);
    }
  }
}

std::string Expand(std::string_view text, const std::vector<std::string_view>& captures) {
  return Expand(text, [&captures](std::string_view name) {
    size_t number = 0;
    return ParseNumber(name, number) && number < captures.size() ? captures[number] : std::string_view();
  });
}

// The first reference that is not a number, or empty.
std::string NamedReference(std::string_view text) {
  std::string found;
  Expand(text, [&found](std::string_view name) {
    if (found.empty() && !std::all_of(name.begin(), name.end(), IsDigit)) found = name;
    return std::string_view();
  });
  return found;
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

}  // namespace

Result<RelabelRule> RelabelRule::Make(RelabelConfig config) {
  for (const std::string& name : config.source_labels) {
    if (!IsLabelName(name)) return Error{"source_labels: " + Quoted(name) + " is not a label's name"};
  }
  // First without the group: an unmatched parenthesis must not close it.
  auto pattern = Pattern::Compile(config.regex);
  if (pattern.ok()) pattern = Pattern::Compile("^(?s:" + config.regex + ")$");
  if (!pattern.ok()) return Error{"regex: " + Quoted(config.regex) + ": " + pattern.error()};
  switch (config.action) {
    case RelabelAction::kReplace: {
      if (config.target_label.empty()) return Error{"target_label: the action replace needs one"};
      const std::string example = Expand(config.target_label, [](std::string_view) { return std::string_view("x"); });
      if (!IsLabelName(example)) return Error{"target_label: " + Quoted(config.target_label) + " is not a label's name"};
      for (const std::string& text : {config.target_label, config.replacement}) {
        if (const std::string name = NamedReference(text); !name.empty()) {
          return Error{Quoted(text) + " refers to a group " + Quoted(name) +
                       "; groups have numbers here: $1, or ${1} before a letter"};
        }
      }
      break;
    }
    case RelabelAction::kKeep:
    case RelabelAction::kDrop:
      if (config.source_labels.empty()) return Error{"source_labels: the actions keep and drop need some"};
      break;
    case RelabelAction::kLabelDrop:
    case RelabelAction::kLabelKeep:
      if (!config.source_labels.empty() || !config.target_label.empty()) {
        return Error{"the actions labeldrop and labelkeep have a regex and nothing else"};
      }
  }
  return RelabelRule(std::move(config), std::move(pattern).value());
}

bool RelabelRule::Apply(Labels& labels) const {
  std::vector<std::string_view> captures;
  if (config_.action == RelabelAction::kLabelDrop || config_.action == RelabelAction::kLabelKeep) {
    const bool drops = config_.action == RelabelAction::kLabelDrop;
    std::erase_if(labels, [&](const auto& label) { return pattern_->Match(label.first, captures) == drops; });
    return true;
  }
  std::string text;
  for (size_t i = 0; i < config_.source_labels.size(); ++i) {
    if (i > 0) text += config_.separator;
    const auto label = std::find_if(labels.begin(), labels.end(),
                                    [&](const auto& candidate) { return candidate.first == config_.source_labels[i]; });
    if (label != labels.end()) text += label->second;
  }
  const bool matches = pattern_->Match(text, captures);
  if (config_.action == RelabelAction::kKeep) return matches;
  if (config_.action == RelabelAction::kDrop) return !matches;
  if (!matches) return true;
  const std::string target = Expand(config_.target_label, captures);
  if (IsLabelName(target)) SetLabel(labels, target, Expand(config_.replacement, captures));
  return true;
}

bool Relabel(const RelabelRules& rules, Labels& labels) {
  return std::all_of(rules.begin(), rules.end(), [&labels](const RelabelRule& rule) { return rule.Apply(labels); });
}

}  // namespace persia::agent

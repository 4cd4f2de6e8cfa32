#include "remote/relabel.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace persia::agent {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWord(char c) { return IsNameStart(c) || IsDigit(c); }

bool IsLabelName(std::string_view name) {
  return !name.empty() && IsNameStart(name.front()) && std::all_of(name.begin(), name.end(), IsWord);
}

// A reference at the front of `rest`, which begins with `$`, taken off it, as Go's regexp expands templates: the longest run of
// letters, digits and underscores, in braces or not. Nothing: the `$` is only itself.
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

// `of_group` is given each reference's name. What Go leaves out for want of a reference ("$" before what is no name) is left
// out.
template <class OfGroup>
std::string Expand(std::string_view text, OfGroup of_group) {
  std::string out;
  while (!text.empty()) {
    const size_t dollar = std::min(text.find('$'), text.size());
    out += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.starts_with("$$")) {
      out += '$';
      text.remove_prefix(2);
    } else if (!text.empty()) {
      if (const auto name = TakeReference(text)) {
        out += of_group(*name);
      } else {
        out += '$';  // malformed: as it stands
        text.remove_prefix(1);
      }
    }
  }
  return out;
}

std::string Expand(std::string_view text, const std::vector<std::string_view>& captures) {
  return Expand(text, [&captures](std::string_view name) -> std::string_view {
    size_t number = 0;
    for (const char c : name) {
      if (!IsDigit(c) || number > captures.size()) return {};
      number = 10 * number + static_cast<size_t>(c - '0');
    }
    return number < captures.size() ? captures[number] : std::string_view();
  });
}

// The first reference that is not a number; empty if there is none.
std::string NamedReference(std::string_view text) {
  std::string found;
  Expand(text, [&found](std::string_view name) {
    if (found.empty() && !std::all_of(name.begin(), name.end(), IsDigit)) found = name;
    return std::string_view();
  });
  return found;
}

auto Place(Labels& labels, std::string_view name) {
  return std::lower_bound(labels.begin(), labels.end(), name,
                          [](const auto& label, auto wanted) { return label.first < wanted; });
}

std::string_view ValueOf(const Labels& labels, std::string_view name) {
  const auto found = std::find_if(labels.begin(), labels.end(), [name](const auto& label) { return label.first == name; });
  return found == labels.end() ? std::string_view() : found->second;
}

void SetLabel(Labels& labels, const std::string& name, std::string value) {
  const auto place = Place(labels, name);
  const bool there = place != labels.end() && place->first == name;
  if (value.empty()) {
    if (there) labels.erase(place);
  } else if (there) {
    place->second = std::move(value);
  } else {
    labels.emplace(place, name, std::move(value));
  }
}

std::string Quote(std::string_view text) { return '"' + std::string(text) + '"'; }

}  // namespace

Result<RelabelRule> RelabelRule::Make(RelabelConfig config) {
  for (const std::string& name : config.source_labels) {
    if (!IsLabelName(name)) return Error{"source_labels: " + Quote(name) + " is not a label's name"};
  }
  // By itself first: a parenthesis too many must not close ours.
  if (const auto alone = Pattern::Compile(config.regex); !alone.ok()) {
    return Error{"regex: " + Quote(config.regex) + ": " + alone.error()};
  }
  auto pattern = Pattern::Compile("^(?s:" + config.regex + ")$");
  if (!pattern.ok()) return Error{"regex: " + Quote(config.regex) + ": " + pattern.error()};
  switch (config.action) {
    case RelabelAction::kReplace: {
      if (config.target_label.empty()) return Error{"target_label: the action replace needs one"};
      const std::string example = Expand(config.target_label, [](std::string_view) { return std::string_view("x"); });
      if (!IsLabelName(example)) return Error{"target_label: " + Quote(config.target_label) + " is not a label's name"};
      for (const std::string& text : {config.target_label, config.replacement}) {
        if (const std::string name = NamedReference(text); !name.empty()) {
          return Error{Quote(text) + " refers to a group " + Quote(name) +
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
    text += ValueOf(labels, config_.source_labels[i]);
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

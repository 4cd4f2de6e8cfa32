#include "remote/relabel.h"

#include <openssl/evp.h>
#include <wctype.h>

#include <algorithm>
#include <clocale>
#include <cwchar>
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

// Takes a reference off the front of `rest`, which begins with `$`. Nothing: the `$` is literal.
std::optional<std::string_view> TakeReference(std::string_view& rest) {
  std::string_view after = rest.substr(1);
  const bool braces = after.starts_with('{');
  if (braces) after.remove_prefix(1);
  const auto end = std::find_if_not(after.begin(), after.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
  const auto size = static_cast<size_t>(end - after.begin());
  if (size == 0 || (braces && (size == after.size() || after[size] != '}'))) return std::nullopt;
  const std::string_view name = after.substr(0, size);
  rest = after.substr(size + (braces ? 1 : 0));
  return name;
}

// Expands the texts `replacement` and `target_label`, which refer to groups of the regular expression: $1, ${1}, $name,
// ${name}; `$$` is a dollar. Each reference becomes what `group` returns for its name or number. As in Go's regexp, a reference
// is as long as letters, digits and underscores go, so that a letter after a number needs braces; a dollar without a reference
// stays.
std::string ExpandTemplate(std::string_view text, const std::function<std::string_view(std::string_view name)>& group) {
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

// Whether the template is a label's name for some captures.
bool IsLabelTemplate(std::string_view text) {
  return IsLabelName(ExpandTemplate(
      text, [](std::string_view) { return std::string_view("x"); }));
}

// The libc's tables of letters. Without them (a minimal image), only ASCII letters change.
locale_t Utf8() {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return utf8;
}

char ChangedAscii(char c, bool to_lower) {
  if (to_lower) return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
}

// Upper or lower case of UTF-8 text, letter by letter, as in Unicode.
std::string InCase(std::string_view text, bool to_lower) {
  std::string out;
  const locale_t utf8 = Utf8();
  const locale_t before = utf8 == nullptr ? nullptr : uselocale(utf8);  // of this thread
  while (!text.empty()) {
    wchar_t letter = 0;
    mbstate_t state{};
    const size_t size = utf8 == nullptr ? 1 : std::mbrtowc(&letter, text.data(), text.size(), &state);
    if (size <= 1 || size > text.size()) {  // ASCII, or not UTF-8
      out += ChangedAscii(text.front(), to_lower);
      text.remove_prefix(1);
      continue;
    }
    const auto code = static_cast<wint_t>(letter);
    char bytes[16];
    state = {};
    const size_t written = std::wcrtomb(bytes, static_cast<wchar_t>(to_lower ? towlower(code) : towupper(code)), &state);
    out += written <= sizeof bytes ? std::string_view(bytes, written) : text.substr(0, size);
    text.remove_prefix(size);
  }
  if (before != nullptr) uselocale(before);
  return out;
}

// MD5, by which Prometheus' action `hashmod` spreads series: the last 8 bytes of the hash, big endian. Nothing if OpenSSL is
// configured without MD5.
std::optional<uint64_t> Md5Tail(std::string_view text) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), hash, &size, EVP_md5(), nullptr) != 1 || size != 16) return std::nullopt;
  uint64_t tail = 0;
  for (unsigned i = 8; i < 16; ++i) tail = tail << 8 | hash[i];
  return tail;
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
  const bool compares = IsOneOf(config.action, {A::kKeepEqual, A::kDropEqual});
  const bool changes_case = IsOneOf(config.action, {A::kLowercase, A::kUppercase});
  if (only_regex && config != RelabelConfig{.action = config.action, .regex = config.regex})
    return Error{action + " has a regex and no other field"};
  if (compares &&
      config !=
          RelabelConfig{.action = config.action, .source_labels = config.source_labels, .target_label = config.target_label})
    return Error{action + " has source_labels and target_label, and no other field"};
  if (changes_case && config.replacement != defaults.replacement) return Error{"replacement: " + action + " has none"};
  if (config.action == A::kHashMod && config.modulus == 0) return Error{"modulus: " + action + " needs one above 0"};
  if (config.action == A::kHashMod && !Md5Tail("")) return Error{action + " needs MD5, which this machine's OpenSSL refuses"};
  if (config.action == A::kLabelMap && !IsLabelTemplate(config.replacement))
    return Error{"replacement: " + Quoted(config.replacement) + " is not a label's name"};
  if (config.action != A::kReplace && config.action != A::kHashMod && !compares && !changes_case) return Done{};
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
    case A::kKeepEqual:
      return ValueOf(labels, config_.target_label) == source;
    case A::kDropEqual:
      return ValueOf(labels, config_.target_label) != source;
    case A::kHashMod:
      SetLabel(labels, config_.target_label, std::to_string(Md5Tail(source).value_or(0) % config_.modulus));
      break;
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

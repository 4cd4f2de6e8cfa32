#include "format/name_escaping.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"

namespace persia::agent {
namespace {

using Names = std::set<std::string, std::less<>>;

enum class Kind : uint8_t { kMetric, kLabel };  // only metrics' names may have a colon

bool IsPlain(char c, size_t at, Kind kind) {
  return IsLetter(c) || (c == ':' && kind == Kind::kMetric) || (IsDigit(c) && at > 0);
}

bool IsPlain(std::string_view name, Kind kind) { return kind == Kind::kMetric ? IsPlainName(name) : IsPlainLabelName(name); }

// The first character of valid UTF-8, which it removes.
char32_t TakeCharacter(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  char32_t character = size == 1 ? first : first & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) character = (character << 6) | (static_cast<unsigned char>(text[i]) & 0x3f);
  text.remove_prefix(size);
  return character;
}

std::string Hexadecimal(char32_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (; text.empty() || number > 0; number >>= 4) text.insert(text.begin(), kDigits[number & 0xf]);
  return text;
}

std::string EscapeCharacter(char32_t character, size_t at, NameEscaping escaping, Kind kind) {
  const bool is_plain = character < 0x80 && IsPlain(static_cast<char>(character), at, kind);
  if (escaping == NameEscaping::kUnderscores) return is_plain ? std::string(1, static_cast<char>(character)) : "_";
  if (character == '_') return "__";
  if (is_plain) return {static_cast<char>(character)};
  if (escaping == NameEscaping::kValues) return '_' + Hexadecimal(character) + '_';
  return character == '.' ? "_dot_" : "__";
}

std::string Escape(std::string_view name, NameEscaping escaping, Kind kind) {
  const bool stays = escaping == NameEscaping::kAllowUtf8 || (escaping != NameEscaping::kDots && IsPlain(name, kind));
  if (stays || name.empty()) return std::string(name);
  std::string escaped = escaping == NameEscaping::kValues ? "U__" : "";
  for (std::string_view rest = name; !rest.empty();) {
    const size_t at = name.size() - rest.size();
    escaped += EscapeCharacter(TakeCharacter(rest), at, escaping, kind);
  }
  return escaped;
}

// The names of a family's samples, and its own.
std::vector<std::string> SampleNames(const std::string& name, MetricType type) {
  if (type == MetricType::kHistogram) return {name, name + "_bucket", name + "_sum", name + "_count"};
  if (type == MetricType::kSummary) return {name, name + "_sum", name + "_count"};
  return {name};
}

bool IsTaken(const Names& taken, const std::vector<std::string>& names) {
  return std::ranges::any_of(
      names, [&](const std::string& name) { return taken.contains(name); });
}

// The names of labels that a layout's series must not repeat.
struct LabelNames {
  Names known;  // those of the identities, and of the formats
  Names fresh;  // what escaping makes of those of the identities that it changes
};

// Escapes the names of one set of labels, those of a series or, with `fresh` empty, of an identity.
template <class List>
Labels EscapeLabels(const List& labels, const LabelNames& names, NameEscaping escaping) {
  Names taken = names.fresh;
  for (const auto& label : labels)
    if (!names.fresh.contains(label.first)) taken.emplace(label.first);
  const auto is_taken = [&](const std::string& name) { return taken.contains(name) || names.known.contains(name); };
  Labels escaped;
  for (const auto& [name, value] : labels) {
    std::string fresh = Escape(name, escaping, Kind::kLabel);
    if (fresh == name) {
      // As for any label that the identity has, too.
      while (names.fresh.contains(fresh) || (fresh != name && is_taken(fresh))) fresh.insert(0, "exported_");
    } else {
      if (is_taken(fresh) || fresh.starts_with("__")) fresh = Escape(name, NameEscaping::kValues, Kind::kLabel);
      while ((fresh != name || names.fresh.contains(fresh)) && is_taken(fresh)) fresh += '_';
    }
    taken.insert(fresh);
    escaped.emplace_back(std::move(fresh), value);
  }
  std::ranges::sort(escaped);
  return escaped;
}

bool IsChanged(std::string_view name, NameEscaping escaping, Kind kind) {
  return !IsPlain(name, kind) || (escaping == NameEscaping::kDots && name.find('_') != std::string_view::npos);
}

template <class List>
bool IsChangedIn(const List& labels, NameEscaping escaping) {
  return std::any_of(
      labels.begin(), labels.end(), [escaping](const auto& label) { return IsChanged(label.first, escaping, Kind::kLabel); });
}

bool IsChangedIn(const Layout& layout, NameEscaping escaping) {
  const auto is_changed = [escaping](const auto& of) { return IsChangedIn(of.labels, escaping); };
  return std::ranges::any_of(layout.identities, is_changed) ||
         std::ranges::any_of(layout.families, [&](const FamilyLayout& family) {
           return IsChanged(family.name, escaping, Kind::kMetric) || std::ranges::any_of(family.series, is_changed);
         });
}

void EscapeFamilyNames(Layout& layout, NameEscaping escaping) {
  Names taken;
  for (const FamilyLayout& family : layout.families) {
    if (EscapeName(family.name, escaping) != family.name) continue;
    for (std::string& name : SampleNames(family.name, family.type)) taken.insert(std::move(name));
  }
  std::string last;
  std::string last_escaped;
  for (FamilyLayout& family : layout.families) {
    std::string fresh = EscapeName(family.name, escaping);
    if (fresh == family.name) continue;
    if (family.name != last) {  // else it is the same name with other bounds
      if (IsTaken(taken, SampleNames(fresh, family.type))) fresh = EscapeName(family.name, NameEscaping::kValues);
      while (IsTaken(taken, SampleNames(fresh, family.type))) fresh += '_';
      for (std::string& name : SampleNames(fresh, family.type)) taken.insert(std::move(name));
      last = family.name;
      last_escaped = std::move(fresh);
    }
    family.name = last_escaped;
  }
}

LabelNames LabelNamesOf(const Layout& layout) {
  LabelNames names{.known = {"__name__", "job", "le", "quantile"}, .fresh = {}};
  for (const Identity& identity : layout.identities)
    for (const auto& label : identity.labels) names.known.insert(label.first);
  return names;
}

}  // namespace

std::string_view ToString(NameEscaping escaping) {
  switch (escaping) {
    case NameEscaping::kAllowUtf8:
      return "allow-utf-8";
    case NameEscaping::kDots:
      return "dots";
    case NameEscaping::kValues:
      return "values";
    case NameEscaping::kUnderscores:
      break;
  }
  return "underscores";
}

std::string EscapeName(std::string_view name, NameEscaping escaping) { return Escape(name, escaping, Kind::kMetric); }

bool HasPlainNames(const Layout& layout) { return !IsChangedIn(layout, NameEscaping::kUnderscores); }

std::shared_ptr<const Layout> WithEscapedNames(std::shared_ptr<const Layout> layout, NameEscaping escaping) {
  if (escaping == NameEscaping::kAllowUtf8 || !IsChangedIn(*layout, escaping)) return layout;
  auto escaped = std::make_shared<Layout>(*layout);
  EscapeFamilyNames(*escaped, escaping);
  LabelNames names = LabelNamesOf(*layout);
  for (Identity& identity : escaped->identities) identity.labels = EscapeLabels(identity.labels, names, escaping);
  for (const Identity& identity : escaped->identities) {
    for (const auto& label : identity.labels)
      if (!names.known.contains(label.first)) names.fresh.insert(label.first);
  }
  const auto is_fresh = [&names](const auto& label) { return names.fresh.contains(label.first); };
  for (FamilyLayout& family : escaped->families) {
    for (SeriesLayout& series : family.series) {
      if (!IsChangedIn(series.labels, escaping) && std::none_of(series.labels.begin(), series.labels.end(), is_fresh)) continue;
      series.labels = SeriesLabels(EscapeLabels(series.labels, names, escaping));
    }
  }
  return escaped;
}

std::shared_ptr<const Snapshot> SnapshotEscaper::Escape(std::shared_ptr<const Snapshot> snapshot) {
  if (snapshot == nullptr) return snapshot;
  if (snapshot->layout != layout_) {
    layout_ = snapshot->layout;
    escaped_ = WithEscapedNames(layout_, NameEscaping::kUnderscores);
  }
  if (escaped_ == layout_) return snapshot;
  return std::make_shared<const Snapshot>(Snapshot{escaped_, snapshot->values, snapshot->collected_at});
}

}  // namespace persia::agent

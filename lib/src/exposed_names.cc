#include "exposed_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace persia::metrics {
namespace {

constexpr std::string_view kBareGroup = "persia";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::array<std::string_view, 6> kReservedLabels = {"instance", "ip_addr", "job", "le", "quantile", "role"};
constexpr std::string_view kExportedPrefix = "exported_";

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The bytes of one character at the start of `text`: a whole UTF-8 sequence, or, where `valid` is false, the longest start of
// one (at least one byte), which a decoder replaces as a unit.
size_t CharacterBytes(std::string_view text, bool& valid) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  valid = true;
  if (lead < 0x80) {
    return 1;
  }
  // What the second byte may be keeps out overlong forms, surrogates, and what is above U+10FFFF.
  uint8_t least = 0x80;
  uint8_t most = 0xbf;
  size_t length = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    least = lead == 0xe0 ? 0xa0 : 0x80;
    most = lead == 0xed ? 0x9f : 0xbf;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    least = lead == 0xf0 ? 0x90 : 0x80;
    most = lead == 0xf4 ? 0x8f : 0xbf;
  }
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < least || byte(i) > most) {
      valid = false;
      return i;
    }
    least = 0x80;
    most = 0xbf;
  }
  valid = length != 0;
  return length == 0 ? 1 : length;
}

std::string Sanitize(std::string_view name, bool colons) {
  std::string out;
  out.reserve(name.size() + 1);
  while (!name.empty()) {
    const char c = name.front();
    if (IsDigit(c) && out.empty()) {
      out += '_';
    }
    bool valid = true;
    const size_t bytes = CharacterBytes(name, valid);
    out += IsLetter(c) || IsDigit(c) || (colons && c == ':') ? c : '_';
    name.remove_prefix(bytes);
  }
  return out.empty() ? "_" : out;
}

}  // namespace

std::string SanitizeMetricName(std::string_view name) { return Sanitize(name, true); }

std::string SanitizeLabelName(std::string_view name) {
  std::string out = Sanitize(name, false);
  if (out.starts_with("__")) {
    out.erase(0, std::min(out.find_first_not_of('_'), out.size()) - 1);
  }
  return std::find(kReservedLabels.begin(), kReservedLabels.end(), out) == kReservedLabels.end()
             ? out
             : std::string(kExportedPrefix) + out;
}

std::string SanitizeText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    bool valid = true;
    const size_t bytes = CharacterBytes(text, valid);
    out += valid && text.front() != '\0' ? text.substr(0, bytes) : kReplacement;
    text.remove_prefix(bytes);
  }
  return out;
}

std::string ExposedName(std::string_view group, std::string_view name) {
  if (group.empty() || group == kBareGroup) {
    return SanitizeMetricName(name);
  }
  std::string joined(group);
  joined += '_';
  joined += name;
  return SanitizeMetricName(joined);
}

ExposedLabelSet ExposedLabels(const ExposedLabelSet& labels) {
  ExposedLabelSet out;
  out.reserve(labels.size());
  for (const auto& [name, value] : labels) {
    if (!value.empty()) {
      out.emplace_back(SanitizeLabelName(name), SanitizeText(value));
    }
  }
  // Stable, so that labels which share a name stay in the order of their own names.
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(out.begin(), out.end(), same_name) == out.end()) {
    return out;
  }
  std::set<std::string> taken;
  for (const auto& label : out) {
    taken.insert(label.first);
  }
  for (size_t i = 1, first = 0; i < out.size(); ++i) {
    if (out[i].first != out[first].first) {
      first = i;
      continue;
    }
    for (int number = 2;; ++number) {
      std::string name = out[first].first + "_" + std::to_string(number);
      if (taken.insert(name).second) {
        out[i].first = std::move(name);
        break;
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace persia::metrics

#include "exposed_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <utility>

#include "utf8.h"

namespace persia::metrics {
namespace {

constexpr std::string_view kBareGroup = "persia";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::array<std::string_view, 6> kReservedLabels = {"instance", "ip_addr", "job", "le", "quantile", "role"};
constexpr std::string_view kExportedPrefix = "exported_";

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Sanitize(std::string_view name, bool colons) {
  std::string out;
  out.reserve(name.size() + 1);
  while (!name.empty()) {
    const char c = name.front();
    if (IsDigit(c) && out.empty()) out += '_';
    out += IsLetter(c) || IsDigit(c) || (colons && c == ':') ? c : '_';
    name.remove_prefix(FirstUtf8Character(name).bytes);
  }
  return out.empty() ? "_" : out;
}

}  // namespace

std::string SanitizeMetricName(std::string_view name) { return Sanitize(name, true); }

std::string SanitizeLabelName(std::string_view name) {
  std::string out = Sanitize(name, false);
  if (out.starts_with("__")) out.erase(0, std::min(out.find_first_not_of('_'), out.size()) - 1);
  return std::find(kReservedLabels.begin(), kReservedLabels.end(), out) == kReservedLabels.end()
             ? out
             : std::string(kExportedPrefix) + out;
}

std::string SanitizeText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, is_valid] = FirstUtf8Character(text);
    out += is_valid && text.front() != '\0' ? text.substr(0, bytes) : kReplacement;
    text.remove_prefix(bytes);
  }
  return out;
}

std::string ExposedName(std::string_view group, std::string_view name) {
  if (group.empty() || group == kBareGroup) return SanitizeMetricName(name);
  std::string joined(group);
  joined += '_';
  joined += name;
  return SanitizeMetricName(joined);
}

ExposedLabelSet ExposedLabels(const ExposedLabelSet& labels) {
  ExposedLabelSet out;
  out.reserve(labels.size());
  for (const auto& [name, value] : labels)
    if (!value.empty()) out.emplace_back(SanitizeLabelName(name), SanitizeText(value));
  // Stable, so that labels whose names become equal keep the order of their original names.
  std::stable_sort(
      out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(out.begin(), out.end(), same_name) == out.end()) return out;
  std::set<std::string> taken;
  for (const auto& label : out) taken.insert(label.first);
  // `number` continues from label to label, so that many labels with one name take linear time.
  for (size_t i = 1, first = 0, number = 2; i < out.size(); ++i) {
    if (out[i].first != out[first].first) {
      first = i;
      number = 2;
      continue;
    }
    for (;; ++number) {
      std::string name = SanitizeLabelName(out[first].first + "_" + std::to_string(number));  // of "_": "_2"
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

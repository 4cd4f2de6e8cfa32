#include "exposure/labels.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace persia::agent {
namespace {

constexpr char kExportedPrefix[] = "exported_";

// The label that the exposition of this type adds.
std::string_view TypeLabel(MetricType type) {
  if (type == MetricType::kHistogram) return "le";
  if (type == MetricType::kSummary) return "quantile";
  return "";
}

}  // namespace

bool HasLabel(const Labels& labels, std::string_view name) {
  return std::any_of(labels.begin(), labels.end(), [&](const auto& label) { return label.first == name; });
}

void SetLabel(Labels& labels, const std::string& name, std::string value) {
  std::string renamed = name;
  while (HasLabel(labels, renamed)) renamed.insert(0, kExportedPrefix);
  for (auto& label : labels) {
    if (label.first == name) label.first = renamed;
  }
  labels.emplace_back(name, std::move(value));
  std::sort(labels.begin(), labels.end());
}

bool FitLabels(Labels& labels, MetricType type, const Identity& identity) {
  const std::string_view type_label = TypeLabel(type);
  const auto reserved = [&](std::string_view name) {
    return name == "job" || name == type_label || HasLabel(identity.labels, name);
  };
  const auto fits = [&](const auto& label) { return !label.second.empty() && !reserved(label.first); };
  if (std::all_of(labels.begin(), labels.end(), fits)) return false;
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  for (auto& [name, value] : labels) {
    if (!reserved(name)) continue;
    std::string renamed = kExportedPrefix + name;
    while (reserved(renamed) || HasLabel(labels, renamed)) renamed.insert(0, kExportedPrefix);
    name = std::move(renamed);
  }
  std::sort(labels.begin(), labels.end());
  return true;
}

}  // namespace persia::agent

#include "shown.h"

#include <string_view>

namespace persia::agent::model {
namespace {

bool HasValue(const auto& labels, std::string_view name, std::string_view value) {
  for (const auto& [label, text] : labels) {
    if (label == name && text == value) return true;
  }
  return false;
}

}  // namespace

AllShown ShownIn(const Snapshot& snapshot) {
  AllShown shown;
  for (const FamilyLayout& family : snapshot.layout->families) {
    constexpr std::string_view kGroup = "my_app_";
    if (!family.name.starts_with(kGroup)) continue;
    const std::string_view name = std::string_view(family.name).substr(kGroup.size());
    for (const SeriesLayout& series : family.series) {
      const bool first = HasValue(snapshot.layout->identities[series.identity].labels, "instance", "rep_0");
      Shown& of = shown.of[first ? 0 : HasValue(series.labels, "zone", "b") ? 2 : 1];
      ++shown.series[first ? 0 : 1];
      const double* values = &snapshot.values[series.first_value];
      std::optional<double>* to = nullptr;
      double scale = 1;
      if (name == "batches") {
        to = &of.counts[0];
      } else if (name == "rows") {
        const bool late = HasValue(series.labels, "feat", "b");
        to = &of.counts[late ? kLateCount : 1];
        scale = late ? 2 : 1;
      } else if (name == "sizes") {
        to = &of.counts[3];
        scale = 2;
        if (values[0] != 0.5 * values[1] || values[2] != 0) shown.wrong = "the sum of my_app_sizes is not that of its buckets";
      } else if (name == "seconds") {
        to = &of.in_phase;
      } else {
        to = &of.gauges[static_cast<size_t>(name[0] - '0')];
        if (IsAbsent(values[0])) continue;
      }
      if (*to) shown.wrong = "a series of " + family.name + " occurs twice";
      *to = values[0] * scale;
    }
  }
  return shown;
}

}  // namespace persia::agent::model

#include "web/series_values.h"

#include <algorithm>

#include "health/rank.h"

namespace persia::agent {

std::string ValueOfLabel(const SeriesLayout& series, std::string_view name) {
  const auto found =
      std::find_if(series.labels.begin(), series.labels.end(), [&](const auto& label) { return label.first == name; });
  return found == series.labels.end() ? "" : std::string((*found).second);
}

SeriesKey SeriesKeyOf(const Layout& layout, const SeriesLayout& series, std::string_view label) {
  const Identity& identity = layout.identities[series.identity];
  return {LabelValueOf(identity, "role"), LabelValueOf(identity, "instance"), ValueOfLabel(series, label)};
}

SeriesValues SeriesValuesOf(const Snapshot& snapshot, std::string_view family, std::string_view label) {
  SeriesValues values;
  for (const FamilyLayout& found : FamiliesNamed(*snapshot.layout, family)) {
    if (found.ValuesPerSeries() != 1) continue;
    for (const SeriesLayout& series : found.series) {
      const double value = snapshot.values[series.first_value];
      if (!IsAbsent(value)) values[SeriesKeyOf(*snapshot.layout, series, label)] += value;
    }
  }
  return values;
}

std::optional<double> TotalOf(const SeriesValues& values) {
  if (values.empty()) return std::nullopt;
  double total = 0;
  for (const auto& [key, value] : values) total += value;
  return total;
}

}  // namespace persia::agent

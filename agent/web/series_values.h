// The values of a family in a snapshot, by rank and one label.
//
// Thread safety: pure functions.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/snapshot.h"

namespace persia::agent {

struct SeriesKey {
  std::string role;
  std::string instance;
  std::string label;  // the value of the label; empty: the series does not have it

  friend auto operator<=>(const SeriesKey&, const SeriesKey&) = default;
};
using SeriesValues = std::map<SeriesKey, double>;

// The value of a label; empty: the series does not have it.
[[nodiscard]] std::string ValueOfLabel(const SeriesLayout& series, std::string_view name);
[[nodiscard]] SeriesKey SeriesKeyOf(const Layout& layout, const SeriesLayout& series, std::string_view label);

// Of a counter or gauge, without absent values. Series that differ in other labels alone are added.
[[nodiscard]] SeriesValues SeriesValuesOf(const Snapshot& snapshot, std::string_view family, std::string_view label = "");

// The sum of all series. Nothing: none has a value.
[[nodiscard]] std::optional<double> TotalOf(const SeriesValues& values);

}  // namespace persia::agent

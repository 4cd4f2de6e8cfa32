// Names of things: label sets and the words that describe a metric.
//
// All text is UTF-8, of any characters; what Prometheus cannot take in a name is replaced when the agent exports it.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::metrics {

// One label, not owned: `{"feat", "user_id"}`.
struct Label {
  std::string_view name;
  std::string_view value;
};

// A list of labels, not owned. Their order does not matter; a name stands in it once.
using LabelView = std::span<const Label>;

// A list of labels, owned.
using LabelSet = std::vector<std::pair<std::string, std::string>>;

// What a reader of the exported metric is told about it.
struct Description {
  // One sentence: what is counted, where, and in which unit.
  std::string help = {};
  // The base unit in the plural, as Prometheus and OpenMetrics have it: "seconds", "bytes", "ratio". May be empty.
  std::string unit = {};
  // Labels of this one series. For a family of several series, see Family.
  LabelSet labels = {};
};

}  // namespace persia::metrics

// Label sets, and the description of a metric.
//
// All text is UTF-8. A name may have any characters: the agent replaces those that Prometheus does not allow.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "persia/metrics/span.h"

namespace persia::metrics {
inline namespace abi_1 {

// One label: `{"feat", "user_id"}`. The texts are not owned.
struct Label {
  std::string_view name;   // "feat"
  std::string_view value;  // "user_id"
};

// A list of labels, not owned, in any order. Each name occurs once.
using LabelView = Span<const Label>;

// A list of labels that owns its texts.
using LabelSet = std::vector<std::pair<std::string, std::string>>;

// The description of a metric in the exposition.
struct Description {
  // One sentence: what is counted, where, and in which unit.
  std::string help = {};
  // The base unit in the plural, as in Prometheus and OpenMetrics: "seconds", "bytes", "ratio". May be empty.
  std::string unit = {};
  // Labels of this series. For several series of one metric, see Family.
  LabelSet labels = {};
};

}  // namespace abi_1
}  // namespace persia::metrics

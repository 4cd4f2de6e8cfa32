// From the names that programs give to names that Prometheus takes: for whoever exposes metrics, the agent or this process
// itself.
//
// A program names a metric by (group, name), both any text; Prometheus wants `[a-zA-Z_:][a-zA-Z0-9_:]*` for a metric and
// `[a-zA-Z_][a-zA-Z0-9_]*` for a label, keeps names that start with `__` to itself, and gives some labels a meaning of their
// own. What maps two different names to one is told apart by whoever lays out the series.
// Depends on the standard library alone. Thread safety: pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::metrics {

// `<group>_<name>`, with `_` for each run of what Prometheus cannot take. Group `persia` and an empty group add no prefix.
std::string ExposedName(std::string_view group, std::string_view name);

// As a metric's name. Each byte or character that does not fit becomes `_`; a leading digit gets one before it.
std::string SanitizeMetricName(std::string_view name);
// As a label's name: the same without ':', and at most one leading `_`. Labels that the agent or a format owns (job, instance,
// ip_addr, role, le, quantile) get the prefix `exported_`.
std::string SanitizeLabelName(std::string_view name);
// UTF-8, with U+FFFD for each maximal part that is not. No NUL either, which text formats cannot carry everywhere.
std::string SanitizeText(std::string_view text);

using ExposedLabelSet = std::vector<std::pair<std::string, std::string>>;

// The labels as exposed: names and values sanitised, empty values left out (Prometheus takes them for absent), sorted, and a
// name that two labels would share told apart by a number (`a_b`, `a_b_2`) in the order of their own names.
ExposedLabelSet ExposedLabels(const ExposedLabelSet& labels);

}  // namespace persia::metrics

// Converts the names that programs give to names that Prometheus accepts. Used by the agent and the bridge to prometheus-cpp.
//
// A program names a metric by (group, name), each any text. Prometheus requires `[a-zA-Z_:][a-zA-Z0-9_:]*` for a metric and
// `[a-zA-Z_][a-zA-Z0-9_]*` for a label, reserves names that start with `__`, and gives some labels a meaning. Two different
// names may become the same one; the caller must keep such series apart.
// Thread safety: pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::metrics {

// `<group>_<name>`, sanitised as a metric's name. Group `persia` and an empty group add no prefix.
std::string ExposedName(std::string_view group, std::string_view name);

// A metric's name. Each character that is not allowed, and each malformed UTF-8 sequence, becomes `_`. A leading digit is
// preceded by `_`.
std::string SanitizeMetricName(std::string_view name);
// A label's name: the same without ':', and with at most one leading `_`. Names of labels that the agent or the exposition
// format sets (job, instance, ip_addr, role, le, quantile) get the prefix `exported_`.
std::string SanitizeLabelName(std::string_view name);
// Valid UTF-8: each malformed sequence and each NUL, which some formats cannot carry, becomes U+FFFD.
std::string SanitizeText(std::string_view text);

using ExposedLabelSet = std::vector<std::pair<std::string, std::string>>;

// The labels as exposed: sanitised and sorted. Labels with an empty value are left out, since for Prometheus they are absent.
// If two names become the same one, a number is appended (`a_b`, `a_b_2`), in the order of the original names. The result is a
// label's name as above, too: two names of one Chinese character become `_` and `_2`.
ExposedLabelSet ExposedLabels(const ExposedLabelSet& labels);

}  // namespace persia::metrics

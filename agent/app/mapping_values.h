// The values in a file of rules: what each takes, and what is said of one that is not taken.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "app/yaml_document.h"
#include "model/result.h"
#include "model/snapshot.h"

namespace persia::agent {

// gauge, counter, histogram, summary.
Result<MetricType> ParseStreamType(std::string_view text);
// The types that `match_metric_type` names: counter, gauge, histogram, stream; observer is one of the last two.
Result<std::vector<MetricType>> ParseMatchedTypes(std::string_view text);
// As Go writes durations: 1m20s, 500ms, 1.5h; a bare 0 too.
Result<std::chrono::milliseconds> ParseTtl(std::string_view text);

// What is wrong with such a value, and where.
struct BadValue {
  const YamlNode* at;
  std::string what;
};
// A bare number.
double ReadScale(const YamlNode& value, std::vector<BadValue>& bad);
// A list of numbers that ascend. Empty `bad`: it is good.
std::vector<double> ReadBuckets(const YamlNode& list, std::vector<BadValue>& bad);
// A list of numbers between 0 and 1, or of maps with one under `quantile`, as statsd_exporter has it. Given in ascending order.
std::vector<double> ReadQuantiles(const YamlNode& list, std::vector<BadValue>& bad);

// What is wrong with a metric's name that may have references to captures in it, or nothing.
std::string WhyNoMetricName(std::string_view text);
// What is wrong with a label's name, or nothing.
std::string WhyNoLabelName(std::string_view name);

}  // namespace persia::agent

// The values in a file of rules. The functions that take a reader add an error for each value that they refuse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/yaml_reader.h"
#include "model/snapshot.h"

namespace persia::agent {

// The type that a stream is exposed with.
Result<MetricType> ParseStreamType(std::string_view text);
// The types that a value of `match_metric_type` selects.
Result<std::vector<MetricType>> ParseMatchedTypes(std::string_view text);

double ReadScale(const YamlNode& value, YamlReader& reader);
// Ascending upper bounds; +Inf may be the last, and is left out.
std::vector<double> ReadBuckets(const YamlNode& list, YamlReader& reader);
// The options of native histograms, as client_golang has them: a factor, of which 0 and 1 mean none, and a limit.
double ReadNativeFactor(const YamlNode& value, YamlReader& reader);
uint32_t ReadMaxBuckets(const YamlNode& value, YamlReader& reader);
// Numbers between 0 and 1, or, as in statsd_exporter, maps with a number under `quantile`. The result is sorted.
std::vector<double> ReadQuantiles(const YamlNode& list, YamlReader& reader);

// Whether `text` is a metric's name (model/series_labels.h), which may contain $1 and ${group}.
Status CheckMetricName(std::string_view text);
Status CheckLabelName(std::string_view name);

}  // namespace persia::agent

// Reads back what this process has recorded, by name and labels: for tests, and for pages of the program's own.
//
//   const auto snapshot = persia::metrics::ReadSnapshot();
//   EXPECT_EQ(snapshot.Value("my_app", "batches_total", {{"phase", "warm"}}), 3);
//
// It reads the process's memory; no agent takes part, and metrics need not be exported. Thread safety: any function, from any
// thread; a Snapshot is plain data.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "persia/metrics/export.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/labels.h"
#include "persia/metrics/values.h"

namespace persia::metrics {
inline namespace abi_1 {

// The kind of a metric. A time cost is two metrics: a histogram and a gauge.
enum class MetricKind : uint8_t {
  kCounter = 1,          // Counter
  kGauge = 2,            // Gauge
  kHistogram = 3,        // Histogram with bounds
  kStream = 4,           // Stream
  kEvent = 5,            // the counts of an event
  kNativeHistogram = 6,  // Histogram with NativeBuckets
};

// One series of a metric.
struct SeriesSnapshot {
  LabelSet labels = {};                // sorted by name
  std::optional<double> value = {};    // a counter's or an event's count, the value of a gauge, the last value of a stream, the
                                       // number of a histogram's observations; empty: a gauge or stream without a value
  uint64_t count = 0;                  // of a histogram's observations or a stream's values
  double sum = 0;                      // of a histogram's observations or a stream's values
  std::vector<uint64_t> buckets = {};  // of a histogram, one for each bound and one for +Inf; not cumulative
};

// One metric, with all its series.
struct MetricSnapshot {
  MetricKind kind = MetricKind::kCounter;   // its kind
  std::string group = {};                   // its group; of an event its type
  std::string name = {};                    // its name
  std::string help = {};                    // its help text
  std::string unit = {};                    // its unit
  GaugeMerge merge = GaugeMerge::kLast;     // of a gauge
  std::vector<double> bounds = {};          // of a histogram, without +Inf
  std::vector<SeriesSnapshot> series = {};  // in the order of their creation
};

// All metrics of the process, in the order of their creation.
struct PERSIA_METRICS_API Snapshot {
  std::vector<MetricSnapshot> metrics = {};  // empty if metrics are disabled, or if memory runs out

  // The metric (`group`, `name`), or null. An event is found by FindEvent.
  [[nodiscard]] const MetricSnapshot* FindMetric(std::string_view group, std::string_view name) const noexcept;
  // The event (`type`, `name`), or null.
  [[nodiscard]] const MetricSnapshot* FindEvent(std::string_view type, std::string_view name) const noexcept;
  // The series of (`group`, `name`) with exactly these labels, in any order, or null.
  [[nodiscard]] const SeriesSnapshot* Find(std::string_view group, std::string_view name, LabelView labels = {}) const noexcept;
  // The same, for labels in braces.
  [[nodiscard]] const SeriesSnapshot* Find(std::string_view group, std::string_view name,
                                           std::initializer_list<Label> labels) const noexcept {
    return Find(group, name, LabelView(labels.begin(), labels.size()));
  }
  // The series' value (SeriesSnapshot::value). Empty: there is no such series, or it has no value.
  [[nodiscard]] std::optional<double> Value(std::string_view group, std::string_view name,
                                            LabelView labels = {}) const noexcept;
  // The same, for labels in braces.
  [[nodiscard]] std::optional<double> Value(std::string_view group, std::string_view name,
                                            std::initializer_list<Label> labels) const noexcept {
    return Value(group, name, LabelView(labels.begin(), labels.size()));
  }
};

// The values of all metrics of the process, as `Value()` returns each.
[[nodiscard]] PERSIA_METRICS_API Snapshot ReadSnapshot() noexcept;

// The value of one series, as Snapshot::Value returns it.
[[nodiscard]] PERSIA_METRICS_API std::optional<double> ReadValue(std::string_view group, std::string_view name,
                                                                 LabelView labels = {}) noexcept;
// The same, for labels in braces.
[[nodiscard]] inline std::optional<double> ReadValue(std::string_view group, std::string_view name,
                                                     std::initializer_list<Label> labels) noexcept {
  return ReadValue(group, name, LabelView(labels.begin(), labels.size()));
}

}  // namespace abi_1
}  // namespace persia::metrics

// The values of all series at one time, separate from the layout, which describes the series.
//
// The layout (names, labels, bounds) changes only when a series is added or removed; the values change at each tick. Snapshots
// share a layout, and a renderer can cache everything that depends on the layout alone.
// Thread safety: both are immutable once shared.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/bounds.h"
#include "model/series_labels.h"

namespace persia::agent {

// The owner of a series. These labels, with `job`, are the grouping key on a PushGateway, and are on each series of a scrape.
struct Identity {
  std::string job;
  Labels labels;  // instance, ip_addr, role

  friend bool operator==(const Identity&, const Identity&) = default;
  friend auto operator<=>(const Identity&, const Identity&) = default;
};

// The value of a label of an identity; empty: it has none.
[[nodiscard]] inline std::string LabelValueOf(const Identity& identity, std::string_view name) {
  const auto found = std::ranges::find(identity.labels, name, &Labels::value_type::first);
  return found == identity.labels.end() ? "" : found->second;
}

// `identity` with the label `agent`, which distinguishes an agent's series from those of another agent with this identity.
[[nodiscard]] inline Identity WithAgentLabel(Identity identity, const std::string& agent_id) {
  std::erase_if(identity.labels, [](const auto& label) { return label.first == "agent"; });
  identity.labels.emplace_back("agent", agent_id);
  std::sort(identity.labels.begin(), identity.labels.end());
  return identity;
}

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram, kSummary, kUntyped };

// The type's name in the exposition formats.
[[nodiscard]] constexpr std::string_view TypeName(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kSummary:
      return "summary";
    case MetricType::kUntyped:
      break;
  }
  return "untyped";
}

// One series. Its values in the snapshot begin at `first_value`. A histogram has the sum, then the count of each bucket (not
// cumulative), the +Inf bucket last; a native histogram has the sum, then the counts of NativeBuckets. A summary has the sum,
// the count, then a value per quantile. Other types have one value.
struct SeriesLayout {
  uint32_t identity = 0;  // index into Layout::identities
  size_t first_value = 0;
  SeriesLabels labels;  // without those of the identity
  // Of a counter, histogram or summary, when its count began, in Unix milliseconds; 0: unknown.
  int64_t created_ms = 0;
};

// The series of one exposed name; for histograms and summaries, of one name and one set of bounds. Metric and label names are
// valid for Prometheus 3: UTF-8, plain (series_labels.h). Text is valid UTF-8.
struct FamilyLayout {
  std::string name;
  MetricType type = MetricType::kUntyped;
  std::string help;
  std::string unit;
  std::vector<double> bounds;  // a histogram's upper bounds, without +Inf; a summary's quantiles
  std::vector<SeriesLayout> series;
  // Of a native histogram. Its `bounds` are those of its classic form.
  std::optional<NativeBuckets> native = {};
  std::string group = {};  // in which the program declared it; "": a metric of the agent

  [[nodiscard]] size_t ValuesPerSeries() const {
    switch (type) {
      case MetricType::kHistogram:
        return native ? native->buckets + size_t{2} : bounds.size() + 2;
      case MetricType::kSummary:
        return bounds.size() + 2;
      default:
        return 1;
    }
  }
  // Of a histogram, in its classic form: the count of each bucket, not cumulative. `values`: of a series.
  const double* BucketCounts(const double* values, ClassicBuffer& buffer) const {
    return native ? ClassicCounts(*native, values + 1, buffer) : values + 1;
  }
};

// A metric that is not exposed in some processes, since the newest definition of its name is another one.
struct LeftOutMetric {
  std::string source;                     // "train/loss"
  std::string name;                       // under which it would be exposed
  std::string shape;                      // "a gauge"
  std::string winner;                     // "a counter", or the other metric: "eval/loss, a counter"
  std::vector<uint32_t> identities = {};  // in which it is left out: indexes into Layout::identities, each once
};

struct Layout {
  std::vector<Identity> identities;
  // Sorted by name. A name occurs more than once only for histograms and summaries whose identities have different bounds.
  // Families of one name have the same type, help and unit.
  std::vector<FamilyLayout> families;
  std::vector<LeftOutMetric> left_out = {};
  size_t value_count = 0;
};

[[nodiscard]] inline std::span<const FamilyLayout> FamiliesNamed(const Layout& layout, std::string_view name) {
  const auto first = std::ranges::lower_bound(layout.families, name, {}, &FamilyLayout::name);
  auto last = first;
  while (last != layout.families.end() && last->name == name) ++last;
  return {first, last};
}

[[nodiscard]] inline size_t CountSeries(const Layout& layout) {
  size_t series = 0;
  for (const FamilyLayout& family : layout.families) series += family.series.size();
  return series;
}

struct Snapshot {
  std::shared_ptr<const Layout> layout;
  // A value with the bits of kAbsent is not exposed (for example a gauge that was never set).
  std::vector<double> values;
  std::chrono::system_clock::time_point collected_at;
};

// The bits of a NaN that is an ordinary value. Prometheus gives other NaNs a meaning, such as the stale marker.
inline constexpr uint64_t kNormalNan = 0x7ff8'0000'0000'0001;
// Replaces any NaN by this one.
[[nodiscard]] inline double WithNormalNan(double value) {
  return std::isnan(value) ? std::bit_cast<double>(kNormalNan) : value;
}
[[nodiscard]] inline uint64_t BitsOf(double value) { return std::bit_cast<uint64_t>(WithNormalNan(value)); }

// Marks a value that is not exposed.
inline constexpr uint64_t kAbsent = 0x7ff4'6162'7365'6e74;
inline const double kAbsentValue = std::bit_cast<double>(kAbsent);
[[nodiscard]] inline bool IsAbsent(double value) { return std::bit_cast<uint64_t>(value) == kAbsent; }

}  // namespace persia::agent

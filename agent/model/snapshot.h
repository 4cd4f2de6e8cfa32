// What the agent knows at one moment: the values of all series, apart from what the series are.
//
// The layout (names, labels, bounds) changes only when a series comes or goes; the values change at each tick. So a layout is
// made once and shared, a snapshot is an array of numbers beside it, and whoever renders can keep what depends on the layout
// alone. Thread safety: both are immutable once shared.
#pragma once

#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/series_labels.h"

namespace persia::agent {

// Whose a series is. These labels, with `job`, are the gateway's grouping key, and stand on each series of a scrape.
struct Identity {
  std::string job;
  Labels labels;  // instance, ip_addr, role

  friend bool operator==(const Identity&, const Identity&) = default;
  friend auto operator<=>(const Identity&, const Identity&) = default;
};

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram, kSummary, kUntyped };

// As the exposition formats call it.
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

// One series. Its values stand in the snapshot from `first_value` on: one number; of a histogram the sum, then the count of
// each bucket, not cumulative, the one above the last bound at the end; of a summary the sum, the count, then one a quantile.
struct SeriesLayout {
  uint32_t identity = 0;  // index into Layout::identities
  size_t first_value = 0;
  SeriesLabels labels;  // without the identity's
};

// All series of one exposed name. Names and label names are valid for Prometheus, text is valid UTF-8.
struct FamilyLayout {
  std::string name;
  MetricType type = MetricType::kUntyped;
  std::string help;
  std::string unit;
  std::vector<double> bounds;  // a histogram's upper bounds, without +Inf; a summary's quantiles
  std::vector<SeriesLayout> series;

  // How many values each of its series has.
  [[nodiscard]] size_t ValuesPerSeries() const {
    switch (type) {
      case MetricType::kHistogram:
      case MetricType::kSummary:
        return bounds.size() + 2;
      default:
        return 1;
    }
  }
};

struct Layout {
  std::vector<Identity> identities;
  std::vector<FamilyLayout> families;  // sorted by name, no name twice
  size_t value_count = 0;
};

struct Snapshot {
  std::shared_ptr<const Layout> layout;
  // Not-a-number with the bits of kAbsent: the series is not shown now (a gauge that was never set).
  std::vector<double> values;
  std::chrono::system_clock::time_point collected_at;
};

// The NaN that is a value, whatever the bits of the one that a program wrote: others mean something to Prometheus.
inline constexpr uint64_t kNormalNan = 0x7ff8'0000'0000'0001;
[[nodiscard]] inline uint64_t BitsOf(double value) { return std::isnan(value) ? kNormalNan : std::bit_cast<uint64_t>(value); }

// Marks a value that is not shown.
inline constexpr uint64_t kAbsent = 0x7ff4'6162'7365'6e74;
inline const double kAbsentValue = std::bit_cast<double>(kAbsent);
[[nodiscard]] inline bool IsAbsent(double value) { return std::bit_cast<uint64_t>(value) == kAbsent; }

}  // namespace persia::agent

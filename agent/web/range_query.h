// The values of a chart: a family's series over a span of time, in equal steps.
//
//   RangeQuery query{.family = "lookup_rpc_time_cost", .as = RangeQuery::As::kQuantile, .quantiles = {0.5, 0.99}};
//   RangeResult result = Evaluate(query, history.Entries());
//
// The quantiles of a histogram follow its mean, which is exact.
//
// The point at `start_ms + i * step_ms` describes the time up to it: a value is the last one collected; a rate, mean or
// quantile is that of the window before the point. The window is a step, or three collections if that is longer: those before
// the point, since the history keeps newer collections closer together. A counter that fell was reset, and counts from 0.
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/snapshot.h"
#include "web/history.h"

namespace persia::agent {

inline constexpr size_t kMaxPoints = 2000;
// Of all series together. A larger query is refused before it is evaluated, so that a request never takes much processor time.
inline constexpr size_t kMaxNumbers = 400'000;

struct RangeQuery {
  enum class As : uint8_t { kValue, kRate, kMean, kQuantile };

  std::string family;
  std::optional<As> as = {};                    // none: by the type
  std::vector<double> quantiles = {0.5, 0.99};  // of a histogram; a summary has its own
  std::optional<int64_t> start_ms = {};         // none: the first entry
  std::optional<int64_t> end_ms = {};           // none: the last entry
  std::optional<int64_t> step_ms = {};          // none: the span / 240, but at least the mean time between two entries
  std::vector<std::pair<std::string, std::string>> match = {};  // labels of a series, `job` included
  size_t limit = 50;                                            // of label sets
  size_t max_numbers = kMaxNumbers;
};

struct RangeSeries {
  Labels labels;                   // with the identity's, without the job
  std::optional<double> quantile;  // of a histogram, the upper bound of the bucket that has it
  std::vector<double> values;      // NaN: there is none, or it is NaN itself
  std::vector<size_t> above = {};  // the places at which a quantile is above the last bound, which is the value there
  // Values that are NaN or infinite, by their place; with as=value alone.
  std::vector<std::pair<size_t, double>> not_finite = {};
};

struct RangeResult {
  bool known = false;  // whether the family exists
  MetricType type = MetricType::kUntyped;
  RangeQuery::As as = RangeQuery::As::kValue;
  int64_t start_ms = 0;
  int64_t step_ms = 0;
  size_t points = 0;
  std::vector<RangeSeries> series;
  size_t left_out = 0;  // label sets beyond the limit
  std::string error;    // not empty: the query does not suit the family, or is too large
};

// A family that only `newest` has (it may be null) is known, and has no series yet.
RangeResult Evaluate(const RangeQuery& query, const std::vector<History::Entry>& entries, const Snapshot* newest = nullptr);

// The upper bound of the bucket that has the quantile `q` of a histogram, by the counts of its buckets, the one above the last
// bound at the end: there it is infinite. NaN if nothing was counted. Where in its bucket the quantile is, nothing tells.
double QuantileBound(double q, const std::vector<double>& bounds, const double* counts);

}  // namespace persia::agent

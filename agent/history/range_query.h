// The lines of a chart: what a family's series did over a span of time, at even steps.
//
//   RangeQuery query{.family = "lookup_rpc_time_cost", .as = RangeQuery::As::kQuantile, .quantiles = {0.5, 0.99}};
//   RangeResult result = Evaluate(query, history.Entries());
//
// The point at `start_ms + i * step_ms` tells of the time up to there: a value is the last one that was collected, everything
// else is of what was counted within the window before it. The window is a step, or three collections if that is longer, since
// between two collections nothing is known. A counter that fell was reset, and counts from 0.
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "history/history.h"
#include "model/snapshot.h"

namespace persia::agent {

struct RangeQuery {
  enum class As : uint8_t { kValue, kRate, kMean, kQuantile };

  std::string family;
  std::optional<As> as = {};                          // none: by the type
  std::vector<double> quantiles = {0.5, 0.95, 0.99};  // of a histogram; a summary has those it has
  std::optional<int64_t> start_ms = {};               // none: all there is
  std::optional<int64_t> end_ms = {};
  std::optional<int64_t> step_ms = {};  // none: the span / 240, but not less than between two collections
  std::vector<std::pair<std::string, std::string>> match = {};  // labels that a series has; `job` is one
  size_t limit = 50;                                            // of label sets
};

struct RangeSeries {
  Labels labels;  // the identity's included, without the job
  std::optional<double> quantile;
  std::vector<double> values;  // NaN: there is none
};

struct RangeResult {
  bool known = false;  // whether there is a family of that name
  MetricType type = MetricType::kUntyped;
  RangeQuery::As as = RangeQuery::As::kValue;
  int64_t start_ms = 0;
  int64_t step_ms = 0;
  size_t points = 0;
  std::vector<RangeSeries> series;
  size_t left_out = 0;  // label sets beyond the limit
  std::string problem;  // not empty: the query makes no sense for this family, or is too large
};

inline constexpr size_t kMostPoints = 2000;
// Of all lines of one result together, so that a question stays cheap for the job's machine: it is refused before the work.
inline constexpr size_t kMostNumbers = 400'000;

// A family that only `newest` has (it may be null) is known, and has no lines yet.
RangeResult Evaluate(const RangeQuery& query, const std::vector<History::Entry>& entries, const Snapshot* newest = nullptr);

// The quantile `q` of a histogram by the counts of its buckets, the one above the last bound at the end; linear within a
// bucket. NaN if nothing was counted. As Prometheus's histogram_quantile: the lowest bucket begins at 0 if its bound is above,
// and what is above the last bound is given as that.
double BucketQuantile(double q, const std::vector<double>& bounds, const double* counts);

}  // namespace persia::agent

#include "web/range_api.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "health/not_finite.h"
#include "web/query_string.h"
#include "web/range_query.h"

namespace persia::agent {
namespace {

using As = RangeQuery::As;

constexpr size_t kMaxLabelSets = 1000;
constexpr size_t kMaxQuantiles = 8;
constexpr int64_t kMaxTimeMs = 32'503'680'000'000;  // the year 3000, so that no difference overflows
constexpr std::string_view kMatch = "match.";
constexpr std::array<std::string_view, 4> kAsNames = {"value", "rate", "mean", "quantile"};  // in the order of As

Error Wrong(std::string_view name, std::string_view value, std::string_view wanted) {
  return {std::string(name) + ": \"" + std::string(value.substr(0, 200)) + "\" is not " + std::string(wanted)};
}

bool ParseQuantiles(std::string_view text, std::vector<double>& quantiles) {
  quantiles.clear();
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    double q = 0;
    if (!ParseNumber(text.substr(0, end), q) || !(q >= 0 && q <= 1)) return false;
    quantiles.push_back(q);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return !quantiles.empty() && quantiles.size() <= kMaxQuantiles;
}

Status Set(RangeQuery& query, const std::string& name, const std::string& value) {
  if (name == "name") {
    query.family = value;
  } else if (name == "as") {
    const auto* const found = std::ranges::find(kAsNames, value);
    if (found == kAsNames.end()) return Wrong(name, value, "value, rate, mean or quantile");
    query.as = static_cast<As>(found - kAsNames.begin());
  } else if (name == "q") {
    if (!ParseQuantiles(value, query.quantiles)) return Wrong(name, value, "1 to 8 numbers from 0 to 1, separated by commas");
  } else if (name == "start" || name == "end") {
    int64_t time = 0;
    if (!ParseNumber(value, time) || time < 0 || time > kMaxTimeMs) {
      return Wrong(name, value, "a number of milliseconds since 1970");
    }
    (name == "start" ? query.start_ms : query.end_ms) = time;
  } else if (name == "step") {
    double seconds = 0;
    if (!ParseNumber(value, seconds) || !(seconds >= 0.1 && seconds <= 86400)) {
      return Wrong(name, value, "a number of seconds from 0.1 to 86400");
    }
    query.step_ms = std::llround(seconds * 1000);
  } else if (name == "limit") {
    if (!ParseNumber(value, query.limit) || query.limit == 0 || query.limit > kMaxLabelSets) {
      return Wrong(name, value, "a number from 1 to " + std::to_string(kMaxLabelSets));
    }
  } else if (name.starts_with(kMatch)) {
    query.match.emplace_back(name.substr(kMatch.size()), value);
  } else {
    return Error{"unknown parameter \"" + name.substr(0, 200) + "\" (name, as, q, start, end, step, limit, match.<label>)"};
  }
  return Done{};
}

}  // namespace

JsonAnswer AnswerRange(std::string_view text, const std::vector<History::Entry>& entries, const Snapshot* newest) {
  RangeQuery query;
  for (const auto& [name, value] : ParseParameters(text)) {
    if (const Status status = Set(query, name, value); !status.ok()) return RefuseWith(400, status.error());
  }
  if (query.family.empty()) return RefuseWith(400, "name: missing; /api/v1/metadata lists the families");
  const RangeResult result = Evaluate(query, entries, newest);
  if (!result.known) {
    return RefuseWith(404, "name: no family \"" + query.family.substr(0, 200) + "\", neither now nor in the history");
  }
  if (!result.error.empty()) return RefuseWith(400, "\"" + query.family + "\": " + result.error);
  Json series = Json::array();
  for (const RangeSeries& line : result.series) {
    Json one = {{"labels", Json::object_t(line.labels.begin(), line.labels.end())}};
    if (line.quantile) one["q"] = *line.quantile;
    one["values"] = line.values;
    if (!line.above.empty()) one["above"] = line.above;
    for (const auto& [at, value] : line.not_finite) one["not_finite"].push_back({at, NotFiniteText(value)});
    series.push_back(std::move(one));
  }
  return AnswerWith({{"name", query.family},
                     {"type", TypeName(result.type)},
                     {"as", kAsNames[static_cast<size_t>(result.as)]},
                     {"start_ms", result.start_ms},
                     {"step_ms", result.step_ms},
                     {"points", result.points},
                     {"series", std::move(series)},
                     {"left_out", result.left_out}});
}

}  // namespace persia::agent

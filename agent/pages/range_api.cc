#include "pages/range_api.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "history/range_query.h"
#include "model/result.h"
#include "pages/json.h"
#include "pages/query_string.h"

namespace persia::agent {
namespace {

using As = RangeQuery::As;

constexpr size_t kMostLabelSets = 500;
constexpr size_t kMostQuantiles = 8;
constexpr std::string_view kMatch = "match.";
constexpr std::array<std::pair<std::string_view, As>, 4> kWays = {
    {{"value", As::kValue}, {"rate", As::kRate}, {"mean", As::kMean}, {"quantile", As::kQuantile}}};

Error Wrong(std::string_view name, std::string_view value, std::string_view wanted) {
  return {std::string(name) + ": \"" + std::string(value.substr(0, 200)) + "\" is not " + std::string(wanted)};
}

template <class Number>
bool Parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseQuantiles(std::string_view text, std::vector<double>& quantiles) {
  quantiles.clear();
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    double q = 0;
    if (!Parse(text.substr(0, end), q) || !(q >= 0 && q <= 1)) {
      return false;
    }
    quantiles.push_back(q);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return !quantiles.empty() && quantiles.size() <= kMostQuantiles;
}

Status Set(RangeQuery& query, const std::string& name, const std::string& value) {
  int64_t time = 0;
  double seconds = 0;
  if (name == "name") {
    query.family = value;
  } else if (name == "as") {
    const auto* const way = std::find_if(kWays.begin(), kWays.end(), [&](const auto& known) { return known.first == value; });
    if (way == kWays.end()) {
      return Wrong(name, value, "value, rate, mean or quantile");
    }
    query.as = way->second;
  } else if (name == "q") {
    if (!ParseQuantiles(value, query.quantiles)) {
      return Wrong(name, value, "1 to 8 numbers from 0 to 1, with commas between them");
    }
  } else if (name == "start" || name == "end") {
    // Up to the year 3000, so that no difference overflows.
    if (!Parse(value, time) || time < 0 || time > 32'503'680'000'000) {
      return Wrong(name, value, "a number of milliseconds since 1970");
    }
    (name == "start" ? query.start_ms : query.end_ms) = time;
  } else if (name == "step") {
    if (!Parse(value, seconds) || !(seconds >= 0.1 && seconds <= 86400)) {
      return Wrong(name, value, "a number of seconds from 0.1 to 86400");
    }
    query.step_ms = std::llround(seconds * 1000);
  } else if (name == "limit") {
    if (!Parse(value, query.limit) || query.limit == 0 || query.limit > kMostLabelSets) {
      return Wrong(name, value, "a number from 1 to " + std::to_string(kMostLabelSets));
    }
  } else if (name.starts_with(kMatch)) {
    query.match.emplace_back(name.substr(kMatch.size()), value);
  } else {
    return Error{"unknown parameter \"" + name.substr(0, 200) + "\" (name, as, q, start, end, step, limit, match.<label>)"};
  }
  return Done{};
}

std::string_view NameOf(As as) {
  return std::find_if(kWays.begin(), kWays.end(), [&](const auto& known) { return known.second == as; })->first;
}

}  // namespace

JsonAnswer AnswerRange(std::string_view text, const std::vector<History::Entry>& entries, const Snapshot* newest) {
  RangeQuery query;
  for (const auto& [name, value] : ParseParameters(text)) {
    if (const Status status = Set(query, name, value); !status.ok()) {
      return RefuseWith(400, status.error());
    }
  }
  if (query.family.empty()) {
    return RefuseWith(400, "name: of which family? /api/v1/metadata lists them");
  }
  const RangeResult result = Evaluate(query, entries, newest);
  if (!result.known) {
    return RefuseWith(404, "name: there is no family \"" + query.family.substr(0, 200) + "\", neither now nor in the history");
  }
  if (!result.problem.empty()) {
    return RefuseWith(400, "\"" + query.family + "\": " + result.problem);
  }
  Json series = Json::array();
  for (const RangeSeries& line : result.series) {
    Json labels = Json::object();
    for (const auto& [name, value] : line.labels) {
      labels[name] = value;
    }
    Json one = {{"labels", std::move(labels)}};
    if (line.quantile) {
      one["q"] = *line.quantile;
    }
    one["values"] = line.values;
    series.push_back(std::move(one));
  }
  return AnswerWith({{"name", query.family},
                     {"type", TypeName(result.type)},
                     {"as", NameOf(result.as)},
                     {"start_ms", result.start_ms},
                     {"step_ms", result.step_ms},
                     {"points", result.points},
                     {"series", std::move(series)},
                     {"left_out", result.left_out}});
}

}  // namespace persia::agent

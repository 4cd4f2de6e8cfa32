#include "web/range_api.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "health/not_finite.h"
#include "web/bands.h"
#include "web/query_string.h"
#include "web/range_query.h"

namespace persia::agent {
namespace {

using As = RangeQuery::As;

constexpr size_t kMaxLabelSets = 1000;
// With bands=true, which answers with a few of them.
constexpr size_t kMaxLabelSetsOfBands = 10'000;
constexpr size_t kMaxNumbersOfBands = 2'500'000;
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

Status Set(RangeQuery& query, bool& bands, const std::string& name, const std::string& value) {
  if (name == "bands") {
    bands = value == "true";
    if (!bands && value != "false") return Wrong(name, value, "true or false");
  } else if (name == "name") {
    query.family = value;
  } else if (name == "as") {
    const auto* const found = std::ranges::find(kAsNames, value);
    if (found == kAsNames.end()) return Wrong(name, value, "value, rate, mean or quantile");
    query.as = static_cast<As>(found - kAsNames.begin());
  } else if (name == "q") {
    if (!ParseQuantiles(value, query.quantiles)) return Wrong(name, value, "1 to 8 numbers from 0 to 1, separated by commas");
  } else if (name == "start" || name == "end") {
    int64_t time = 0;
    if (!ParseNumber(value, time) || time < 0 || time > kMaxTimeMs)
      return Wrong(name, value, "a number of milliseconds since 1970");
    (name == "start" ? query.start_ms : query.end_ms) = time;
  } else if (name == "step") {
    double seconds = 0;
    if (!ParseNumber(value, seconds) || !(seconds >= 0.1 && seconds <= 86400))
      return Wrong(name, value, "a number of seconds from 0.1 to 86400");
    query.step_ms = std::llround(seconds * 1000);
  } else if (name == "limit") {
    if (!ParseNumber(value, query.limit) || query.limit == 0 || query.limit > kMaxLabelSets)
      return Wrong(name, value, "a number from 1 to " + std::to_string(kMaxLabelSets));
  } else if (name.starts_with(kMatch)) {
    query.match.emplace_back(name.substr(kMatch.size()), value);
  } else {
    return Error{"unknown parameter \"" + name.substr(0, 200) +
                 "\" (name, as, q, start, end, step, limit, bands, match.<label>)"};
  }
  return Done{};
}

Json LineJson(const RangeSeries& line, bool is_apart) {
  Json one = {{"labels", Json::object_t(line.labels.begin(), line.labels.end())}};
  if (line.quantile) one["q"] = *line.quantile;
  if (is_apart) one["apart"] = true;
  one["values"] = line.values;
  if (!line.above.empty()) one["above"] = line.above;
  for (const auto& [at, value] : line.not_finite) one["not_finite"].push_back({at, NotFiniteText(value)});
  return one;
}

Json BandJson(const Band& band) {
  Json one = {{"labels", Json::object_t(band.labels.begin(), band.labels.end())},
              {"sets", band.sets},
              {"usual", band.usual},
              {"min", band.min},
              {"median", band.median},
              {"max", band.max}};
  if (!band.high.empty()) one["high"] = band.high;
  return one;
}

}  // namespace

JsonAnswer AnswerRange(std::string_view text, const std::vector<History::Entry>& entries, const Snapshot* newest) {
  RangeQuery query;
  bool has_bands = false;
  for (const auto& [name, value] : ParseParameters(text))
    if (const Status status = Set(query, has_bands, name, value); !status.ok()) return RefuseWith(400, status.error());
  if (has_bands) {
    query.limit = kMaxLabelSetsOfBands;
    query.max_numbers = kMaxNumbersOfBands;
  }
  if (query.family.empty()) return RefuseWith(400, "name: missing; /api/v1/metadata lists the families");
  const RangeResult result = Evaluate(query, entries, newest);
  if (!result.known)
    return RefuseWith(404, "name: no family \"" + query.family.substr(0, 200) + "\", neither now nor in the history");
  if (!result.error.empty()) return RefuseWith(400, "\"" + query.family + "\": " + result.error);
  Json answer = {
      {"name", query.family},        {"type", TypeName(result.type)}, {"as", kAsNames[static_cast<size_t>(result.as)]},
      {"start_ms", result.start_ms}, {"step_ms", result.step_ms},     {"points", result.points},
      {"series", Json::array()},     {"left_out", result.left_out}};
  const std::vector<size_t> apart = FindApart(result);
  std::vector<size_t> shown(result.series.size());
  std::iota(shown.begin(), shown.end(), size_t{0});
  if (has_bands) {
    Bands bands = BandsOf(result);
    for (const Band& band : bands.bands) answer["bands"].push_back(BandJson(band));
    answer["not_finite"] = bands.not_finite;
    shown = std::move(bands.shown);
  }
  for (const size_t line : shown)
    answer["series"].push_back(LineJson(result.series[line], std::ranges::find(apart, line) != apart.end()));
  return AnswerWith(answer);
}

}  // namespace persia::agent

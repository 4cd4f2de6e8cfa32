#include "web/api.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "health/not_finite.h"
#include "persia/metrics/catalog.h"
#include "web/bands.h"
#include "web/range_query.h"

namespace persia::agent {

JsonAnswer AnswerWith(const Json& json, int status) { return {status, WriteJson(json) + "\n"}; }

JsonAnswer RefuseWith(int status, std::string_view error) { return AnswerWith({{"error", error}}, status); }

namespace {

// `%2F` and `+`.
std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(&text[i + 1], &text[i + 3], code, 16).ptr == &text[i + 3]) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

Parameters ParseParameters(std::string_view query) {
  Parameters out;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    out.emplace_back(Decoded(part.substr(0, equals)), Decoded(part.substr(std::min(equals + 1, part.size()))));
  }
  return out;
}

namespace {

namespace catalog = metrics::catalog;

constexpr size_t kDefaultSeries = 1000;
constexpr size_t kMaxSeries = 10'000;
constexpr size_t kMaxWords = 16;

// A time cost is two families: the histogram <name> and the gauge <name>_sec.
std::string_view TableOf(std::string_view family) {
  for (const catalog::Entry* entry : catalog::kEntries) {
    const bool is_gauge = entry->type == catalog::Type::kTimeCost && family.ends_with("_sec");
    if (entry->name == (is_gauge ? family.substr(0, family.size() - 4) : family))
      return entry->table == catalog::Table::kAccuracy ? "accuracy" : "efficiency";
  }
  return "";
}

// Calls `use` with each label of a series, those of its identity first.
template <class Use>
void ForEachLabelOf(const Snapshot& snapshot, const SeriesLayout& series, const Use& use) {
  for (const auto& [name, value] : snapshot.layout->identities[series.identity].labels) use(name, value);
  for (const auto& [name, value] : series.labels) use(name, value);
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// The words that `text` contains, each a bit.
uint32_t WordsIn(std::string_view text, const std::vector<std::string>& words) {
  const std::string lower = LowerCase(text);
  uint32_t found = 0;
  for (size_t i = 0; i < words.size(); ++i) found |= static_cast<uint32_t>(lower.find(words[i]) != std::string::npos) << i;
  return found;
}

template <class LabelRange>
uint32_t WordsInValues(const LabelRange& labels, const std::vector<std::string>& words) {
  uint32_t found = 0;
  for (const auto& [name, value] : labels) found |= WordsIn(value, words);
  return found;
}

std::vector<std::string> SplitWords(const std::string& text) {
  std::istringstream stream(LowerCase(text));
  return {std::istream_iterator<std::string>(stream), {}};
}

}  // namespace

JsonAnswer AnswerSearch(std::string_view query, const Snapshot* newest) {
  std::string text;
  for (const auto& [name, value] : ParseParameters(query)) {
    if (name != "q") return RefuseWith(400, "unknown parameter \"" + name.substr(0, 200) + "\" (q)");
    text = value;
  }
  const std::vector<std::string> words = SplitWords(text);
  if (words.empty() || words.size() > kMaxWords)
    return RefuseWith(400, "q: \"" + text.substr(0, 200) + "\" is not 1 to " + std::to_string(kMaxWords) + " words");
  Json found = Json::array();
  if (newest != nullptr) {
    const Layout& layout = *newest->layout;
    std::vector<uint32_t> of_identity;
    for (const Identity& identity : layout.identities) of_identity.push_back(WordsInValues(identity.labels, words));
    const uint32_t all = (uint32_t{1} << words.size()) - 1;
    for (const FamilyLayout& family : layout.families) {
      if (!found.empty() && found.back() == family.name) continue;
      const uint32_t of_family = WordsIn(family.name, words) | WordsIn(family.help, words);
      const auto has_all = [&](const SeriesLayout& series) {
        const uint32_t known = of_family | of_identity[series.identity];
        return known == all || (known | WordsInValues(series.labels, words)) == all;
      };
      if (std::ranges::any_of(family.series, has_all)) found.push_back(family.name);
    }
  }
  return AnswerWith({{"families", std::move(found)}});
}

JsonAnswer AnswerMetadata(const Snapshot* newest) {
  Json families = Json::array();
  if (newest == nullptr) return AnswerWith({{"families", families}});
  const std::vector<FamilyLayout>& all = newest->layout->families;
  for (auto at = all.begin(); at != all.end();) {
    const FamilyLayout& family = *at;
    std::set<std::string_view> labels;
    size_t count = 0;
    for (; at != all.end() && at->name == family.name; ++at) {  // histograms of several bounds are one family
      count += at->series.size();
      for (const SeriesLayout& series : at->series)
        ForEachLabelOf(*newest, series, [&](std::string_view name, std::string_view) { labels.insert(name); });
    }
    families.push_back({{"name", family.name},
                        {"type", TypeName(family.type)},
                        {"help", family.help},
                        {"unit", family.unit},
                        {"group", family.group},
                        {"table", TableOf(family.name)},
                        {"series", count},
                        {"labels", labels}});
  }
  return AnswerWith({{"families", std::move(families)}});
}

JsonAnswer AnswerSeries(std::string_view query, const Snapshot* newest) {
  std::string wanted;
  size_t limit = kDefaultSeries;
  for (const auto& [name, value] : ParseParameters(query))
    if (name == "name")
      wanted = value;
    else if (name != "limit")
      return RefuseWith(400, "unknown parameter \"" + name.substr(0, 200) + "\" (name, limit)");
    else if (!ParseNumber(value, limit) || limit == 0 || limit > kMaxSeries)
      return RefuseWith(400, "limit: \"" + value.substr(0, 200) + "\" is not a number from 1 to " + std::to_string(kMaxSeries));
  if (wanted.empty()) return RefuseWith(400, "name: missing; /api/v1/metadata lists the families");
  if (newest != nullptr) {
    size_t count = 0;
    Json all = Json::array();
    for (const FamilyLayout& family : FamiliesNamed(*newest->layout, wanted)) {
      count += family.series.size();
      for (const SeriesLayout& series : std::span(family.series).first(std::min(limit - all.size(), family.series.size()))) {
        Json labels = Json::object();
        ForEachLabelOf(*newest, series, [&](std::string_view name, std::string_view value) { labels[name] = value; });
        all.push_back(std::move(labels));
      }
    }
    if (count > 0) return AnswerWith({{"name", wanted}, {"left_out", count - all.size()}, {"series", std::move(all)}});
  }
  return RefuseWith(404, "name: no family \"" + wanted.substr(0, 200) + "\"");
}

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

namespace {

constexpr size_t kMaxLimit = 1000;

Result<EventLog::Filter> ParseFilter(std::string_view query) {
  EventLog::Filter filter;
  for (const auto& [name, value] : ParseParameters(query)) {
    if (name == "type") {
      filter.type = value;
    } else if (name == "since") {
      if (!ParseNumber(value, filter.since_ms))
        return Error{"since: " + Quoted(value) + " is not a number of milliseconds since 1970"};
    } else if (name == "limit") {
      if (!ParseNumber(value, filter.limit) || filter.limit == 0 || filter.limit > kMaxLimit)
        return Error{"limit: " + Quoted(value) + " is not a number from 1 to " + std::to_string(kMaxLimit)};
    } else {
      return Error{"unknown parameter " + Quoted(name) + " (since, type, limit)"};
    }
  }
  return filter;
}

}  // namespace

JsonAnswer AnswerEvents(std::string_view query, const EventLog& log) {
  const auto filter = ParseFilter(query);
  if (!filter.ok()) return RefuseWith(400, filter.error());
  std::string body = "{\"events\": [";
  std::string_view separator = "\n";
  for (const JobEvent& event : log.Newest(filter.value())) {
    body.append(separator).append(EventJson(event));
    separator = ",\n";
  }
  return {.body = body + "\n]}\n"};
}

}  // namespace persia::agent

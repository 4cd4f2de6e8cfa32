#include "web/series_api.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "persia/metrics/catalog.h"
#include "web/query_string.h"

namespace persia::agent {
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
void ForEachLabel(const Snapshot& snapshot, const SeriesLayout& series, const Use& use) {
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
        ForEachLabel(*newest, series, [&](std::string_view name, std::string_view) { labels.insert(name); });
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
        ForEachLabel(*newest, series, [&](std::string_view name, std::string_view value) { labels[name] = value; });
        all.push_back(std::move(labels));
      }
    }
    if (count > 0) return AnswerWith({{"name", wanted}, {"left_out", count - all.size()}, {"series", std::move(all)}});
  }
  return RefuseWith(404, "name: no family \"" + wanted.substr(0, 200) + "\"");
}

}  // namespace persia::agent

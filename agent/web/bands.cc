#include "web/bands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace persia::agent {
namespace {

constexpr size_t kMaxGroups = 12;
constexpr size_t kMaxApart = 4;
constexpr double kFar = 6;         // times the usual distance from the middle
constexpr double kLeastFar = 0.1;  // of the middle: below this, series are alike
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::array<std::string_view, 4> kOfRank{"instance", "ip_addr", "process", "role"};

// The lines of a label set, which stand side by side: indexes into RangeResult::series.
struct LabelSet {
  size_t first = 0;
  size_t middle = 0;  // the quantile next to the median
  size_t last = 0;    // the highest one
};

double FromMedian(const RangeSeries& series) { return std::abs(series.quantile.value_or(0.5) - 0.5); }

std::vector<LabelSet> SetsOf(const std::vector<RangeSeries>& series) {
  std::vector<LabelSet> sets;
  for (size_t i = 0; i < series.size(); ++i) {
    if (i == 0 || !series[i].quantile || series[i].labels != series[i - 1].labels) {
      sets.push_back({i, i, i});
      continue;
    }
    LabelSet& set = sets.back();
    if (FromMedian(series[i]) < FromMedian(series[set.middle])) set.middle = i;
    if (series[i].quantile > series[set.last].quantile) set.last = i;
  }
  return sets;
}

// Sorts the numbers.
double Median(std::vector<double>& numbers) {
  if (numbers.empty()) return kNoNumber;
  std::ranges::sort(numbers);
  const size_t half = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

bool IsOfRank(std::string_view label) { return std::ranges::find(kOfRank, label) != kOfRank.end(); }

using Groups = std::map<Labels, std::vector<LabelSet>>;

// By the values of the labels that are not the rank's and differ.
Groups GroupsOf(const RangeResult& result, const std::vector<LabelSet>& sets) {
  std::map<std::string, std::set<std::string>, std::less<>> values;
  std::map<std::string, size_t, std::less<>> having;
  for (const LabelSet& set : sets) {
    for (const auto& [name, value] : result.series[set.first].labels) {
      if (IsOfRank(name)) continue;
      values[name].insert(value);
      ++having[name];
    }
  }
  Groups groups;
  for (const LabelSet& set : sets) {
    Labels key = result.series[set.first].labels;
    std::erase_if(key, [&](const auto& label) {
      return IsOfRank(label.first) || (values[label.first].size() == 1 && having[label.first] == sets.size());
    });
    groups[std::move(key)].push_back(set);
  }
  return groups.size() <= kMaxGroups ? groups : Groups{{Labels{}, sets}};
}

Band BandOf(const RangeResult& result, const Labels& labels, const std::vector<LabelSet>& group) {
  Band band{.labels = labels, .sets = group.size()};
  const bool has_high = std::ranges::any_of(group, [](const LabelSet& set) { return set.last != set.middle; });
  std::vector<double> numbers;
  const auto collect = [&](size_t point, size_t LabelSet::*line) -> std::vector<double>& {
    numbers.clear();
    for (const LabelSet& set : group) {
      const double value = result.series[set.*line].values[point];
      if (std::isfinite(value)) numbers.push_back(value);
    }
    return numbers;
  };
  for (size_t point = 0; point < result.points; ++point) {
    band.median.push_back(Median(collect(point, &LabelSet::middle)));
    band.min.push_back(numbers.empty() ? kNoNumber : numbers.front());
    band.max.push_back(numbers.empty() ? kNoNumber : numbers.back());
    if (has_high) band.high.push_back(Median(collect(point, &LabelSet::last)));
  }
  return band;
}

// The mean distance of a line from the middle of its group.
double DistanceFrom(const std::vector<double>& median, const RangeSeries& line) {
  if (!line.not_finite.empty()) return kInfinite;
  double sum = 0;
  size_t numbers = 0;
  for (size_t point = 0; point < line.values.size(); ++point) {
    if (!std::isfinite(line.values[point])) continue;
    sum += std::abs(line.values[point] - median[point]);
    ++numbers;
  }
  return numbers == 0 ? 0 : sum / static_cast<double>(numbers);
}

// The mean of the newest quarter of the points; infinite: with a value that is no number; NaN: it has none.
double NewestMean(const RangeSeries& line, size_t points) {
  const size_t first = points - std::min(points, std::max<size_t>((points + 3) / 4, 1));
  const auto is_new = [first](const auto& odd) { return odd.first >= first; };
  if (std::ranges::any_of(line.not_finite, is_new)) return kInfinite;
  double sum = 0;
  size_t numbers = 0;
  for (size_t point = first; point < line.values.size(); ++point) {
    if (!std::isfinite(line.values[point])) continue;
    sum += line.values[point];
    ++numbers;
  }
  return numbers == 0 ? kNoNumber : sum / static_cast<double>(numbers);
}

}  // namespace

Bands BandsOf(const RangeResult& result) {
  const std::vector<LabelSet> sets = SetsOf(result.series);
  Bands bands;
  std::vector<std::pair<double, LabelSet>> distances;
  for (const auto& [labels, group] : GroupsOf(result, sets)) {
    Band& band = bands.bands.emplace_back(BandOf(result, labels, group));
    const size_t begin = distances.size();
    for (const LabelSet& set : group) distances.emplace_back(DistanceFrom(band.median, result.series[set.middle]), set);
    // Each group has its part of those that are shown.
    const std::span of_group(distances.data() + begin, distances.size() - begin);
    std::ranges::stable_sort(of_group, std::ranges::greater(), [](const auto& each) { return each.first; });
    const double usual = of_group[of_group.size() / 2].first;
    band.usual = std::isfinite(usual) ? usual : 0;
  }
  for (const LabelSet& set : sets) bands.not_finite += result.series[set.middle].not_finite.empty() ? 0 : 1;
  size_t left = kShownSeries;
  size_t begin = 0;
  for (size_t i = 0; i < bands.bands.size(); ++i) {
    const size_t most = std::min(bands.bands[i].sets, left / (bands.bands.size() - i));
    for (size_t at = begin; at < begin + most; ++at) bands.shown.push_back(distances[at].second.middle);
    left -= most;
    begin += bands.bands[i].sets;
  }
  std::ranges::sort(bands.shown);
  return bands;
}

std::vector<size_t> FindApart(const RangeResult& result) {
  std::vector<std::pair<double, size_t>> means;  // and the line
  std::vector<double> numbers;
  size_t odd = 0;
  for (const LabelSet& set : SetsOf(result.series)) {
    const double mean = NewestMean(result.series[set.middle], result.points);
    if (std::isnan(mean)) continue;
    std::isfinite(mean) ? numbers.push_back(mean) : void(++odd);
    means.emplace_back(mean, set.middle);
  }
  const bool are_odd = 2 * odd > means.size();  // they are no exception
  const double middle = numbers.empty() ? 0 : Median(numbers);
  for (double& number : numbers) number = std::abs(number - middle);
  const double usual = numbers.empty() ? 0 : Median(numbers);
  const double far = std::max(kFar * usual, kLeastFar * std::abs(middle));
  for (auto& [mean, line] : means) mean = std::abs(mean - middle);
  std::erase_if(
      means, [&](const auto& each) { return !(each.first > far) || (are_odd && std::isinf(each.first)); });
  std::ranges::stable_sort(means, std::ranges::greater(), [](const auto& each) { return each.first; });
  std::vector<size_t> apart;
  for (const auto& [distance, line] : means)
    if (apart.size() < kMaxApart) apart.push_back(line);
  return apart;
}

}  // namespace persia::agent

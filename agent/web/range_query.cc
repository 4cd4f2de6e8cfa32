#include "web/range_query.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>

namespace persia::agent {
namespace {

using As = RangeQuery::As;
using Entries = std::vector<History::Entry>;

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kNone = static_cast<size_t>(-1);  // no such index
// A window has at least this many collections, so that a late one leaves no gap.
constexpr int64_t kMinCollections = 3;

Labels AllLabels(const Identity& identity, const SeriesLayout& series) {
  Labels all = series.labels.ToList();
  all.insert(all.end(), identity.labels.begin(), identity.labels.end());
  std::sort(all.begin(), all.end());
  return all;
}

bool Matches(const RangeQuery& query, const Identity& identity, const Labels& labels) {
  return std::all_of(
      query.match.begin(), query.match.end(),
      [&](const auto& wanted) {
        return wanted.first == "job" ? wanted.second == identity.job
                                     : std::find(labels.begin(), labels.end(), wanted) != labels.end();
      });
}

// The label sets of a family (of histograms: with its bounds), and the position of each in the entries' layouts. Those of the
// newest entry come first. A label set belongs to the family that it had last, so that it is shown once.
class SeriesIndex {
 public:
  SeriesIndex(const RangeQuery& query, size_t limit, const Entries& entries, const FamilyLayout& family)
      : family_(family), limit_(limit) {
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) AddLayout(query, *entry->snapshot->layout);
  }

  [[nodiscard]] const std::vector<Labels>& labels() const { return labels_; }
  [[nodiscard]] size_t left_out() const { return left_out_; }
  // The first value of a label set in this snapshot; null: there is none.
  [[nodiscard]] const double* ValuesOf(size_t index, const Snapshot& snapshot) const {
    const auto found = positions_.find(snapshot.layout.get());
    if (found == positions_.end() || index >= found->second.size() || found->second[index] == kNone) return nullptr;
    const double* values = &snapshot.values[found->second[index]];
    return IsAbsent(*values) ? nullptr : values;
  }

 private:
  void AddLayout(const RangeQuery& query, const Layout& layout) {
    const auto [at, is_new] = positions_.try_emplace(&layout);
    if (!is_new) return;
    for (const FamilyLayout& family : FamiliesNamed(layout, query.family)) {
      // With another type or other bounds it is another metric of the same name.
      const bool same = family.type == family_.type && family.bounds == family_.bounds && family.native == family_.native;
      for (const SeriesLayout& series : family.series) {
        const Identity& identity = layout.identities[series.identity];
        Labels labels = AllLabels(identity, series);
        if (!Matches(query, identity, labels)) continue;
        const size_t index = IndexOf(identity.job, std::move(labels), same);
        if (index == kNone) continue;
        at->second.resize(std::max(at->second.size(), index + 1), kNone);
        at->second[index] = series.first_value;
      }
    }
  }

  // REQUIRES: called for the layouts from the newest to the oldest. kNone: the label set is not of this family, or beyond the
  // limit.
  size_t IndexOf(const std::string& job, Labels labels, bool same_family) {
    const auto [found, is_new] = indexes_.try_emplace({job, labels}, kNone);
    if (!same_family) return kNone;
    if (is_new && labels_.size() < limit_) {
      found->second = labels_.size();
      labels_.push_back(std::move(labels));
    } else if (is_new) {
      ++left_out_;
    }
    return found->second;
  }

  const FamilyLayout& family_;
  const size_t limit_;
  std::map<std::pair<std::string, Labels>, size_t> indexes_;  // kNone: of another family, or beyond the limit
  std::vector<Labels> labels_;
  std::map<const Layout*, std::vector<size_t>> positions_;
  size_t left_out_ = 0;
};

// The increase of each value of one series since the first entry, without resets.
class Increases {
 public:
  Increases(const SeriesIndex& all, size_t index, const Entries& entries, const FamilyLayout& family)
      : width_(family.ValuesPerSeries()), sums_(entries.size() * width_), present_(entries.size()) {
    std::vector<double> last;
    for (size_t e = 0; e < entries.size(); ++e) {
      double* now = &sums_[e * width_];
      if (e > 0) std::copy_n(now - width_, width_, now);
      const double* values = all.ValuesOf(index, *entries[e].snapshot);
      present_[e] = values != nullptr;
      if (values == nullptr) continue;
      const bool reset = !last.empty() && CountOf(family, values) < CountOf(family, last.data());
      for (size_t i = 0; !last.empty() && i < width_; ++i) now[i] += reset ? values[i] : values[i] - last[i];
      last.assign(values, values + width_);
    }
  }

  [[nodiscard]] bool IsPresent(size_t entry) const { return present_[entry]; }
  [[nodiscard]] std::vector<double> Between(size_t from, size_t to) const {
    std::vector<double> out(width_);
    for (size_t i = 0; i < width_; ++i) out[i] = sums_[to * width_ + i] - sums_[from * width_ + i];
    return out;
  }

  // The number of observations; of a counter its value.
  static double CountOf(const FamilyLayout& family, const double* values) {
    switch (family.type) {
      case MetricType::kHistogram:
        return std::accumulate(values + 1, values + family.ValuesPerSeries(), 0.0);
      case MetricType::kSummary:
        return values[1];
      default:
        return values[0];
    }
  }

 private:
  const size_t width_;
  std::vector<double> sums_;
  std::vector<bool> present_;
};

// The last entry at or before `time`; kNone: there is none.
size_t LastEntry(const Entries& entries, int64_t time) {
  const auto after = std::ranges::upper_bound(entries, time, {}, &History::Entry::unix_ms);
  return after == entries.begin() ? kNone : static_cast<size_t>(after - entries.begin()) - 1;
}

int64_t MeanInterval(const Entries& entries) {
  if (entries.size() < 2) return 1000;
  return (entries.back().unix_ms - entries.front().unix_ms) / static_cast<int64_t>(entries.size() - 1);
}

// The mean time between the collections before an entry that a window has; kNone: of the history.
int64_t IntervalBefore(const Entries& entries, size_t entry) {
  if (entry == kNone || entry == 0) return MeanInterval(entries);
  const size_t from = entry - std::min<size_t>(entry, kMinCollections);
  return (entries[entry].unix_ms - entries[from].unix_ms) / static_cast<int64_t>(entry - from);
}

bool IsDistribution(MetricType type) { return type == MetricType::kHistogram || type == MetricType::kSummary; }

As DefaultFor(const FamilyLayout& family) {
  if (family.type == MetricType::kSummary && family.bounds.empty()) return As::kMean;  // it has no quantiles
  return IsDistribution(family.type) ? As::kQuantile : family.type == MetricType::kCounter ? As::kRate : As::kValue;
}

// Why a family of this type cannot be shown so; empty if it can.
std::string ErrorOf(As as, MetricType type) {
  if (IsDistribution(type)) return as == As::kValue ? "has no single value: use as=rate, mean or quantile" : "";
  if (as == As::kMean || as == As::kQuantile) return "has neither mean nor quantiles: it is no histogram or summary";
  return as == As::kRate && type != MetricType::kCounter ? "has no rate: it is no counter, histogram or summary" : "";
}

class Evaluation {
 public:
  // Adds at most `limit` label sets to the result.
  Evaluation(const RangeQuery& query, size_t limit, const Entries& entries, const FamilyLayout& family, RangeResult& result)
      : query_(query), entries_(entries), family_(family), series_(query, limit, entries, family), result_(result) {
    for (size_t i = 0; i < result.points; ++i) {
      const int64_t time = result.start_ms + static_cast<int64_t>(i) * result.step_ms;
      const size_t to = LastEntry(entries, time);
      const int64_t window_ms = std::max(result.step_ms, kMinCollections * IntervalBefore(entries, to));
      const bool fresh = to != kNone && entries[to].unix_ms > time - window_ms;
      const size_t from = LastEntry(entries, time - window_ms);
      windows_.emplace_back(from == kNone ? 0 : from, fresh ? to : kNone);
    }
  }

  // Returns the number of label sets.
  size_t Run() {
    const bool of_summary = result_.as == As::kQuantile && family_.type == MetricType::kSummary;
    const size_t lines = of_summary ? family_.bounds.size() : result_.as == As::kQuantile ? query_.quantiles.size() + 1 : 1;
    if ((result_.series.size() + series_.labels().size() * lines) * windows_.size() > query_.max_numbers) {
      result_.series.clear();
      result_.error = "more than " + std::to_string(query_.max_numbers) +
                      " numbers: use a longer step, a smaller limit, or fewer quantiles";
      return 0;
    }
    result_.left_out += series_.left_out();
    for (size_t index = 0; index < series_.labels().size(); ++index) {
      if (result_.as == As::kValue) {
        AddLine(index, {}, [&](size_t, size_t to) { return ValueAt(index, to, 0); });
        AddNotFinite(index, result_.series.back());
      } else if (of_summary) {
        for (size_t i = 0; i < family_.bounds.size(); ++i)
          AddLine(
              index, family_.bounds[i], [&](size_t, size_t to) { return ValueAt(index, to, 2 + i); });
      } else {
        AddWindowed(index);
      }
    }
    return series_.labels().size();
  }

 private:
  [[nodiscard]] double ValueAt(size_t index, size_t entry, size_t value) const {
    const double* values = series_.ValuesOf(index, *entries_[entry].snapshot);
    return values == nullptr ? kNoValue : values[value];
  }

  // Adds lines of the counts within the windows.
  void AddWindowed(size_t index) {
    const Increases increases(series_, index, entries_, family_);
    const auto add = [&](std::optional<double> quantile, const auto& point) {
      AddLine(index, quantile, [&](size_t from, size_t to) {
        while (from < to && !increases.IsPresent(from)) ++from;  // the series began within the window
        if (from >= to || !increases.IsPresent(to)) return kNoValue;
        return point(increases.Between(from, to), static_cast<double>(entries_[to].unix_ms - entries_[from].unix_ms) / 1000);
      });
    };
    if (result_.as == As::kRate) {
      add({}, [&](const std::vector<double>& counted, double seconds) {
        return Increases::CountOf(family_, counted.data()) / seconds;
      });
      return;
    }
    add({}, [&](const std::vector<double>& counted, double) {
      return counted[0] / Increases::CountOf(family_, counted.data());  // NaN without observations
    });
    if (result_.as == As::kMean) return;
    for (const double q : query_.quantiles) {
      add(q, [&](const std::vector<double>& counted, double) {
        ClassicBuffer buffer;
        return QuantileBound(q, family_.bounds, family_.BucketCounts(counted.data(), buffer));
      });
      RangeSeries& line = result_.series.back();
      for (size_t i = 0; i < line.values.size(); ++i) {
        if (!std::isinf(line.values[i])) continue;
        line.values[i] = family_.bounds.back();
        line.above.push_back(i);
      }
    }
  }

  // No value at all is NaN in a line, too.
  void AddNotFinite(size_t index, RangeSeries& line) const {
    for (size_t i = 0; i < windows_.size(); ++i) {
      const size_t to = windows_[i].second;
      if (std::isfinite(line.values[i]) || to == kNone) continue;
      const double* values = series_.ValuesOf(index, *entries_[to].snapshot);
      if (values != nullptr) line.not_finite.emplace_back(i, values[0]);
    }
  }

  template <class Point>
  void AddLine(size_t index, std::optional<double> quantile, const Point& point) {
    RangeSeries& series = result_.series.emplace_back(RangeSeries{series_.labels()[index], quantile, {}, {}});
    series.values.reserve(windows_.size());
    for (size_t i = 0; i < windows_.size(); ++i) {
      const auto& [from, to] = windows_[i];
      const bool is_known = i > 0 && windows_[i] == windows_[i - 1];
      series.values.push_back(is_known ? series.values.back() : to == kNone ? kNoValue : point(from, to));
    }
  }

  const RangeQuery& query_;
  const Entries& entries_;
  const FamilyLayout& family_;
  const SeriesIndex series_;
  RangeResult& result_;
  std::vector<std::pair<size_t, size_t>> windows_;  // of each point: the first and the last entry of its window
};

}  // namespace

double QuantileBound(double q, const std::vector<double>& bounds, const double* counts) {
  const double total = std::accumulate(counts, counts + bounds.size() + 1, 0.0);
  if (!(total > 0) || bounds.empty()) return kNoValue;
  const double rank = q * total;
  double below = 0;
  size_t bucket = 0;
  while (bucket < bounds.size() && (below += counts[bucket]) < rank) ++bucket;
  return bucket < bounds.size() ? bounds[bucket] : std::numeric_limits<double>::infinity();
}

RangeResult Evaluate(const RangeQuery& query, const std::vector<History::Entry>& entries, const Snapshot* newest) {
  RangeResult result;
  std::span<const FamilyLayout> families;  // several of a histogram with several bounds
  for (auto entry = entries.rbegin(); entry != entries.rend() && families.empty(); ++entry)
    families = FamiliesNamed(*entry->snapshot->layout, query.family);
  const bool in_history = !families.empty();
  if (families.empty() && newest != nullptr) families = FamiliesNamed(*newest->layout, query.family);
  if (families.empty()) return result;
  result.known = true;
  result.type = families.front().type;
  result.as = query.as.value_or(DefaultFor(families.front()));
  result.error = ErrorOf(result.as, result.type);
  const int64_t end_ms = query.end_ms.value_or(entries.empty() ? query.start_ms.value_or(0) : entries.back().unix_ms);
  result.start_ms = query.start_ms.value_or(entries.empty() ? end_ms : entries.front().unix_ms);
  const int64_t span = end_ms - result.start_ms;
  result.step_ms = query.step_ms.value_or(std::max<int64_t>({span / 240, MeanInterval(entries), 1}));
  if (span < 0)
    result.error = "the end is before the start";
  else if (span / result.step_ms >= static_cast<int64_t>(kMaxPoints))
    result.error = "more than " + std::to_string(kMaxPoints) + " points: use a longer step or a shorter span";
  if (!result.error.empty()) return result;
  // The last point is at the end exactly; the start moves to a multiple of the step before it.
  result.points = static_cast<size_t>(span / result.step_ms) + 1;
  result.start_ms = end_ms - static_cast<int64_t>(result.points - 1) * result.step_ms;
  size_t limit = query.limit;
  for (const FamilyLayout& family : families)
    if (in_history && result.error.empty()) limit -= Evaluation(query, limit, entries, family, result).Run();
  return result;
}

}  // namespace persia::agent

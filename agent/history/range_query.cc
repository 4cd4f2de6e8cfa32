#include "history/range_query.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace persia::agent {
namespace {

using As = RangeQuery::As;
using Entries = std::vector<History::Entry>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kNowhere = static_cast<size_t>(-1);
// A window has at least so many collections, so that one which came late leaves no gap.
constexpr int64_t kCollections = 3;

const FamilyLayout* FindFamily(const Layout& layout, const std::string& name) {
  const auto found =
      std::lower_bound(layout.families.begin(), layout.families.end(), name,
                       [](const FamilyLayout& family, const std::string& wanted) { return family.name < wanted; });
  return found != layout.families.end() && found->name == name ? &*found : nullptr;
}

Labels AllLabels(const Identity& identity, const SeriesLayout& series) {
  Labels all = series.labels.ToList();
  all.insert(all.end(), identity.labels.begin(), identity.labels.end());
  std::sort(all.begin(), all.end());
  return all;
}

bool Matches(const RangeQuery& query, const Identity& identity, const Labels& labels) {
  return std::all_of(query.match.begin(), query.match.end(), [&](const auto& wanted) {
    return wanted.first == "job" ? wanted.second == identity.job
                                 : std::find(labels.begin(), labels.end(), wanted) != labels.end();
  });
}

// Which label sets there are, and where each of them stands in the layouts that the entries have. Those of the newest entry
// come first.
class Table {
 public:
  Table(const RangeQuery& query, const Entries& entries, const FamilyLayout& family) : family_(family) {
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      Take(query, *entry->snapshot->layout);
    }
  }

  [[nodiscard]] const std::vector<Labels>& labels() const { return labels_; }
  [[nodiscard]] size_t left_out() const { return left_out_; }
  // Where the numbers of a label set begin in this snapshot; null: it is not there.
  [[nodiscard]] const double* ValuesOf(size_t number, const Snapshot& snapshot) const {
    const auto found = positions_.find(snapshot.layout.get());
    if (found == positions_.end() || number >= found->second.size() || found->second[number] == kNowhere) {
      return nullptr;
    }
    const double* values = &snapshot.values[found->second[number]];
    return IsAbsent(*values) ? nullptr : values;
  }

 private:
  void Take(const RangeQuery& query, const Layout& layout) {
    const auto [at, is_new] = positions_.try_emplace(&layout);
    const FamilyLayout* family = is_new ? FindFamily(layout, query.family) : nullptr;
    // One with another type or other bounds is another metric, which had the name before.
    if (family == nullptr || family->type != family_.type || family->bounds != family_.bounds) {
      return;
    }
    for (const SeriesLayout& series : family->series) {
      const Identity& identity = layout.identities[series.identity];
      Labels labels = AllLabels(identity, series);
      if (!Matches(query, identity, labels)) {
        continue;
      }
      const size_t number = NumberOf(identity.job, std::move(labels), query.limit);
      if (number != kNowhere) {
        at->second.resize(std::max(at->second.size(), number + 1), kNowhere);
        at->second[number] = series.first_value;
      }
    }
  }

  size_t NumberOf(const std::string& job, Labels labels, size_t limit) {
    const auto [found, is_new] = numbers_.try_emplace({job, labels}, kNowhere);
    if (is_new && labels_.size() < limit) {
      found->second = labels_.size();
      labels_.push_back(std::move(labels));
    } else if (is_new) {
      ++left_out_;
    }
    return found->second;
  }

  const FamilyLayout& family_;
  std::map<std::pair<std::string, Labels>, size_t> numbers_;
  std::vector<Labels> labels_;
  std::map<const Layout*, std::vector<size_t>> positions_;
  size_t left_out_ = 0;
};

// What one series counted from the first entry on, resets taken out: at each entry, `width` numbers.
class Totals {
 public:
  Totals(const Table& table, size_t number, const Entries& entries, const FamilyLayout& family)
      : width_(family.ValuesPerSeries()), sums_(entries.size() * width_), there_(entries.size()) {
    std::vector<double> last;
    for (size_t e = 0; e < entries.size(); ++e) {
      double* now = &sums_[e * width_];
      if (e > 0) {
        std::copy_n(now - width_, width_, now);
      }
      const double* values = table.ValuesOf(number, *entries[e].snapshot);
      there_[e] = values != nullptr;
      if (values == nullptr) {
        continue;
      }
      const bool reset = !last.empty() && CountOf(family, values) < CountOf(family, last.data());
      for (size_t i = 0; !last.empty() && i < width_; ++i) {
        now[i] += reset ? values[i] : values[i] - last[i];
      }
      last.assign(values, values + width_);
    }
  }

  [[nodiscard]] bool IsThere(size_t entry) const { return there_[entry]; }
  // What was counted from one entry to a later one.
  [[nodiscard]] std::vector<double> Between(size_t from, size_t to) const {
    std::vector<double> out(width_);
    for (size_t i = 0; i < width_; ++i) {
      out[i] = sums_[to * width_ + i] - sums_[from * width_ + i];
    }
    return out;
  }

  // How many things were counted: of a counter itself.
  static double CountOf(const FamilyLayout& family, const double* values) {
    switch (family.type) {
      case MetricType::kHistogram: {
        double count = 0;
        for (size_t i = 0; i <= family.bounds.size(); ++i) {
          count += values[1 + i];
        }
        return count;
      }
      case MetricType::kSummary:
        return values[1];
      default:
        return values[0];
    }
  }

 private:
  const size_t width_;
  std::vector<double> sums_;
  std::vector<bool> there_;
};

// The last entry that is not later; kNowhere: none.
size_t LastUpTo(const Entries& entries, int64_t time) {
  const auto after = std::upper_bound(entries.begin(), entries.end(), time,
                                      [](int64_t wanted, const History::Entry& entry) { return wanted < entry.unix_ms; });
  return after == entries.begin() ? kNowhere : static_cast<size_t>(after - entries.begin()) - 1;
}

// How many milliseconds lie between two entries, on average.
int64_t Between(const Entries& entries) {
  return entries.size() < 2 ? 1000
                            : (entries.back().unix_ms - entries.front().unix_ms) / static_cast<int64_t>(entries.size() - 1);
}

As DefaultFor(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return As::kRate;
    case MetricType::kHistogram:
    case MetricType::kSummary:
      return As::kQuantile;
    default:
      return As::kValue;
  }
}

std::string WhyNot(As as, MetricType type) {
  const bool distribution = type == MetricType::kHistogram || type == MetricType::kSummary;
  if ((as == As::kMean || as == As::kQuantile) && !distribution) {
    return "has no distribution, so neither mean nor quantiles";
  }
  if (as == As::kValue && distribution) {
    return "has no single value: as=rate, mean or quantile";
  }
  if (as == As::kRate && type != MetricType::kCounter && !distribution) {
    return "counts nothing, so it has no rate";
  }
  return "";
}

class Evaluation {
 public:
  Evaluation(const RangeQuery& query, const Entries& entries, const FamilyLayout& family, RangeResult& result)
      : query_(query), entries_(entries), family_(family), table_(query, entries, family), result_(result) {
    window_ms_ = std::max(result.step_ms, kCollections * Between(entries));
    for (size_t i = 0; i < result.points; ++i) {
      const int64_t time = result.start_ms + static_cast<int64_t>(i) * result.step_ms;
      const size_t to = LastUpTo(entries, time);
      const bool fresh = to != kNowhere && entries[to].unix_ms > time - window_ms_;
      const size_t from = LastUpTo(entries, time - window_ms_);
      windows_.emplace_back(from == kNowhere ? 0 : from, fresh ? to : kNowhere);
    }
  }

  void Run() {
    if (table_.labels().size() * LinesEach() * windows_.size() > kMostNumbers) {
      result_.problem =
          "more than " + std::to_string(kMostNumbers) + " numbers: a longer step, a smaller limit, or fewer quantiles";
      return;
    }
    result_.left_out = table_.left_out();
    for (size_t number = 0; number < table_.labels().size(); ++number) {
      if (result_.as == As::kValue) {
        AddLine(number, {}, [&](size_t, size_t to) { return At(number, to, 0); });
      } else if (result_.as == As::kQuantile && family_.type == MetricType::kSummary) {
        for (size_t i = 0; i < family_.bounds.size(); ++i) {
          AddLine(number, family_.bounds[i], [&](size_t, size_t to) { return At(number, to, 2 + i); });
        }
      } else {
        AddCounted(number);
      }
    }
  }

 private:
  [[nodiscard]] size_t LinesEach() const {
    if (result_.as != As::kQuantile) {
      return 1;
    }
    return family_.type == MetricType::kSummary ? family_.bounds.size() : query_.quantiles.size();
  }

  double At(size_t number, size_t entry, size_t value) const {
    const double* values = table_.ValuesOf(number, *entries_[entry].snapshot);
    return values == nullptr ? kNone : values[value];
  }

  void AddCounted(size_t number) {
    const Totals totals(table_, number, entries_, family_);
    const auto line = [&](std::optional<double> quantile, const auto& of_counted) {
      AddLine(number, quantile, [&](size_t from, size_t to) {
        while (from < to && !totals.IsThere(from)) {
          ++from;  // it came within the window
        }
        if (from >= to || !totals.IsThere(to)) {
          return kNone;
        }
        return of_counted(totals.Between(from, to), static_cast<double>(entries_[to].unix_ms - entries_[from].unix_ms) / 1000);
      });
    };
    if (result_.as == As::kRate) {
      line({}, [&](const std::vector<double>& counted, double seconds) {
        return Totals::CountOf(family_, counted.data()) / seconds;
      });
    } else if (result_.as == As::kMean) {
      line({}, [&](const std::vector<double>& counted, double) {
        return counted[0] / Totals::CountOf(family_, counted.data());  // of nothing: NaN
      });
    } else {
      for (const double q : query_.quantiles) {
        line(q, [&](const std::vector<double>& counted, double) { return BucketQuantile(q, family_.bounds, &counted[1]); });
      }
    }
  }

  template <class Point>
  void AddLine(size_t number, std::optional<double> quantile, const Point& point) {
    RangeSeries& series = result_.series.emplace_back(RangeSeries{table_.labels()[number], quantile, {}});
    series.values.reserve(windows_.size());
    for (const auto& [from, to] : windows_) {
      series.values.push_back(to == kNowhere ? kNone : point(from, to));
    }
  }

  const RangeQuery& query_;
  const Entries& entries_;
  const FamilyLayout& family_;
  const Table table_;
  RangeResult& result_;
  int64_t window_ms_ = 0;
  std::vector<std::pair<size_t, size_t>> windows_;  // of each point: the entry at which its window begins, and its last one
};

}  // namespace

double BucketQuantile(double q, const std::vector<double>& bounds, const double* counts) {
  double total = 0;
  for (size_t i = 0; i <= bounds.size(); ++i) {
    total += counts[i];
  }
  if (!(total > 0) || bounds.empty()) {
    return kNone;
  }
  const double rank = q * total;
  double below = 0;
  size_t bucket = 0;
  while (bucket < bounds.size() && below + counts[bucket] < rank) {
    below += counts[bucket++];
  }
  if (bucket == bounds.size()) {
    return bounds.back();
  }
  if (bucket == 0 && bounds[0] <= 0) {
    return bounds[0];
  }
  const double lower = bucket == 0 ? 0 : bounds[bucket - 1];
  return counts[bucket] > 0 ? lower + (bounds[bucket] - lower) * (rank - below) / counts[bucket] : lower;
}

RangeResult Evaluate(const RangeQuery& query, const std::vector<History::Entry>& entries, const Snapshot* newest) {
  RangeResult result;
  const FamilyLayout* family = nullptr;
  for (auto entry = entries.rbegin(); entry != entries.rend() && family == nullptr; ++entry) {
    family = FindFamily(*entry->snapshot->layout, query.family);
  }
  const bool has_lines = family != nullptr;
  if (family == nullptr && newest != nullptr) {
    family = FindFamily(*newest->layout, query.family);
  }
  if (family == nullptr) {
    return result;
  }
  result.known = true;
  result.type = family->type;
  result.as = query.as.value_or(DefaultFor(family->type));
  result.problem = WhyNot(result.as, family->type);
  const int64_t end_ms = query.end_ms.value_or(entries.empty() ? query.start_ms.value_or(0) : entries.back().unix_ms);
  result.start_ms = query.start_ms.value_or(entries.empty() ? end_ms : entries.front().unix_ms);
  const int64_t span = end_ms - result.start_ms;
  result.step_ms = query.step_ms.value_or(std::max<int64_t>({span / 240, Between(entries), 1}));
  if (span < 0) {
    result.problem = "the end is before the start";
  } else if (span / result.step_ms >= static_cast<int64_t>(kMostPoints)) {
    result.problem = "more than " + std::to_string(kMostPoints) + " points: a longer step, or a shorter span";
  }
  if (!result.problem.empty()) {
    return result;
  }
  // The last point is the end itself, which the start follows.
  result.points = static_cast<size_t>(span / result.step_ms) + 1;
  result.start_ms = end_ms - static_cast<int64_t>(result.points - 1) * result.step_ms;
  if (has_lines) {
    Evaluation(query, entries, *family, result).Run();
  }
  return result;
}

}  // namespace persia::agent

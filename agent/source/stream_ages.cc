#include "source/stream_ages.h"

#include <bit>
#include <unordered_map>

#include "source/stream_totals.h"

namespace persia::agent {
namespace {

std::string Key(const FamilyLayout& family, const Layout& layout, const SeriesLayout& series) {
  std::string key = family.name;
  const auto append = [&key](const auto& labels) {
    for (const auto& [name, value] : labels) {
      key.append(1, '\0').append(name).append(1, '\0').append(value);
    }
    key += '\0';
  };
  append(layout.identities[series.identity].labels);
  append(series.labels);
  return key;
}

}  // namespace

void StreamAges::TakePlan(const MergePlan& plan) {
  watched_.clear();
  for (auto& [key, age] : ages_) {
    age.planned = false;
  }
  for (size_t f = 0; f < plan.families.size(); ++f) {
    const PlannedFamily& family = plan.families[f];
    if (!family.ttl || family.ttl->count() == 0) {
      continue;
    }
    std::unordered_map<size_t, const SeriesLayout*> by_value;
    for (const SeriesLayout& series : plan.layout->families[f].series) {
      by_value.emplace(series.first_value, &series);
    }
    for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
      Age& age = ages_[Key(plan.layout->families[f], *plan.layout, *by_value.at(plan.first_value[i]))];
      age.planned = true;
      watched_.push_back({i, *family.ttl, family.fill == Fill::kGauge, &age});
    }
  }
  std::erase_if(ages_, [](const auto& entry) { return !entry.second.planned; });
}

void StreamAges::HideOld(const MergePlan& plan, std::span<const MergeInput> inputs, std::chrono::steady_clock::time_point now,
                         std::vector<double>& values) {
  for (const Watched& watched : watched_) {
    uint64_t count = 0;
    uint64_t last = 0;
    bool streams_alone = true;  // a gauge of the program may share the name; it has no count to look at
    for (const Part& part : plan.PartsOf(watched.series)) {
      const SegmentValues& from = *inputs[part.segment].values;
      streams_alone = streams_alone && part.real != kNoPlace;
      if (!streams_alone) {
        break;
      }
      StreamTotals totals;
      totals.Add(from.wholes.data() + (watched.gauge ? part.real : part.cell));
      count += totals.Count();
      if (watched.gauge) {
        last = std::rotl(last, 1) ^ from.commons[part.cell];  // a NaN is counted nowhere
      }
    }
    if (!streams_alone) {
      continue;
    }
    Age& age = *watched.age;
    if (!age.seen || age.count != count || age.last != last) {
      age = {.count = count, .last = last, .since = now, .seen = true, .planned = true};
    } else if (now - age.since >= watched.ttl) {
      values[plan.first_value[watched.series]] = kAbsentValue;
    }
  }
}

}  // namespace persia::agent

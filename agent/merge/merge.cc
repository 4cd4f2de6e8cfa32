#include "merge/merge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "merge/stream_totals.h"

namespace persia::agent {
namespace {

constexpr size_t kNamedDrops = static_cast<size_t>(persia::metrics::segment::Drop::kCount);

bool SameLayout(const Layout& a, const Layout& b) {
  const auto same_series = [](const SeriesLayout& x, const SeriesLayout& y) {
    return x.identity == y.identity && x.first_value == y.first_value && x.labels == y.labels && x.created_ms == y.created_ms;
  };
  const auto same_family = [&](const FamilyLayout& x, const FamilyLayout& y) {
    return x.name == y.name && x.type == y.type && x.help == y.help && x.unit == y.unit && x.bounds == y.bounds &&
           x.native == y.native && x.group == y.group &&
           std::equal(x.series.begin(), x.series.end(), y.series.begin(), y.series.end(), same_series);
  };
  return a.value_count == b.value_count && a.identities == b.identities &&
         std::equal(a.families.begin(), a.families.end(), b.families.begin(), b.families.end(), same_family);
}

}  // namespace

Merger::Merger(IdentityRules rules, const Naming& naming, Diagnostics& diagnostics, SeriesLimits limits)
    : rules_(std::move(rules)), naming_(&naming), diagnostics_(diagnostics), limits_(limits) {}

void Merger::SetNaming(const Naming& naming) {
  naming_ = &naming;
  plan_.layout = nullptr;
}

void Merger::SetLimits(const SeriesLimits& limits) {
  if (limits != limits_) {
    limits_ = limits;
    plan_.layout = nullptr;
  }
}

void Merger::SetIdentityRules(const IdentityRules& rules) {
  if (rules != rules_) {
    rules_ = rules;
    plan_.layout = nullptr;
  }
}

std::shared_ptr<const Snapshot> Merger::Merge(std::span<const Measurements> segments, const OwnSnapshots& own,
                                              std::chrono::system_clock::time_point now,
                                              std::chrono::steady_clock::time_point steady) {
  Prepare(segments, own);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = plan_.layout;
  snapshot->collected_at = now;
  snapshot->values.resize(plan_.layout->value_count);
  size_t own_value = 0;
  for (const auto& source : own) {
    std::copy(source->values.begin(), source->values.end(), snapshot->values.begin() + static_cast<ptrdiff_t>(own_value));
    own_value += source->values.size();
  }
  for (const PlannedFamily& family : plan_.families) {
    double* values = snapshot->values.data();
    switch (family.fill) {
      case Fill::kCounter:
        FillCounters(family, values);
        break;
      case Fill::kDistribution:
        FillDistributions(family, values);
        break;
      case Fill::kGauge:
        FillGauges(family, values);
        break;
      case Fill::kTimestamp:
        FillTimestamps(family, values);
        break;
      case Fill::kStreamSum:
      case Fill::kStreamHistogram:
      case Fill::kStreamSummary:
        FillStreams(family, values);
        break;
      case Fill::kDropped:
        FillDropped(family, values);
        break;
    }
  }
  stream_ages_.HideExpired(plan_, inputs_, steady, snapshot->values);
  for (const ScaledValue& scaled : plan_.scaled) {
    double& value = snapshot->values[scaled.value];
    if (!IsAbsent(value)) value = WithNormalNan(scaled.scale.Apply(value));
  }
  return snapshot;
}

bool Merger::Prepare(std::span<const Measurements> segments, const OwnSnapshots& own) {
  inputs_ = segments;
  std::vector<SegmentVersion> segment_versions;
  for (const Measurements& segment : segments)
    segment_versions.push_back({std::string(segment.id), segment.generation, segment.ordinal});
  std::vector<std::shared_ptr<const Layout>> own_layouts;
  for (const auto& source : own) own_layouts.push_back(source->layout);
  if (plan_.layout != nullptr && segment_versions == segment_versions_ && own_layouts == own_layouts_) return false;
  plan_ = BuildExposurePlan(segments, own_layouts, rules_, *naming_, limits_, diagnostics_);
  segment_versions_ = std::move(segment_versions);
  own_layouts_ = std::move(own_layouts);
  stream_ages_.SetPlan(plan_);
  if (layout_ != nullptr && SameLayout(*layout_, *plan_.layout))
    plan_.layout = layout_;  // the same series, from other processes: caches of the layout's users stay valid
  layout_ = plan_.layout;
  return true;
}

double Merger::Total(uint64_t whole) { return ExactTotal(whole, terms_, sum_); }

void Merger::FillCounters(const PlannedFamily& family, double* values) {
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
    uint64_t whole = 0;
    terms_.clear();
    for (const Part& part : plan_.PartsOf(i)) {
      const SegmentValues& from = *inputs_[part.segment].values;
      whole += from.wholes[part.cell];
      if (part.real != kNoIndex) from.AppendTerms(part.real, terms_);
    }
    values[plan_.first_value[i]] = WithNormalNan(Total(whole));
  }
}

void Merger::FillDistributions(const PlannedFamily& family, double* values) {
  const size_t buckets = family.values_per_series - 1;
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
    counts_.assign(buckets, 0);
    terms_.clear();
    for (const Part& part : plan_.PartsOf(i)) {
      const SegmentValues& from = *inputs_[part.segment].values;
      const uint64_t* cells = from.wholes.data() + part.cell;
      for (size_t bucket = 0; bucket < buckets; ++bucket) counts_[bucket] += cells[bucket];
      from.AppendTerms(part.real, terms_);
    }
    double* out = values + plan_.first_value[i];
    out[0] = WithNormalNan(Total(0));
    std::copy(counts_.begin(), counts_.end(), out + 1);
  }
}

void Merger::FillGauges(const PlannedFamily& family, double* values) {
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i)
    values[plan_.first_value[i]] = MergeGauge(family.policy, plan_.PartsOf(i));
}

// Ignores processes that never set the gauge, and ended ones if a living one has set it. A sum or average with a NaN is NaN; a
// minimum or maximum ignores NaNs, unless all values are NaN. No order of the calls of Set is known (see GaugeMerge): the last
// value is the one that changed in the newest collection, of the youngest process among several.
double Merger::MergeGauge(GaugePolicy policy, std::span<const Part> parts) {
  const auto ended_values = [&](const Part& part) -> std::span<const EndedValue> {
    const auto& of_gauges = inputs_[part.segment].ended_values;
    return of_gauges.empty() ? std::span<const EndedValue>() : of_gauges[part.cell];
  };
  if (parts.size() == 1 && ended_values(parts[0]).size() <= 1) {  // every policy gives this value
    const uint64_t bits = inputs_[parts[0].segment].values->commons[parts[0].cell];
    return bits == persia::metrics::segment::kUnset ? kAbsentValue : WithNormalNan(std::bit_cast<double>(bits));
  }
  const auto set = [&](const Part& part) {
    return inputs_[part.segment].values->commons[part.cell] != persia::metrics::segment::kUnset;
  };
  const bool living =
      std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return !inputs_[part.segment].ended && set(part); });
  terms_.clear();
  const Measurements* last = nullptr;
  double last_value = 0;
  uint64_t last_change = 0;
  double least = std::numeric_limits<double>::quiet_NaN();
  double most = least;
  uint64_t processes = 0;
  const auto add = [&](double value, uint32_t of_processes) {
    terms_.push_back(policy == GaugePolicy::kAvg ? value * of_processes : value);
    processes += of_processes;
    least = std::fmin(least, value);
    most = std::fmax(most, value);
  };
  for (const Part& part : parts) {
    const Measurements& from = inputs_[part.segment];
    if ((living && from.ended) || !set(part)) continue;
    const auto value = std::bit_cast<double>(from.values->commons[part.cell]);
    if (ended_values(part).empty()) add(value, 1);
    for (const EndedValue& ended : ended_values(part)) add(ended.value, ended.processes);
    const uint64_t change = from.changed_at[part.cell];
    if (last == nullptr || change > last_change || (change == last_change && Newer(from, *last))) {
      last = &from;
      last_value = value;
      last_change = change;
    }
  }
  if (last == nullptr) return kAbsentValue;
  switch (policy) {
    case GaugePolicy::kLast:
    case GaugePolicy::kEach:
      return WithNormalNan(last_value);
    case GaugePolicy::kSum:
      return WithNormalNan(Total(0));
    case GaugePolicy::kMin:
      return WithNormalNan(least);
    case GaugePolicy::kMax:
      return WithNormalNan(most);
    case GaugePolicy::kAvg:
      return WithNormalNan(Total(0) / static_cast<double>(processes));
  }
  return kAbsentValue;
}

bool Merger::Newer(const Measurements& a, const Measurements& b) {
  return a.birth_unix_ns != b.birth_unix_ns ? a.birth_unix_ns > b.birth_unix_ns : a.id > b.id;
}

void Merger::FillTimestamps(const PlannedFamily& family, double* values) {
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
    uint64_t latest = 0;
    for (const Part& part : plan_.PartsOf(i)) latest = std::max(latest, inputs_[part.segment].values->commons[part.cell]);
    values[plan_.first_value[i]] = latest == 0 ? kAbsentValue : static_cast<double>(latest) / 1000;
  }
}

void Merger::FillStreams(const PlannedFamily& family, double* values) {
  const bool histogram = family.fill == Fill::kStreamHistogram;
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
    StreamTotals totals;
    terms_.clear();
    for (const Part& part : plan_.PartsOf(i)) {
      const SegmentValues& from = *inputs_[part.segment].values;
      totals.Add(from.wholes.data() + part.cell);
      from.AppendTerms(part.real, terms_);
    }
    double* out = values + plan_.first_value[i];
    if (family.fill == Fill::kStreamSum) {
      out[0] = WithNormalNan(Total(0));
      continue;
    }
    negative_terms_.clear();
    for (const Part& part : plan_.PartsOf(i)) inputs_[part.segment].values->AppendTerms(part.real + 1, negative_terms_);
    std::swap(terms_, negative_terms_);
    const double negative_sum = Total(0);
    terms_.insert(terms_.end(), negative_terms_.begin(), negative_terms_.end());
    out[0] = WithNormalNan(Total(0));
    if (histogram) {
      family.native ? CountNative(totals, out + 1) : CountBetween(totals, family.cuts, out + 1);
      continue;
    }
    out[1] = static_cast<double>(totals.Count());
    const std::span<const double> quantiles = plan_.QuantilesOf(family);
    for (size_t q = 0; q < quantiles.size(); ++q)
      out[2 + q] = WithNormalNan(StreamQuantile(totals, quantiles[q], negative_sum));
  }
}

void Merger::FillDropped(const PlannedFamily& family, double* values) {
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
    uint64_t count = 0;
    for (const Part& part : plan_.PartsOf(i)) {
      const auto& dropped = inputs_[part.segment].values->dropped;
      if (part.cell < kNamedDrops)
        count += dropped[part.cell];
      else
        for (size_t reason = kNamedDrops; reason < std::size(dropped); ++reason) count += dropped[reason];
    }
    values[plan_.first_value[i]] = static_cast<double>(count);
  }
}

}  // namespace persia::agent

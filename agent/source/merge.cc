#include "source/merge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "source/stream_totals.h"

namespace persia::agent {
namespace {

constexpr uint64_t kOrdinaryNaN = 0x7ff8'0000'0000'0001;
constexpr size_t kNamedDrops = static_cast<size_t>(persia::metrics::segment::Drop::kCount);

// What a worker puts into a gauge must pass neither for kAbsent nor for a stale marker, which are NaNs of certain bits.
double Plain(double value) { return std::isnan(value) ? std::bit_cast<double>(kOrdinaryNaN) : value; }

bool SameLayout(const Layout& a, const Layout& b) {
  const auto same_series = [](const SeriesLayout& x, const SeriesLayout& y) {
    return x.identity == y.identity && x.first_value == y.first_value && x.labels == y.labels;
  };
  const auto same_family = [&](const FamilyLayout& x, const FamilyLayout& y) {
    return x.name == y.name && x.type == y.type && x.help == y.help && x.unit == y.unit && x.bounds == y.bounds &&
           std::equal(x.series.begin(), x.series.end(), y.series.begin(), y.series.end(), same_series);
  };
  return a.value_count == b.value_count && a.identities == b.identities &&
         std::equal(a.families.begin(), a.families.end(), b.families.begin(), b.families.end(), same_family);
}

}  // namespace

Merger::Merger(MergeIdentity identity, const Naming& naming, Diagnostics& diagnostics, SeriesLimits limits)
    : identity_(std::move(identity)), naming_(&naming), diagnostics_(diagnostics), limits_(limits) {}

void Merger::SetNaming(const Naming& naming) {
  naming_ = &naming;
  plan_.layout = nullptr;  // the next Merge plans anew
}

void Merger::SetLimits(const SeriesLimits& limits) {
  if (limits != limits_) {
    limits_ = limits;
    plan_.layout = nullptr;  // the next Merge plans anew
  }
}

std::shared_ptr<const Snapshot> Merger::Merge(std::span<const MergeInput> segments, std::chrono::system_clock::time_point now,
                                              std::chrono::steady_clock::time_point steady) {
  Prepare(segments);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = plan_.layout;
  snapshot->collected_at = now;
  snapshot->values.resize(plan_.layout->value_count);
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
  stream_ages_.HideOld(plan_, inputs_, steady, snapshot->values);
  for (const ScaledValue& scaled : plan_.scaled) {
    double& value = snapshot->values[scaled.value];
    if (!IsAbsent(value)) {
      value = Plain(scaled.scale.Apply(value));
    }
  }
  return snapshot;
}

void Merger::Prepare(std::span<const MergeInput> segments) {
  inputs_ = segments;
  std::vector<Basis> basis;
  for (const MergeInput& segment : segments) {
    basis.push_back({std::string(segment.id), segment.generation, segment.ordinal});
  }
  if (plan_.layout != nullptr && basis == basis_) {
    return;
  }
  std::shared_ptr<const Layout> former = std::move(plan_.layout);
  plan_ = BuildMergePlan(segments, identity_, *naming_, limits_, diagnostics_);
  basis_ = std::move(basis);
  stream_ages_.TakePlan(plan_);
  if (former != nullptr && SameLayout(*former, *plan_.layout)) {
    plan_.layout = std::move(former);  // another process of the same series: who renders keeps what it made of the layout
  }
}

double Merger::Total(uint64_t whole) { return ExactTotal(whole, terms_, sum_); }

void Merger::FillCounters(const PlannedFamily& family, double* values) {
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
    uint64_t whole = 0;
    terms_.clear();
    for (const Part& part : plan_.PartsOf(i)) {
      const SegmentValues& from = *inputs_[part.segment].values;
      whole += from.wholes[part.cell];
      if (part.real != kNoPlace) {
        from.AppendTerms(part.real, terms_);
      }
    }
    values[plan_.first_value[i]] = Plain(Total(whole));
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
      for (size_t bucket = 0; bucket < buckets; ++bucket) {
        counts_[bucket] += cells[bucket];
      }
      from.AppendTerms(part.real, terms_);
    }
    double* out = values + plan_.first_value[i];
    out[0] = Plain(Total(0));
    std::copy(counts_.begin(), counts_.end(), out + 1);
  }
}

void Merger::FillGauges(const PlannedFamily& family, double* values) {
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
    values[plan_.first_value[i]] = MergeGauge(family.policy, plan_.PartsOf(i));
  }
}

// A process that never set the gauge takes no part, nor does one that has ended where a living one has set it. A NaN decides a
// sum and an average; of `min` and `max` it is left out, unless there is nothing else.
double Merger::MergeGauge(GaugePolicy policy, std::span<const Part> parts) {
  if (parts.size() == 1) {  // of one process alone each policy is its value
    const uint64_t bits = inputs_[parts[0].segment].values->commons[parts[0].cell];
    return bits == persia::metrics::segment::kUnset ? kAbsentValue : Plain(std::bit_cast<double>(bits));
  }
  const auto set = [&](const Part& part) {
    return inputs_[part.segment].values->commons[part.cell] != persia::metrics::segment::kUnset;
  };
  const bool living =
      std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return !inputs_[part.segment].ended && set(part); });
  terms_.clear();
  const MergeInput* last = nullptr;
  double last_value = 0;
  uint64_t last_change = 0;
  double least = std::numeric_limits<double>::quiet_NaN();
  double most = least;
  for (const Part& part : parts) {
    const MergeInput& from = inputs_[part.segment];
    if ((living && from.ended) || !set(part)) {
      continue;
    }
    const auto value = std::bit_cast<double>(from.values->commons[part.cell]);
    terms_.push_back(value);
    least = std::fmin(least, value);
    most = std::fmax(most, value);
    const uint64_t change = from.changed_at[part.cell];
    if (last == nullptr || change > last_change || (change == last_change && Newer(from, *last))) {
      last = &from;
      last_value = value;
      last_change = change;
    }
  }
  if (last == nullptr) {
    return kAbsentValue;
  }
  switch (policy) {
    case GaugePolicy::kLast:
    case GaugePolicy::kEach:
      return Plain(last_value);
    case GaugePolicy::kSum:
      return Plain(Total(0));
    case GaugePolicy::kMin:
      return Plain(least);
    case GaugePolicy::kMax:
      return Plain(most);
    case GaugePolicy::kAvg:
      return Plain(Total(0) / static_cast<double>(terms_.size()));
  }
  return kAbsentValue;
}

bool Merger::Newer(const MergeInput& a, const MergeInput& b) {
  return a.birth_unix_ns != b.birth_unix_ns ? a.birth_unix_ns > b.birth_unix_ns : a.id > b.id;
}

void Merger::FillTimestamps(const PlannedFamily& family, double* values) {
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
    uint64_t latest = 0;
    for (const Part& part : plan_.PartsOf(i)) {
      latest = std::max(latest, inputs_[part.segment].values->commons[part.cell]);
    }
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
      out[0] = Plain(Total(0));
      continue;
    }
    negative_terms_.clear();
    for (const Part& part : plan_.PartsOf(i)) {
      inputs_[part.segment].values->AppendTerms(part.real + 1, negative_terms_);
    }
    std::swap(terms_, negative_terms_);
    const double negative_sum = Total(0);
    terms_.insert(terms_.end(), negative_terms_.begin(), negative_terms_.end());
    out[0] = Plain(Total(0));
    if (histogram) {
      CountBetween(totals, family.cuts, out + 1);
      continue;
    }
    out[1] = static_cast<double>(totals.Count());
    const std::span<const double> quantiles = plan_.QuantilesOf(family);
    for (size_t q = 0; q < quantiles.size(); ++q) {
      out[2 + q] = Plain(StreamQuantile(totals, quantiles[q], negative_sum));
    }
  }
}

void Merger::FillDropped(const PlannedFamily& family, double* values) {
  for (size_t i = family.first_series; i < family.first_series + family.series; ++i) {
    uint64_t count = 0;
    for (const Part& part : plan_.PartsOf(i)) {
      const auto& dropped = inputs_[part.segment].values->dropped;
      if (part.cell < kNamedDrops) {
        count += dropped[part.cell];
      } else {
        for (size_t reason = kNamedDrops; reason < std::size(dropped); ++reason) {
          count += dropped[reason];
        }
      }
    }
    values[plan_.first_value[i]] = static_cast<double>(count);
  }
}

}  // namespace persia::agent

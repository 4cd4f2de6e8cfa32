#include "ledger/retired_group.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "files/bytes.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;
using segment::kUnset;

// Families of two processes with the same key are one family: their values can be added.
std::string FamilyKey(const SegmentFamily& family) {
  ByteWriter key;
  key.U8(static_cast<uint8_t>(family.kind));
  key.U8(static_cast<uint8_t>(family.policy));
  key.String(family.group);
  key.String(family.name);
  for (const double bound : family.bounds) key.F64(bound);
  return std::move(key).Take();
}

// Whether the values of ended processes are combined; for other policies the newest is exposed.
bool Combines(GaugePolicy policy) { return policy != GaugePolicy::kLast && policy != GaugePolicy::kEach; }

EndedValue Combined(GaugePolicy policy, const EndedValue& a, const EndedValue& b) {
  EndedValue both{
      .processes = a.processes + b.processes, .expires = std::min(a.expires, b.expires), .ended = std::min(a.ended, b.ended)};
  switch (policy) {
    case GaugePolicy::kSum:
      both.value = a.value + b.value;
      break;
    case GaugePolicy::kMin:
      both.value = std::fmin(a.value, b.value);
      break;
    case GaugePolicy::kMax:
      both.value = std::fmax(a.value, b.value);
      break;
    case GaugePolicy::kAvg:
      both.value = (a.value * a.processes + b.value * b.processes) / both.processes;
      break;
    case GaugePolicy::kLast:
    case GaugePolicy::kEach:
      both.value = b.value;
      break;
  }
  return both;
}

std::string SeriesKey(uint32_t family, uint32_t ordinal, std::string_view labels) {
  ByteWriter key;
  key.U32(family);
  key.U32(ordinal);
  key.String(labels);
  return std::move(key).Take();
}

}  // namespace

RetiredGroup::RetiredGroup(SegmentIdentity identity, size_t number)
    : identity_(std::move(identity)), id_("retired " + std::to_string(number)) {}

// The copies: of labels, six remain after a scrape, as measured; nine leave room for those that live while a new layout is
// made.
uint64_t RetiredGroup::bytes() const {
  constexpr uint64_t kTextCopies = 9;
  constexpr uint64_t kCellCopies = 3;
  uint64_t texts = sizeof *this + family_bytes_ + own_.labels.size();
  for (const auto& [name, value] : identity_.labels) texts += name.size() + value.size();
  return kTextCopies * texts + kCellCopies * sizeof(uint64_t) * own_.values.wholes.size();
}

Measurements RetiredGroup::Input() const {
  Measurements input = own_.View();
  input.id = id_;
  input.generation = generation_;
  input.identity = &identity_;
  input.birth_unix_ns = birth_unix_ns_;
  input.family_ages = ages_;
  input.ordinals = ordinals_;
  input.ended_values = ended_values_;
  return input;
}

void RetiredGroup::UpdateIdentity(const SegmentIdentity& identity, uint64_t birth_unix_ns) {
  if (birth_unix_ns >= birth_unix_ns_) {
    identity_ = identity;
    birth_unix_ns_ = birth_unix_ns;
  }
}

bool RetiredGroup::HasFamily(const SegmentFamily& family) const { return family_numbers_.contains(FamilyKey(family)); }

uint32_t RetiredGroup::FindOrAddFamily(const SegmentFamily& family, FamilyAge age) {
  const auto [found, added] = family_numbers_.try_emplace(FamilyKey(family), static_cast<uint32_t>(own_.families.size()));
  if (added) {
    own_.families.push_back(family);
    family_bytes_ += found->first.size() + family.help.size() + family.unit.size();
    ages_.push_back(std::move(age));
    ++generation_;
  } else if (ages_[found->second] < age) {
    SegmentFamily& known = own_.families[found->second];
    if (known.help != family.help || known.unit != family.unit || known.max_buckets != family.max_buckets) {
      family_bytes_ += family.help.size() + family.unit.size();
      known = family;
    }
    // Even if the definition is equal: one of another group may have been the newest until now.
    ages_[found->second] = std::move(age);
    ++generation_;
  }
  return found->second;
}

size_t RetiredGroup::FindOrAddSeries(uint32_t family, uint32_t ordinal, std::string_view labels, uint32_t label_count,
                                     uint64_t birth_unix_ns, bool may_add) {
  std::string key = SeriesKey(family, ordinal, labels);
  const auto found = series_numbers_.find(key);
  if (found != series_numbers_.end()) {
    if (birth_unix_ns < own_.births[found->second]) {
      own_.births[found->second] = birth_unix_ns;
      ++generation_;
    }
    return found->second;
  }
  if (!may_add) return SIZE_MAX;
  own_.Add(family, labels, label_count, birth_unix_ns);
  if (own_.series.back().common != kNoIndex) {
    ended_values_.emplace_back();
    gauge_ages_.emplace_back();
  }
  ordinals_.push_back(ordinal);
  series_numbers_.emplace(std::move(key), own_.series.size() - 1);
  ++generation_;
  return own_.series.size() - 1;
}

void RetiredGroup::SetSum(size_t series, uint32_t which, std::span<const double> terms) {
  own_.values.SetTerms(own_.series[series].real + which, terms);
  own_.values.CompactTerms();
}

std::string_view RetiredGroup::LabelsOf(size_t series) const { return LabelBytes(own_.labels, own_.series[series].record); }

void RetiredGroup::AddGaugeValue(size_t series, const EndedValue& value, const GaugeAge& age) {
  const uint32_t common = own_.series[series].common;
  const GaugePolicy policy = own_.families[own_.series[series].record.family].policy;
  std::vector<EndedValue>& values = ended_values_[common];
  if (!Combines(policy)) {
    if (!values.empty() && age < gauge_ages_[common]) return;
    values.clear();
  }
  values.push_back(value);
  const size_t limit = std::clamp<size_t>(kMaxValuesOfGroup / ended_values_.size(), 1, kMaxValuesOfGauge);
  if (values.size() > limit) {
    const auto end = values.begin() + static_cast<ptrdiff_t>(values.size() - limit) + 1;
    for (auto older = values.begin() + 1; older != end; ++older) values.front() = Combined(policy, values.front(), *older);
    values.erase(values.begin() + 1, end);
  }
  own_.values.commons[common] = std::bit_cast<uint64_t>(values.back().value);
  own_.changed_at[common] = age.changed_tick;
  gauge_ages_[common] = age;
  next_expiry_ = std::min(next_expiry_, value.expires);
}

void RetiredGroup::SetRemoved(size_t series, bool removed) {
  bool& known = own_.series[series].record.removed;
  generation_ += known == removed ? 0 : 1;
  known = removed;
}

void RetiredGroup::ExpireGauges(std::chrono::steady_clock::time_point now) {
  if (now < next_expiry_) return;
  next_expiry_ = std::chrono::steady_clock::time_point::max();
  size_t unset = 0;
  for (const SegmentSeries& series : own_.series) {
    const Kind kind = own_.families[series.record.family].kind;
    if (!HasGauge(kind)) continue;
    std::vector<EndedValue>& values = ended_values_[series.common];
    std::erase_if(values, [&](const EndedValue& value) { return value.expires <= now; });
    for (const EndedValue& value : values) next_expiry_ = std::min(next_expiry_, value.expires);
    own_.values.commons[series.common] = values.empty() ? kUnset : std::bit_cast<uint64_t>(values.back().value);
    unset += values.empty() && kind == Kind::kGauge ? 1 : 0;  // a stream keeps its counts
  }
  if (2 * unset > own_.series.size()) DropUnsetGauges();
}

// Otherwise they would count against the limits on series, and their families take memory, to the end of the run.
void RetiredGroup::DropUnsetGauges() {
  const OwnedSeries all = std::exchange(own_, {});
  const std::vector<FamilyAge> ages = std::exchange(ages_, {});
  const std::vector<uint32_t> ordinals = std::exchange(ordinals_, {});
  std::vector<std::vector<EndedValue>> ended_values = std::exchange(ended_values_, {});
  const std::vector<GaugeAge> gauge_ages = std::exchange(gauge_ages_, {});
  series_numbers_.clear();
  family_numbers_.clear();
  family_bytes_ = 0;
  std::copy(std::begin(all.values.dropped), std::end(all.values.dropped), std::begin(own_.values.dropped));
  std::vector<double> terms;
  for (size_t i = 0; i < all.series.size(); ++i) {
    const SegmentSeries& from = all.series[i];
    const SegmentFamily& family = all.families[from.record.family];
    const bool gauge = family.kind == Kind::kGauge;
    if (gauge && all.values.commons[from.common] == kUnset) continue;
    const size_t to = FindOrAddSeries(FindOrAddFamily(family, ages[from.record.family]), ordinals[i],
                                      LabelBytes(all.labels, from.record), from.record.labels, all.births[i], true);
    own_.series[to].record.removed = from.record.removed;
    if (from.common != kNoIndex) {
      Common(to) = all.values.commons[from.common];
      own_.changed_at[own_.series[to].common] = all.changed_at[from.common];
      ended_values_[own_.series[to].common] = std::move(ended_values[from.common]);
      gauge_ages_[own_.series[to].common] = gauge_ages[from.common];
    }
    if (!gauge) {
      std::copy_n(all.values.wholes.begin() + from.whole, from.record.cells, Cells(to));
      for (uint32_t which = 0; which < SumCount(family.kind); ++which) {
        terms.clear();
        all.values.AppendTerms(from.real + which, terms);
        SetSum(to, which, terms);
      }
    }
  }
  ++generation_;
}

}  // namespace persia::agent

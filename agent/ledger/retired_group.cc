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
  for (const double bound : family.bounds) {
    key.F64(bound);
  }
  return std::move(key).Take();
}

// Whether the values of ended processes are combined; of other policies the newest is exposed.
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

std::string_view LabelBytes(std::span<const std::byte> records, const SegmentSeriesRecord& record) {
  size_t end = record.labels_at;
  for (uint32_t i = 0; i < 2 * record.labels; ++i) {
    CheckedString(records, end);
  }
  return {reinterpret_cast<const char*>(records.data()) + record.labels_at, end - record.labels_at};
}

bool IsWholeCell(Kind kind, uint32_t cell) {
  switch (kind) {
    case Kind::kCounter:
      return cell == 0;
    case Kind::kHistogram:
      return cell >= 1;
    case Kind::kEvent:
      return cell == 1 || cell >= 3;
    case Kind::kStream:
      return cell >= segment::kStreamNegatives;
    case Kind::kGauge:
      break;
  }
  return false;
}

uint32_t SumCount(Kind kind) { return kind == Kind::kGauge ? 0 : kind == Kind::kStream ? 2 : 1; }

bool HasGauge(Kind kind) { return kind == Kind::kGauge || kind == Kind::kStream; }

RetiredGroup::RetiredGroup(SegmentIdentity identity, size_t number)
    : identity_(std::move(identity)), id_("retired " + std::to_string(number)) {}

Measurements RetiredGroup::Input() const {
  return {.id = id_,
          .generation = generation_,
          .identity = &identity_,
          .birth_unix_ns = birth_unix_ns_,
          .families = families_,
          .series = series_,
          .records = labels_,
          .values = &values_,
          .changed_at = changed_at_,
          .ended = true,
          .family_ages = ages_,
          .ordinals = ordinals_,
          .births = births_,
          .ended_values = ended_values_};
}

void RetiredGroup::UpdateIdentity(const SegmentIdentity& identity, uint64_t birth_unix_ns) {
  if (birth_unix_ns >= birth_unix_ns_) {
    identity_ = identity;
    birth_unix_ns_ = birth_unix_ns;
  }
}

bool RetiredGroup::HasFamily(const SegmentFamily& family) const { return family_numbers_.contains(FamilyKey(family)); }

uint32_t RetiredGroup::FindOrAddFamily(const SegmentFamily& family, FamilyAge age) {
  const auto [found, added] = family_numbers_.try_emplace(FamilyKey(family), static_cast<uint32_t>(families_.size()));
  if (added) {
    families_.push_back(family);
    ages_.push_back(std::move(age));
    ++generation_;
  } else if (ages_[found->second] < age) {
    SegmentFamily& known = families_[found->second];
    if (known.help != family.help || known.unit != family.unit) {
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
    if (birth_unix_ns < births_[found->second]) {
      births_[found->second] = birth_unix_ns;
      ++generation_;
    }
    return found->second;
  }
  if (!may_add) return SIZE_MAX;
  const Kind kind = families_[family].kind;
  SegmentSeries series;
  series.record.family = family;
  series.record.cells = segment::CellsOf(kind, static_cast<uint32_t>(families_[family].bounds.size()));
  series.record.labels = label_count;
  series.record.labels_at = labels_.size();
  const auto* bytes = reinterpret_cast<const std::byte*>(labels.data());
  labels_.insert(labels_.end(), bytes, bytes + labels.size());
  if (kind != Kind::kGauge) {
    series.whole = static_cast<uint32_t>(values_.wholes.size());
    values_.wholes.resize(values_.wholes.size() + series.record.cells);
    series.real = static_cast<uint32_t>(values_.reals.size());
    values_.reals.resize(values_.reals.size() + SumCount(kind));
  }
  if (HasGauge(kind) || kind == Kind::kEvent) {
    series.common = static_cast<uint32_t>(values_.commons.size());
    values_.commons.push_back(HasGauge(kind) ? kUnset : 0);
    changed_at_.push_back(0);
    ended_values_.emplace_back();
    gauge_ages_.emplace_back();
  }
  series_.push_back(series);
  ordinals_.push_back(ordinal);
  births_.push_back(birth_unix_ns);
  series_numbers_.emplace(std::move(key), series_.size() - 1);
  ++generation_;
  return series_.size() - 1;
}

void RetiredGroup::SetSum(size_t series, uint32_t which, std::span<const double> terms) {
  values_.SetTerms(series_[series].real + which, terms);
  values_.CompactTerms();
}

std::string_view RetiredGroup::LabelsOf(size_t series) const { return LabelBytes(labels_, series_[series].record); }

void RetiredGroup::AddGaugeValue(size_t series, const EndedValue& value, const GaugeAge& age) {
  const uint32_t common = series_[series].common;
  const GaugePolicy policy = families_[series_[series].record.family].policy;
  std::vector<EndedValue>& values = ended_values_[common];
  if (!Combines(policy)) {
    if (!values.empty() && age < gauge_ages_[common]) return;
    values.clear();
  }
  values.push_back(value);
  const size_t limit = std::clamp<size_t>(kMaxValuesOfGroup / ended_values_.size(), 1, kMaxValuesOfGauge);
  if (values.size() > limit) {
    const auto end = values.begin() + static_cast<ptrdiff_t>(values.size() - limit) + 1;
    for (auto older = values.begin() + 1; older != end; ++older) {
      values.front() = Combined(policy, values.front(), *older);
    }
    values.erase(values.begin() + 1, end);
  }
  values_.commons[common] = std::bit_cast<uint64_t>(values.back().value);
  changed_at_[common] = age.changed_tick;
  gauge_ages_[common] = age;
  next_expiry_ = std::min(next_expiry_, value.expires);
}

void RetiredGroup::ExpireGauges(std::chrono::steady_clock::time_point now) {
  if (now < next_expiry_) return;
  next_expiry_ = std::chrono::steady_clock::time_point::max();
  size_t unset = 0;
  for (const SegmentSeries& series : series_) {
    const Kind kind = families_[series.record.family].kind;
    if (!HasGauge(kind)) continue;
    std::vector<EndedValue>& values = ended_values_[series.common];
    std::erase_if(values, [&](const EndedValue& value) { return value.expires <= now; });
    for (const EndedValue& value : values) {
      next_expiry_ = std::min(next_expiry_, value.expires);
    }
    values_.commons[series.common] = values.empty() ? kUnset : std::bit_cast<uint64_t>(values.back().value);
    unset += values.empty() && kind == Kind::kGauge ? 1 : 0;  // a stream keeps its counts
  }
  if (2 * unset > series_.size()) {
    DropUnsetGauges();
  }
}

// Otherwise they would count against the limits on series, and their families take memory, to the end of the run.
void RetiredGroup::DropUnsetGauges() {
  const std::vector<SegmentFamily> families = std::exchange(families_, {});
  const std::vector<FamilyAge> ages = std::exchange(ages_, {});
  const std::vector<SegmentSeries> series = std::exchange(series_, {});
  const std::vector<uint32_t> ordinals = std::exchange(ordinals_, {});
  const std::vector<uint64_t> births = std::exchange(births_, {});
  const std::vector<std::byte> labels = std::exchange(labels_, {});
  const std::vector<uint64_t> changed_at = std::exchange(changed_at_, {});
  std::vector<std::vector<EndedValue>> ended_values = std::exchange(ended_values_, {});
  const std::vector<GaugeAge> gauge_ages = std::exchange(gauge_ages_, {});
  const SegmentValues values = std::exchange(values_, {});
  series_numbers_.clear();
  family_numbers_.clear();
  std::copy(std::begin(values.dropped), std::end(values.dropped), std::begin(values_.dropped));
  std::vector<double> terms;
  for (size_t i = 0; i < series.size(); ++i) {
    const SegmentSeries& from = series[i];
    const SegmentFamily& family = families[from.record.family];
    const bool gauge = family.kind == Kind::kGauge;
    if (gauge && values.commons[from.common] == kUnset) continue;
    const size_t to = FindOrAddSeries(FindOrAddFamily(family, ages[from.record.family]), ordinals[i],
                                      LabelBytes(labels, from.record), from.record.labels, births[i], true);
    if (from.common != kNoIndex) {
      Common(to) = values.commons[from.common];
      changed_at_[series_[to].common] = changed_at[from.common];
      ended_values_[series_[to].common] = std::move(ended_values[from.common]);
      gauge_ages_[series_[to].common] = gauge_ages[from.common];
    }
    if (!gauge) {
      std::copy_n(values.wholes.begin() + from.whole, from.record.cells, Cells(to));
      for (uint32_t which = 0; which < SumCount(family.kind); ++which) {
        terms.clear();
        values.AppendTerms(from.real + which, terms);
        SetSum(to, which, terms);
      }
    }
  }
  ++generation_;
}

}  // namespace persia::agent

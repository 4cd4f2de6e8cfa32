#include "ledger/retired_group.h"

#include <algorithm>
#include <utility>

#include "files/bytes.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;
using segment::kUnset;

// With fewer terms, compaction does not pay.
constexpr size_t kMinTermsToCompact = 1024;

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
          .ordinals = ordinals_};
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
                                     bool may_add) {
  std::string key = SeriesKey(family, ordinal, labels);
  const auto found = series_numbers_.find(key);
  if (found != series_numbers_.end()) return found->second;
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
    gauges_.emplace_back();
  }
  series_.push_back(series);
  ordinals_.push_back(ordinal);
  series_numbers_.emplace(std::move(key), series_.size() - 1);
  ++generation_;
  return series_.size() - 1;
}

void RetiredGroup::SetSum(size_t series, uint32_t which, std::span<const double> terms) {
  SegmentValues::Real& real = values_.reals[series_[series].real + which];
  real = {};
  const auto first = std::find_if(terms.begin(), terms.end(), [](double term) { return term != 0; });
  if (first == terms.end()) return;
  real.first = *first;
  // A chain starts with the term that was added last. Adding from the end keeps the order over encoding and decoding.
  for (auto at = terms.end(); at != first + 1;) {
    values_.terms.push_back({*--at, real.more});
    real.more = static_cast<uint32_t>(values_.terms.size());
  }
}

std::string_view RetiredGroup::LabelsOf(size_t series) const { return LabelBytes(labels_, series_[series].record); }

void RetiredGroup::SetGaugeExpiry(size_t series, std::chrono::steady_clock::time_point expires) {
  GaugeOf(series).expires = expires;
  next_expiry_ = std::min(next_expiry_, expires);
}

void RetiredGroup::ExpireGauges(std::chrono::steady_clock::time_point now) {
  if (now < next_expiry_) return;
  next_expiry_ = std::chrono::steady_clock::time_point::max();
  size_t unset = 0;
  for (const SegmentSeries& series : series_) {
    const Kind kind = families_[series.record.family].kind;
    if (!HasGauge(kind)) continue;
    uint64_t& value = values_.commons[series.common];
    if (value != kUnset && gauges_[series.common].expires <= now) {
      value = kUnset;
    }
    if (value == kUnset) {
      unset += kind == Kind::kGauge ? 1 : 0;  // a stream keeps its counts
    } else {
      next_expiry_ = std::min(next_expiry_, gauges_[series.common].expires);
    }
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
  const std::vector<std::byte> labels = std::exchange(labels_, {});
  const std::vector<uint64_t> changed_at = std::exchange(changed_at_, {});
  const std::vector<Gauge> gauges = std::exchange(gauges_, {});
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
                                      LabelBytes(labels, from.record), from.record.labels, true);
    if (from.common != kNoIndex) {
      Common(to) = values.commons[from.common];
      changed_at_[series_[to].common] = changed_at[from.common];
      gauges_[series_[to].common] = gauges[from.common];
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

void RetiredGroup::Compact() {
  if (values_.terms.size() < kMinTermsToCompact + 2 * values_.reals.size()) return;
  std::vector<SegmentValues::Term> kept;
  for (SegmentValues::Real& real : values_.reals) {
    uint32_t more = 0;
    for (uint32_t at = real.more; at != 0; at = values_.terms[at - 1].more) {
      kept.push_back({values_.terms[at - 1].value, more});
      more = static_cast<uint32_t>(kept.size());
    }
    real.more = more;
  }
  values_.terms = std::move(kept);
}

}  // namespace persia::agent

#include "source/retired.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;
using segment::kUnset;

// Fewer replaced sums than that are not worth the work of throwing them away.
constexpr size_t kFewTerms = 1024;

template <class T>
void AppendRaw(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void AppendText(std::string& key, std::string_view text) {
  AppendRaw(key, text.size());
  key += text;
}

// Two processes' families of one key are one family: their values can be added.
std::string FamilyKey(const SegmentFamily& family) {
  std::string key;
  AppendRaw(key, family.kind);
  AppendRaw(key, family.policy);
  AppendText(key, family.group);
  AppendText(key, family.name);
  for (const double bound : family.bounds) {
    AppendRaw(key, bound);
  }
  return key;
}

std::string GroupKey(const SegmentIdentity& identity) {
  std::string key;
  AppendText(key, identity.role);
  AppendRaw(key, identity.replica);
  for (const auto& [name, value] : identity.labels) {
    AppendText(key, name);
    AppendText(key, value);
  }
  return key;
}

std::string_view LabelBytes(std::span<const std::byte> records, const SegmentSeriesRecord& record) {
  size_t end = record.labels_at;
  for (uint32_t i = 0; i < 2 * record.labels; ++i) {
    CheckedString(records, end);
  }
  return {reinterpret_cast<const char*>(records.data()) + record.labels_at, end - record.labels_at};
}

uint64_t Combined(GaugePolicy policy, const RetiredGroup::Gauge& former, uint64_t former_bits, uint64_t bits, bool newer) {
  const auto a = std::bit_cast<double>(former_bits);
  const auto b = std::bit_cast<double>(bits);
  switch (policy) {
    case GaugePolicy::kSum:
      return std::bit_cast<uint64_t>(a + b);
    case GaugePolicy::kMin:
      return std::bit_cast<uint64_t>(std::fmin(a, b));
    case GaugePolicy::kMax:
      return std::bit_cast<uint64_t>(std::fmax(a, b));
    case GaugePolicy::kAvg: {
      const auto count = static_cast<double>(former.count);
      return std::bit_cast<uint64_t>((a * count + b) / (count + 1));
    }
    case GaugePolicy::kLast:
    case GaugePolicy::kEach:
      break;
  }
  return newer ? bits : former_bits;
}

}  // namespace

bool IsWholeCell(Kind kind, uint32_t cell) {
  switch (kind) {
    case Kind::kCounter:
      return cell == 0;
    case Kind::kHistogram:
      return cell >= 1;
    case Kind::kEvent:
      return cell == 1 || cell >= 3;
    case Kind::kGauge:
    case Kind::kStream:
      break;
  }
  return false;
}

RetiredGroup::RetiredGroup(SegmentIdentity identity, size_t number)
    : identity_(std::move(identity)), id_("retired " + std::to_string(number)) {}

MergeInput RetiredGroup::Input() const {
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

void RetiredGroup::RenewIdentity(const SegmentIdentity& identity, uint64_t birth_unix_ns) {
  if (birth_unix_ns >= birth_unix_ns_) {
    identity_ = identity;
    birth_unix_ns_ = birth_unix_ns;
  }
}

uint32_t RetiredGroup::TakeFamily(const SegmentFamily& family, FamilyAge age) {
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
    // Even if nothing of it differs: another definition of the name may have been the newer one until now.
    ages_[found->second] = std::move(age);
    ++generation_;
  }
  return found->second;
}

size_t RetiredGroup::TakeSeries(uint32_t family, uint32_t ordinal, std::string_view labels, uint32_t label_count,
                                bool may_add) {
  std::string key;
  AppendRaw(key, family);
  AppendRaw(key, ordinal);
  key += labels;
  const auto found = series_numbers_.find(key);
  if (found != series_numbers_.end()) {
    return found->second;
  }
  if (!may_add) {
    return SIZE_MAX;
  }
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
    values_.reals.emplace_back();
  }
  if (kind == Kind::kGauge || kind == Kind::kEvent) {
    series.common = static_cast<uint32_t>(values_.commons.size());
    values_.commons.push_back(kind == Kind::kGauge ? kUnset : 0);
    changed_at_.push_back(0);
    gauges_.emplace_back();
  }
  series_.push_back(series);
  ordinals_.push_back(ordinal);
  series_numbers_.emplace(std::move(key), series_.size() - 1);
  ++generation_;
  return series_.size() - 1;
}

void RetiredGroup::SetReal(size_t series, std::span<const double> terms) {
  SegmentValues::Real& real = values_.reals[series_[series].real];
  real = {};
  for (const double term : terms) {
    if (real.first == 0) {
      real.first = term;
    } else {
      values_.terms.push_back({term, real.more});
      real.more = static_cast<uint32_t>(values_.terms.size());
    }
  }
}

std::string_view RetiredGroup::LabelsOf(size_t series) const { return LabelBytes(labels_, series_[series].record); }

void RetiredGroup::SetGaugeEnd(size_t series, std::chrono::steady_clock::time_point ends) {
  GaugeOf(series).ends = ends;
  next_end_ = std::min(next_end_, ends);
}

void RetiredGroup::EndGauges(std::chrono::steady_clock::time_point now) {
  if (now < next_end_) {
    return;
  }
  next_end_ = std::chrono::steady_clock::time_point::max();
  for (const SegmentSeries& series : series_) {
    if (families_[series.record.family].kind != Kind::kGauge || values_.commons[series.common] == kUnset) {
      continue;
    }
    if (gauges_[series.common].ends <= now) {
      values_.commons[series.common] = kUnset;
    } else {
      next_end_ = std::min(next_end_, gauges_[series.common].ends);
    }
  }
}

void RetiredGroup::Compact() {
  if (values_.terms.size() < kFewTerms + 2 * values_.reals.size()) {
    return;
  }
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

RetiredGroup& RetiredProcesses::TakeGroup(const SegmentIdentity& identity) {
  const auto [found, added] = group_numbers_.try_emplace(GroupKey(identity), groups_.size());
  if (added) {
    groups_.emplace_back(identity, groups_.size());
  }
  return groups_[found->second];
}

void RetiredProcesses::Fold(const MergeInput& ended, RetiredPlace about, const Moment& now) {
  RetiredGroup& group = TakeGroup(*ended.identity);
  group.RenewIdentity(*ended.identity, ended.birth_unix_ns);
  constexpr uint32_t kSkipped = UINT32_MAX;
  std::vector<uint32_t> families;
  for (size_t i = 0; i < ended.families.size(); ++i) {
    families.push_back(ended.families[i].known ? group.TakeFamily(ended.families[i], ended.AgeOf(i)) : kSkipped);
  }
  for (size_t i = 0; i < ended.series.size(); ++i) {
    if (const uint32_t family = families[ended.series[i].record.family]; family != kSkipped) {
      FoldSeries(group, family, ended, i, now);
    }
  }
  for (size_t reason = 0; reason < std::size(ended.values->dropped); ++reason) {
    group.dropped()[reason] += ended.values->dropped[reason];
  }
  const InstanceKey key(ended.identity->role, ended.identity->replica);
  Saw(key, now);
  RetiredPlace& place = instances_[key].places[ended.ordinal];
  about.ended = place.ended + 1;
  place = about;
  ++processes_;
}

void RetiredProcesses::FoldSeries(RetiredGroup& group, uint32_t family, const MergeInput& ended, size_t number,
                                  const Moment& now) {
  const SegmentSeries& from = ended.series[number];
  const Kind kind = group.family(family).kind;
  const bool each = kind == Kind::kGauge && group.family(family).policy == GaugePolicy::kEach;
  const size_t before = group.series_count();
  const bool room = before < options_.limits.series_of_instance && series_ < options_.limits.series;
  const size_t to = group.TakeSeries(family, each ? ended.OrdinalOf(number) : 0, LabelBytes(ended.records, from.record),
                                     from.record.labels, room);
  if (to == SIZE_MAX) {
    ++series_refused_;
    return;
  }
  series_ += group.series_count() - before;
  if (kind == Kind::kGauge) {
    FoldGauge(group, to, ended, number, now);
    return;
  }
  uint64_t* cells = group.Cells(to);
  for (uint32_t cell = 0; cell < from.record.cells; ++cell) {
    if (IsWholeCell(kind, cell)) {
      cells[cell] += ended.values->wholes[from.whole + cell];
    }
  }
  if (kind == Kind::kEvent) {
    group.Common(to) = std::max(group.Common(to), ended.values->commons[from.common]);
  }
  terms_.clear();
  ended.values->AppendTerms(from.real, terms_);
  if (terms_.empty()) {
    return;
  }
  group.values().AppendTerms(group.series(to).real, terms_);
  sum_.Clear();
  for (const double term : terms_) {
    sum_.Add(term);
  }
  sum_terms_.clear();
  sum_.MoveTo(sum_terms_);
  group.SetReal(to, sum_terms_);
}

void RetiredProcesses::FoldGauge(RetiredGroup& group, size_t series, const MergeInput& ended, size_t number,
                                 const Moment& now) {
  const uint32_t from = ended.series[number].common;
  const uint64_t bits = ended.values->commons[from];
  if (bits == kUnset) {
    return;
  }
  RetiredGroup::Gauge& gauge = group.GaugeOf(series);
  uint64_t& kept = group.Common(series);
  const uint64_t change = ended.changed_at[from];
  const bool newer = std::pair(change, ended.birth_unix_ns) >= std::pair(gauge.change, gauge.birth_unix_ns);
  // Who ended in another tick is followed, not joined, by this one.
  const bool joins = kept != kUnset && gauge.tick == now.tick;
  kept = joins ? Combined(group.family(group.series(series).record.family).policy, gauge, kept, bits, newer) : bits;
  gauge.count = joins ? gauge.count + 1 : 1;
  if (!joins || newer) {
    gauge.change = change;
    gauge.birth_unix_ns = ended.birth_unix_ns;
  }
  gauge.tick = now.tick;
  gauge.folded_wall = now.wall;
  group.changed_at()[group.series(series).common] = change;
  group.SetGaugeEnd(series, now.steady + options_.gauge_ttl);
}

void RetiredProcesses::Compact() {
  for (RetiredGroup& group : groups_) {
    group.Compact();
  }
}

void RetiredProcesses::Saw(const InstanceKey& instance, const Moment& now) {
  RetiredInstance& known = instances_[instance];
  known.last_seen = now.steady;
  known.last_seen_wall = now.wall;
}

bool RetiredProcesses::Shown(const InstanceKey& instance, const Moment& now) const {
  const auto found = instances_.find(instance);
  return !options_.hide_left || found == instances_.end() || now.steady < found->second.last_seen + options_.gauge_ttl;
}

uint64_t RetiredProcesses::EndedOn(const InstanceKey& instance, uint32_t ordinal) const {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) {
    return 0;
  }
  const auto place = found->second.places.find(ordinal);
  return place == found->second.places.end() ? 0 : place->second.ended;
}

std::vector<MergeInput> RetiredProcesses::Inputs(const Moment& now) {
  std::vector<MergeInput> inputs;
  for (RetiredGroup& group : groups_) {
    if (Shown({group.identity().role, group.identity().replica}, now)) {
      group.EndGauges(now.steady);
      inputs.push_back(group.Input());
    }
  }
  return inputs;
}

}  // namespace persia::agent

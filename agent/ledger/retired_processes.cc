#include "ledger/retired_processes.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <utility>

#include "files/bytes.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;
using segment::kUnset;

std::string GroupKey(const SegmentIdentity& identity) {
  ByteWriter key;
  key.String(identity.role);
  key.U32(static_cast<uint32_t>(identity.replica));
  for (const auto& [name, value] : identity.labels) {
    key.String(name);
    key.String(value);
  }
  return std::move(key).Take();
}

bool LabelsFit(std::span<const std::byte> records, const SegmentSeriesRecord& record, size_t value_bytes) {
  bool fit = true;
  VisitLabels(records, record, [&](std::string_view, std::string_view value) { fit = fit && value.size() <= value_bytes; });
  return fit;
}

}  // namespace

RetiredGroup& RetiredProcesses::FindOrAddGroup(const SegmentIdentity& identity) {
  const auto [found, added] = group_numbers_.try_emplace(GroupKey(identity), groups_.size());
  if (added) {
    groups_.emplace_back(identity, groups_.size());
  }
  return groups_[found->second];
}

std::vector<uint32_t> RetiredProcesses::Fold(const Measurements& ended, LastProcess process, const CollectTime& now) {
  series_ = 0;  // of the exposed instances: hidden ones do not count against the limit
  for (const RetiredGroup& other : groups_) {
    series_ += IsShown({other.identity().role, other.identity().replica}, now) ? other.series_count() : 0;
  }
  return FoldAll(ended, process, now, [&](const RetiredGroup& group, size_t number) {
    return group.series_count() < options_.limits.series_of_instance && series_ < options_.limits.series &&
           LabelsFit(ended.records, ended.series[number].record, options_.limits.label_value_bytes);
  });
}

void RetiredProcesses::RepeatFold(const Measurements& ended, LastProcess process, const CollectTime& now,
                                  std::span<const uint32_t> left_out) {
  const std::set<uint32_t> numbers(left_out.begin(), left_out.end());
  FoldAll(ended, process, now,
          [&](const RetiredGroup&, size_t number) { return !numbers.contains(static_cast<uint32_t>(number)); });
}

template <class MayAdd>
std::vector<uint32_t> RetiredProcesses::FoldAll(const Measurements& ended, LastProcess process, const CollectTime& now,
                                                MayAdd may_add) {
  RetiredGroup& group = FindOrAddGroup(*ended.identity);
  group.UpdateIdentity(*ended.identity, ended.birth_unix_ns);
  // Known families update their age; others are added with their first series within the limits.
  std::vector<std::optional<uint32_t>> families(ended.families.size());
  for (size_t i = 0; i < ended.families.size(); ++i) {
    if (ended.families[i].known && group.HasFamily(ended.families[i])) {
      families[i] = group.FindOrAddFamily(ended.families[i], ended.AgeOf(i));
    }
  }
  std::vector<uint32_t> left_out;
  for (size_t i = 0; i < ended.series.size(); ++i) {
    const uint32_t family = ended.series[i].record.family;
    if (!ended.families[family].known) continue;
    const bool adds = may_add(group, i);
    if (!families[family] && adds) {
      families[family] = group.FindOrAddFamily(ended.families[family], ended.AgeOf(family));
    }
    if (!families[family] || !FoldSeries(group, *families[family], ended, i, adds, now)) {
      left_out.push_back(static_cast<uint32_t>(i));
    }
  }
  series_refused_ += left_out.size();
  for (size_t reason = 0; reason < std::size(ended.values->dropped); ++reason) {
    group.dropped()[reason] += ended.values->dropped[reason];
  }
  const InstanceKey key(ended.identity->role, ended.identity->replica);
  MarkSeen(key, now);
  LastProcess& last = instances_[key].last_processes[ended.ordinal];
  process.ended = last.ended + 1;
  last = process;
  ++processes_;
  return left_out;
}

bool RetiredProcesses::FoldSeries(RetiredGroup& group, uint32_t family, const Measurements& ended, size_t number, bool may_add,
                                  const CollectTime& now) {
  const SegmentSeries& from = ended.series[number];
  const Kind kind = group.family(family).kind;
  const bool each = kind == Kind::kGauge && group.family(family).policy == GaugePolicy::kEach;
  const size_t before = group.series_count();
  const size_t to = group.FindOrAddSeries(family, each ? ended.OrdinalOf(number) : 0, LabelBytes(ended.records, from.record),
                                          from.record.labels, ended.BirthOf(number), may_add);
  if (to == SIZE_MAX) return false;
  series_ += group.series_count() - before;
  if (HasGauge(kind)) {
    FoldGauge(group, to, ended, number, now);
  }
  if (kind == Kind::kGauge) return true;
  uint64_t* cells = group.Cells(to);
  for (uint32_t cell = 0; cell < from.record.cells; ++cell) {
    if (IsWholeCell(kind, cell)) {
      cells[cell] += ended.values->wholes[from.whole + cell];
    }
  }
  if (kind == Kind::kEvent) {
    group.Common(to) = std::max(group.Common(to), ended.values->commons[from.common]);
  }
  for (uint32_t which = 0; which < SumCount(kind); ++which) {
    terms_.clear();
    ended.values->AppendTerms(from.real + which, terms_);
    if (terms_.empty()) continue;
    group.values().AppendTerms(group.series(to).real + which, terms_);
    sum_.Clear();
    for (const double term : terms_) {
      sum_.Add(term);
    }
    sum_terms_.clear();
    sum_.MoveTo(sum_terms_);
    group.SetSum(to, which, sum_terms_);
  }
  return true;
}

void RetiredProcesses::FoldGauge(RetiredGroup& group, size_t series, const Measurements& ended, size_t number,
                                 const CollectTime& now) {
  const uint32_t from = ended.series[number].common;
  const uint64_t bits = ended.values->commons[from];
  if (bits == kUnset) return;
  group.AddGaugeValue(series,
                      {.value = std::bit_cast<double>(bits), .expires = now.steady + options_.gauge_ttl, .ended = now.wall},
                      {.ended_tick = now.tick, .changed_tick = ended.changed_at[from], .birth_unix_ns = ended.birth_unix_ns});
}

void RetiredProcesses::MarkSeen(const InstanceKey& instance, const CollectTime& now) {
  RetiredInstance& known = instances_[instance];
  known.last_seen = now.steady;
  known.last_seen_wall = now.wall;
}

bool RetiredProcesses::IsShown(const InstanceKey& instance, const CollectTime& now) const {
  const auto found = instances_.find(instance);
  return !options_.hide_ended || found == instances_.end() || now.steady < found->second.last_seen + options_.gauge_ttl;
}

uint64_t RetiredProcesses::EndedCount(const InstanceKey& instance, uint32_t ordinal) const {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return 0;
  const auto last = found->second.last_processes.find(ordinal);
  return last == found->second.last_processes.end() ? 0 : last->second.ended;
}

std::vector<Measurements> RetiredProcesses::Inputs(const CollectTime& now) {
  std::vector<Measurements> inputs;
  for (RetiredGroup& group : groups_) {
    if (IsShown({group.identity().role, group.identity().replica}, now)) {
      group.ExpireGauges(now.steady);
      inputs.push_back(group.Input());
    }
  }
  return inputs;
}

}  // namespace persia::agent
